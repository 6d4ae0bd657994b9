"""Several processes, called ranks, that train one parser together: started by torchrun, or by Ray Train.

Rank 0 runs the whole command as a single process would. The others only assist: they wait until rank 0 trains, and then
compute their share of every batch (`step.py`). So rank 0 alone reads, encodes, scores, prints and writes, and nothing
outside the training loop knows of ranks.

    on_ranks(main)      # in every process: rank 0 calls main, the others assist until it returns
    leave(0)            # where the process is to end then

All ranks read features and silver from the same folders. Tensors on GPUs are added by NCCL, all else goes by gloo.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import torch
from torch import Tensor, distributed

from subdp.support.errors import SubdpError, first_line

_Result = TypeVar("_Result")
STEP_SECONDS = 600  # A rank that takes longer over its share of a batch hangs.
_ALWAYS = timedelta(days=365)  # For waiting while rank 0 does something else; it ends when the connection breaks.


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among those that train together; by default it is the only one, and all of this does nothing."""

    rank: int = 0
    count: int = 1
    _told: Any = None  # Groups of all ranks: for what rank 0 tells, and for errors.
    _errors: Any = None

    @contextmanager
    def assisted(self, job: Callable[[Ranks], None]) -> Iterator[None]:
        """On rank 0: the other ranks call `job`, which is pickled, and have returned from it at the end of `with`.

        After an error they are lost: it is expected to end the command.
        """
        if self.count > 1:
            self.tell(pickle.dumps(job))
            with self.together():
                pass  # They load it.
        yield
        self.tell(None)

    def assist(self) -> None:
        """On other ranks: do the jobs of rank 0 until there are no more."""
        while (packed := self.tell()) is not None:
            with self.together():
                job: Callable[[Ranks], None] = pickle.loads(packed)
            job(self)

    def tell(self, message: Any = None) -> Any:
        """What rank 0 says, given to all; the others wait for it as long as it takes."""
        if self.count == 1:
            return message
        box = [message]
        with _connected():
            distributed.broadcast_object_list(box, src=0, group=self._told)
        return box[0]

    @contextmanager
    def together(self) -> Iterator[None]:
        """What all ranks do at the same time: an error on one of them is raised on all, and names that rank."""
        error: Exception | None = None
        try:
            yield
        except Exception as raised:
            error = raised
        found: list[str | None] = [None] * self.count
        if self.count > 1:
            with _connected():
                distributed.all_gather_object(found, error and first_line(error), group=self._errors)
        if error is not None and self.rank == 0:
            raise error
        for rank, text in enumerate(found):
            if text is not None:
                raise SubdpError(f"rank {rank}: {text}")

    def add(self, tensors: Sequence[Tensor], number: float) -> float:
        """Replace tensors by their sums over all ranks, the same bits on each; returns the sum of the numbers."""
        if self.count == 1:
            return number
        every = [*tensors, torch.tensor([number], dtype=tensors[0].dtype, device=tensors[0].device)]
        flat = torch.cat([tensor.reshape(-1) for tensor in every])
        with _connected():
            distributed.all_reduce(flat)
        for tensor, total in zip(every, torch.split(flat, [tensor.numel() for tensor in every]), strict=True):
            tensor.copy_(total.view_as(tensor))
        return every[-1].item()


_current = Ranks()


def current_ranks() -> Ranks:
    """The ranks that this process trains with."""
    return _current


def on_ranks(work: Callable[[], _Result]) -> _Result | None:
    """Call `work` on rank 0; the others assist it in whatever it trains, and return None when it is done."""
    global _current
    ranks = _join()
    if ranks.rank > 0:
        ranks.assist()
        return None
    _current = ranks
    try:
        result = work()
        ranks.tell(None)
        return result
    finally:
        _current = Ranks()


def leave(code: int) -> NoReturn:
    """End a process that is one of several ranks, at once, whether all went well or not.

    Threads of torch may still wait for the others, or free what was sent to them, and would abort the process while the
    interpreter is torn down.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _join() -> Ranks:
    """Connect to the other ranks, as torchrun's environment variables say, unless that is done already (by Ray)."""
    with _connected():
        if not distributed.is_initialized():
            _take_gpu()
            backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
            distributed.init_process_group(backend, timeout=timedelta(seconds=STEP_SECONDS))
        told = distributed.new_group(backend="gloo", timeout=_ALWAYS)
        errors = distributed.new_group(backend="gloo", timeout=timedelta(seconds=STEP_SECONDS))
    return Ranks(distributed.get_rank(), distributed.get_world_size(), told, errors)


def _take_gpu() -> None:
    """Let each rank on a machine see one GPU, its own: what rank 0 sends is then on the right one."""
    place = int(os.environ.get("LOCAL_RANK", "0"))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(number) for number in range(place + 1)] if visible is None else visible.split(",")
    os.environ["CUDA_VISIBLE_DEVICES"] = names[place] if place < len(names) else ""


@contextmanager
def _connected() -> Iterator[None]:
    """Turn what torch raises when another rank has ended, hangs or never came into an error that says so."""
    try:
        yield
    except RuntimeError as error:
        hint = "was one killed, perhaps for lack of memory? finished work is kept, and can be resumed"
        raise SubdpError(f"no connection to the other ranks: {first_line(error)}", hint=hint) from error
