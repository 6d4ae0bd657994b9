"""The report of a bitext: how many pairs were read, left out and changed, and why. Standard library only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Report:
    """What happened to the pairs that were read: how many were dropped or changed, by reason."""

    read: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    changed: Mapping[str, int] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        """The pairs that are left."""
        return self.read - sum(self.dropped.values())

    def __add__(self, other: Report) -> Report:
        dropped, changed = Counter(self.dropped), Counter(self.changed)
        dropped.update(other.dropped)
        changed.update(other.changed)
        return Report(self.read + other.read, dict(dropped), dict(changed))

    def as_dict(self) -> dict[str, object]:
        """The report as JSON can hold it."""
        return {
            "read": self.read,
            "dropped": dict(self.dropped),
            "changed": dict(self.changed),
            "kept": self.kept,
        }

    def __str__(self) -> str:
        rows = [("read", self.read), *((f"- {reason}", count) for reason, count in self.dropped.items())]
        rows += [("kept", self.kept), *((f"* {what}", count) for what, count in self.changed.items())]
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}} {count:>9,} {count / max(self.read, 1):>7.1%}" for name, count in rows]
        return "\n".join(lines)
