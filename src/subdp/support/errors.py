"""The one exception that users see: what is wrong, where, and what to do about it."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number with the noun it counts, in the singular or plural.

    >>> counted(1, "word"), counted(1200, "word")
    ('1 word', '1,200 words')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class SubdpError(Exception):
    """Something the user can fix: bad data, a missing file, an impossible request.

    Its text reads `file:line: what is wrong (what to do)`. The command line prints it without a traceback.
    """

    def __init__(self, reason: str, *, where: str | None = None, line: int | None = None, hint: str | None = None):
        self.reason, self.where, self.line, self.hint = reason, where, line, hint
        place = "" if where is None else f"{where}: " if line is None else f"{where}:{line}: "
        super().__init__(f"{place}{reason}" + (f" ({hint})" if hint else ""))


def first_line(error: BaseException) -> str:
    """An error in one line, with its kind unless its text is for users."""
    text = (str(error).strip().splitlines() or [""])[0]
    return text if isinstance(error, SubdpError) else f"{type(error).__name__}: {text}"
