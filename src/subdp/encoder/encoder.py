"""Words become vectors: `Encoder` runs any frozen Hugging Face encoder over tokenised sentences.

    encoder = Encoder.load()                                # the bundled one; or "xlm-roberta-base", or a folder
    for encoded in encoder.encode([["It", "rains"]], layers=[7]):
        encoded.vectors                                     # [layers, subwords, hidden]

One pass serves both the parser's word features (`feature_store.py`) and the aligner's subword vectors
(`alignment/similarity.py`). Imports torch.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from subdp.encoder.batch import chunks
from subdp.encoder.bundled.bert import load_bundled
from subdp.encoder.bundled.convert import FINGERPRINT, bundled_encoder
from subdp.encoder.device import find_device
from subdp.encoder.eight_bits import in_eight_bits
from subdp.encoder.pretrained import find_encoder, hash_folder, load_folder
from subdp.encoder.products import use_onednn
from subdp.encoder.threads import side_by_side
from subdp.support.errors import SubdpError, counted
from subdp.support.settings import EncoderBits

_BATCH = {"cpu": 1024, "cuda": 8192}  # Subwords in a batch, padding included. More is no faster on one core.
_SHORTEST = 0.9  # Minimum length in a batch, relative to its longest sentence, to limit padding.
_HELD_BYTES = 256 << 20  # Memory for a chunk's results while they are put back in order.
_MOST_WORDS = 16384  # In a chunk: enough that sorting by length leaves hardly any padding.
_REMEMBERED_WORDS = 1 << 20


@dataclass(frozen=True, slots=True)
class Encoded:
    """One sentence: the vectors of its subwords at the layers asked for, and the subwords of each word.

    *Shape:* `vectors` [layers, subwords, hidden], `first` and `last` [words]: word w is the subwords `first[w]` to
    `last[w]`, both included. Every subword belongs to a word, every word has at least one.
    """

    vectors: NDArray[Any]
    first: NDArray[np.int32]
    last: NDArray[np.int32]

    def __post_init__(self) -> None:
        if self.vectors.ndim != 3 or self.first.shape != self.last.shape or self.first.ndim != 1:
            raise ValueError(f"shapes {self.vectors.shape}, {self.first.shape}, {self.last.shape} do not fit together")

    @property
    def owners(self) -> NDArray[np.int32]:
        """The word of each subword. *Shape:* [subwords]."""
        return np.repeat(np.arange(len(self.first), dtype=np.int32), self.last - self.first + 1)


@dataclass(frozen=True, slots=True)
class _Span:
    """A window of a sentence, and the part of it whose vectors are kept (all in subwords)."""

    sentence: int
    start: int
    end: int
    keep_start: int
    keep_end: int


class Encoder:
    """A frozen encoder with its tokenizer, on a device. Layers are numbered 0 (embeddings) to `layers` (the last).

    `bits` are those of the products in its layers: 32, or 8 (`eight_bits.py`).
    """

    def __init__(self, name: str, folder: Path, model: Any, tokenizer: Any, bits: EncoderBits = 32):
        self.name, self.folder, self.bits = name, folder, bits
        self.model, self.tokenizer = model.eval().requires_grad_(False), tokenizer
        self.blocks = _find_blocks(model)
        self.layers: int = len(self.blocks)
        if bits == 8:
            in_eight_bits(self.blocks, name)
        else:
            use_onednn(self.blocks)
        self.blocks[0].register_forward_pre_hook(partial(_keep, 0))
        for layer, block in enumerate(self.blocks, start=1):
            block.register_forward_hook(partial(_keep, layer))
        self.hidden: int = model.config.hidden_size
        self.window = _window(model, tokenizer)
        self.prefix, self.suffix = special_ids(tokenizer)
        if self.window <= (specials := len(self.prefix) + len(self.suffix)):
            reason = f"takes {counted(self.window, 'subword')} at a time, all taken up by its {specials} special ones"
            raise SubdpError(reason, where=name, hint="choose another encoder")
        # Byte-level tokenizers split a word after a space differently; the others mark its start themselves.
        self._before = "" if _ids(tokenizer, "a") == _ids(tokenizer, " a") else " "
        self._subwords: dict[str, list[int]] = {}
        # Stands for a word from which the tokenizer makes no subwords.
        known = (getattr(tokenizer, f"{kind}_token_id", None) for kind in ("unk", "mask", "eos"))
        self._nothing: int = next((number for number in known if number is not None), 0)

    def __repr__(self) -> str:
        return f"Encoder({self.name!r}, {self.fingerprint})"

    def __reduce__(self) -> Any:
        """Other processes load it from disk, which is faster than sending half a gigabyte of weights."""
        return _load_same, (self.fingerprint, self.name, self.model.device, self.model.dtype, self.bits)

    @classmethod
    def load(
        cls,
        name: str | Path = "bundled",
        device: str | torch.device | None = None,
        dtype: torch.dtype | None = None,
        bits: EncoderBits = 32,
    ) -> Encoder:
        """The bundled encoder, a local model folder, a plug-in, or a Hugging Face model (downloaded when needed).

        Of an encoder-decoder only the encoder is kept. No code that comes with a model is ever run. By default a GPU is
        used if there is one: CUDA in float16, anything else in float32. With 8 `bits`, the matrix products in its
        layers are computed with 8-bit integers, about twice as fast on processors with AVX-512 VNNI, and only there.
        """
        if bits not in get_args(EncoderBits):
            raise SubdpError(f"bits cannot be {bits!r}", hint="give 8 or 32")
        device = find_device(device)
        if bits == 8 and device.type != "cpu":
            hint = "leave out --encoder-bits, or add --device cpu"
            raise SubdpError(f"8-bit products are for a CPU, not for {device}", hint=hint)
        name = str(name) if name == "bundled" or not Path(name).is_dir() else str(Path(name).resolve())
        folder, load = (bundled_encoder(), load_bundled) if name == "bundled" else (find_encoder(name), load_folder)
        if dtype is None:
            dtype = torch.float16 if device.type == "cuda" else torch.float32
        model, tokenizer = load(folder, dtype)
        return cls(name, folder, model.to(device), tokenizer, bits)

    @cached_property
    def fingerprint(self) -> str:
        """Ties features to the encoder that made them; 8-bit products give other vectors, so it differs for them."""
        return self.weights if self.bits == 32 else f"{self.weights}-{self.bits}bits"

    @cached_property
    def weights(self) -> str:
        """A hash of configuration, weights and tokenizer, by which parsers know their encoder, whatever its `bits`."""
        return FINGERPRINT if self.name == "bundled" else hash_folder(self.folder)

    @property
    def title(self) -> str:
        """Its name, with the bits of its products where they are not the usual ones."""
        return self.name if self.bits == 32 else f"{self.name}, {self.bits}-bit products"

    def encode(self, sentences: Iterable[Sequence[str]], layers: Sequence[int] | None = None) -> Iterator[Encoded]:
        """Encode tokenised sentences at the layers asked for (default: all), as a stream, in order.

        Layers above the highest one asked for are not computed. A sentence longer than the model's window is encoded in
        overlapping windows, and each subword is taken from the one where it has most context. Sentences are read ahead
        in chunks of bounded size and sorted by length, so that batches have little padding. The vectors of a chunk
        share one array: copy those you keep, or the whole chunk stays in memory.
        """
        chosen = self.check_layers(layers)
        words = _HELD_BYTES // (2 * len(chosen) * self.hidden * 4)
        for chunk in chunks(sentences, min(words, _MOST_WORDS)):
            yield from self._encode_chunk(chunk, chosen)

    def check_layers(self, layers: Sequence[int] | None) -> tuple[int, ...]:
        """The layers asked for, checked; all of them for None."""
        chosen = tuple(range(self.layers + 1)) if layers is None else tuple(layers)
        if not chosen or not all(0 <= layer <= self.layers for layer in chosen):
            raise SubdpError(f"layers {list(chosen)} asked for, but this encoder has layers 0 to {self.layers}")
        return chosen

    def _encode_chunk(self, chunk: list[Sequence[str]], layers: tuple[int, ...]) -> Iterator[Encoded]:
        split = self._tokenise(chunk)
        dtype = np.float16 if self.model.dtype == torch.float16 else np.float32
        # One array for the chunk: many of all sizes, allocated by several threads, fragment memory.
        starts = np.cumsum([0, *(len(ids) for ids, _ in split)])
        whole = np.empty((len(layers), starts[-1], self.hidden), dtype)
        vectors = [whole[:, start:end] for start, end in pairwise(starts)]
        room = self.window - len(self.prefix) - len(self.suffix)
        spans = [span for number, (ids, _) in enumerate(split) for span in _spans(number, len(ids), room)]
        spans.sort(key=lambda span: span.end - span.start, reverse=True)

        def run(batch: list[_Span]) -> None:
            rows = [[*self.prefix, *split[span.sentence][0][span.start : span.end], *self.suffix] for span in batch]
            states = self._states(rows, layers)
            for row, span in enumerate(batch):
                move = len(self.prefix) - span.start
                for number, state in enumerate(states):
                    kept = state[row, span.keep_start + move : span.keep_end + move]
                    vectors[span.sentence][number, span.keep_start : span.keep_end] = kept

        batches = _batches(spans, self.window - room, _BATCH.get(self.model.device.type, 4096))
        side_by_side(run, batches, self.model.device)
        for (_, lengths), sentence_vectors in zip(split, vectors, strict=True):
            ends = np.cumsum(lengths, dtype=np.int32)
            yield Encoded(sentence_vectors, ends - np.asarray(lengths, np.int32), ends - 1)

    def _tokenise(self, sentences: list[Sequence[str]]) -> list[tuple[list[int], list[int]]]:
        """For each sentence its subword ids, and how many of them each word has.

        Words are split one by one, as tokenizers do with pre-tokenised text, and the results are cached.
        """
        with _TOKENISING:
            if len(self._subwords) > _REMEMBERED_WORDS:
                self._subwords = {}
            known = self._subwords
            new = list({word: None for words in sentences for word in words if word not in known})
            if new:
                cuts = _ids(self.tokenizer, [self._before + word for word in new])
                known.update((word, cut or [self._nothing]) for word, cut in zip(new, cuts, strict=True))
        split = []
        for words in sentences:
            cuts = [known[word] for word in words]
            split.append(([number for cut in cuts for number in cut], [len(cut) for cut in cuts]))
        return split

    def tensors(self, sentences: Sequence[Sequence[str]], layers: Sequence[int]) -> tuple[Tensor, list[list[int]]]:
        """The vectors of sentences in one tensor, through which gradients flow, and the number of each word's subwords.

        *Shape:* [subwords of all sentences, layers, hidden]; for each sentence [words].
        """
        split = self._tokenise(list(sentences))
        room = self.window - len(self.prefix) - len(self.suffix)
        spans = [span for number, (ids, _) in enumerate(split) for span in _spans(number, len(ids), room)]
        rows = [[*self.prefix, *split[span.sentence][0][span.start : span.end], *self.suffix] for span in spans]
        states = torch.stack(self._run(rows, tuple(layers)), dim=2)  # [rows, length, layers, hidden]
        kept = []
        for row, span in enumerate(spans):
            move = len(self.prefix) - span.start
            kept.append(states[row, span.keep_start + move : span.keep_end + move])
        return torch.cat(kept), [sizes for _, sizes in split]

    @torch.no_grad()
    def embeddings(self, words: Sequence[str]) -> tuple[Tensor, Tensor]:
        """The mean of the embeddings of each word's subwords, and the last of them, without positions; no layer runs.

        *Shape:* twice [words, hidden].
        """
        ((ids, sizes),) = self._tokenise([words])
        lengths = torch.tensor(sizes, device=self.model.device)
        vectors = self.model.get_input_embeddings()(torch.tensor(ids, device=self.model.device))
        vectors = functional.layer_norm(vectors, (self.hidden,))
        owners = torch.arange(len(words), device=lengths.device).repeat_interleave(lengths)
        total = vectors.new_zeros(len(words), self.hidden).index_add_(0, owners, vectors)
        return total / lengths[:, None], vectors[lengths.cumsum(0) - 1]

    @torch.inference_mode()
    def _states(self, rows: list[list[int]], layers: tuple[int, ...]) -> list[NDArray[Any]]:
        """The hidden states of the layers asked for. *Shape:* one [rows, longest row, hidden] for each layer."""
        states = self._run(rows, layers)
        return [(state.float() if state.dtype == torch.bfloat16 else state).cpu().numpy() for state in states]

    def _run(self, rows: list[list[int]], layers: tuple[int, ...]) -> list[Tensor]:
        """Hooks on the blocks collect the states, and the last one needed stops the forward pass.

        *Shape:* for each layer [rows, longest row, hidden].
        """
        longest = max(map(len, rows))
        pad = self.tokenizer.pad_token_id or 0
        ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows], device=self.model.device)
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=self.model.device)
        # There may be another normalisation after the last block, so the last layer is the model's output.
        _RUN.states, _RUN.enough = {}, max(layers) if max(layers) < self.layers else None
        try:
            with suppress(_EnoughError):
                _RUN.states[self.layers] = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
            return [_RUN.states[layer] for layer in layers]
        finally:
            _RUN.states = None


class _Run(threading.local):
    """This thread's forward pass: the states collected so far, and the layer at which it stops."""

    states: dict[int, Tensor] | None = None
    enough: int | None = None


