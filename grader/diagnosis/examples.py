"""Examples of findings: wrong code and its repair for each code, from ``examples.toml``."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent

from grader.diagnosis.codes import MEANINGS
from grader.finding import NAMES

_FILE = Path(__file__).with_suffix(".toml")

# Which part of the grader reports a code; a code with several is under the usual one.
EMITTERS = {code: emitter for emitter, codes in {
    "source": "P01 P02 P03 P04",  # reads the file; no code is run
    "worker": "L01 X01 R01",  # runs host code and records launches
    "sandbox": "R02 R03 R04",  # limits the processes
    "interpreter": "M01 M02 M03 M04 M05 M06 M07 M09",  # runs kernels and checks their accesses
    "compiler": "L05 T05",  # compiles launches for a GPU
    "judge": "L03 M08 S01 E01 E02 E03 N01 N02 N03 N04 N05 T01 T02 T03 T04 T06",
    "gpu": "T07 T08",  # times launches at full size
    "suite": "Q01 U01 U02",  # a check that the module's suite defines
}.items() for code in codes.split()}


@dataclass(frozen=True)
class Example:
    """One code: name, emitter, usual meaning, and lines of wrong and of repaired code."""

    code: str
    name: str
    emitter: str
    means: str
    wrong: str
    right: str

    @property
    def summary(self) -> str:
        """The first sentence of the meaning."""
        return re.split(r"(?<=\.) ", self.means, maxsplit=1)[0]


@cache
def examples() -> dict[str, Example]:
    """The example of every code."""
    texts = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {code: Example(code, name, EMITTERS[code], texts[code].get("means", MEANINGS[code]),
                          *(dedent(texts[code][side]).rstrip("\n") for side in ("wrong", "right")))
            for code, name in NAMES.items()}
