"""A progress bar with rate and time left on standard error while there is work, for a person at a terminal.

`SUBDP_QUIET=1` (what `--quiet` sets) silences it everywhere. rich is imported only when a bar is drawn.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta


def visible() -> bool:
    """Whether a person is there to see progress."""
    return sys.stderr.isatty() and os.environ.get("SUBDP_QUIET", "") in ("", "0")


@contextmanager
def progress(title: str, total: int | None, unit: str, done: int = 0) -> Iterator[Callable[..., None]]:
    """A bar that counts `unit`s; call what it gives with how many more are done, `note=` to say something beside it.

    >>> with progress("reading", 3, "words") as advance:
    ...     advance(3)
    """
    if not visible():
        yield lambda done=0, note="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            # Over all the time so far: work that comes in bursts would make a rate of the moment jump.
            speed = (task.completed - done) / max(task.elapsed or 0.0, 1e-3)
            if not speed:
                return Text("")
            left = "" if total is None else f"  {timedelta(seconds=round((total - task.completed) / speed))} left"
            return Text(f"{speed:,.0f} {unit}/s{left}")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.percentage:>3.0f}%"),
        Rate(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total, completed=done, note="")

        def advance(done: int = 0, note: str | None = None) -> None:
            bar.update(task, advance=done, **({} if note is None else {"note": note}))  # type: ignore[arg-type]

        yield advance