_RUN = _Run()
_TOKENISING = threading.Lock()  # Tokenizers are not thread-safe.


def _keep(layer: int, *call: Any) -> None:
    """A hook on a block: keeps its output (layer 0: the first block's input) and stops after the last one needed."""
    if _RUN.states is None:  # Not one of our forward passes.
        return
    _RUN.states[layer] = call[-1][0] if isinstance(call[-1], tuple) else call[-1]
    if layer == _RUN.enough:
        raise _EnoughError


class _EnoughError(Exception):
    """Stops a forward pass once the highest layer asked for is there."""


def _spans(sentence: int, length: int, room: int) -> Iterator[_Span]:
    """Windows that overlap by half or more; the earlier one keeps the first half of an overlap, the later the rest."""
    starts = [*range(0, length - room, max(room // 2, 1)), max(0, length - room)]
    cuts = [0, *((before + room + start) // 2 for before, start in pairwise(starts)), length]
    for start, (keep_start, keep_end) in zip(starts, pairwise(cuts), strict=True):
        if length:
            yield _Span(sentence, start, min(start + room, length), keep_start, keep_end)


def _batches(spans: list[_Span], specials: int, subwords: int) -> Iterator[list[_Span]]:
    """Batches of spans, which are sorted from long to short: similar lengths, at most `subwords` with padding."""
    batch: list[_Span] = []
    longest = 0
    for span in spans:
        length = span.end - span.start + specials
        if batch and ((len(batch) + 1) * longest > subwords or length < _SHORTEST * longest):
            yield batch
            batch = []
        longest = longest if batch else length
        batch.append(span)
    if batch:
        yield batch


def _find_blocks(model: Any) -> nn.ModuleList:
    count = model.config.num_hidden_layers
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return module
    raise SubdpError(f"this kind of model ({model.config.model_type}) has no list of {count} layers to read from")


def _window(model: Any, tokenizer: Any) -> int:
    """How many subwords the model takes at once, special ones included."""
    positions = getattr(model.config, "max_position_embeddings", None) or 512
    for name, module in model.named_modules():
        # RoBERTa models count positions from after the padding index.
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding) and module.padding_idx is not None:
            positions = module.num_embeddings - module.padding_idx - 1
    return int(min(positions, tokenizer.model_max_length))


def special_ids(tokenizer: Any) -> tuple[list[int], list[int]]:
    """What the tokenizer puts before and after a sentence."""
    bare, full = _ids(tokenizer, "a"), tokenizer("a")["input_ids"]
    start = next(at for at in range(len(full)) if full[at : at + len(bare)] == bare)
    return full[:start], full[start + len(bare) :]


def _ids(tokenizer: Any, text: str | list[str]) -> Any:
    """The subword ids of a text, or of each of many, without special ones."""
    return tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]


def _load_same(fingerprint: str, *named: Any) -> Encoder:
    """The encoder that another process had, which may run on another machine."""
    encoder = Encoder.load(*named)
    if encoder.fingerprint != fingerprint:
        raise SubdpError(
            "the encoder of this name on this machine is a different one", where=encoder.name, hint="copy the same one"
        )
    return encoder
