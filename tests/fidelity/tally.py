"""How many trials of one part of the benchmark ended as they must."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Say = Callable[[str], None]  # is told what is being tried


@dataclass
class Tally:
    """``kinds`` different things were tried ``trials`` times; ``problems`` did not end right."""

    what: str
    kinds: int = 0
    trials: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    note: str = ""

    @property
    def right(self) -> int:
        return self.trials - len(self.problems)
