"""Examples of findings: wrong code and its repair for each code, from ``examples.toml``."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent

from grader.diagnosis.codes import MEANINGS
from grader.finding import NAMES

_FILE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Example:
    """One code: its name, what it usually means, and lines of wrong and of repaired code."""

    code: str
    name: str
    means: str
    wrong: str
    right: str


@cache
def examples() -> dict[str, Example]:
    """The example of every code."""
    texts = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {code: Example(code, name, texts[code].get("means", MEANINGS[code]),
                          *(dedent(texts[code][side]).rstrip("\n") for side in ("wrong", "right")))
            for code, name in NAMES.items()}
