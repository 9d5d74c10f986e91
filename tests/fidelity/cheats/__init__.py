"""Attempts to fool the grader: what each is caught by, and how it is tried."""

from __future__ import annotations

import ast
import itertools
import re
import tempfile
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grader
from grader.judge.context import Effort
from grader.report import Finding, Kind, Report, Verdict
from grader.sandbox import Sandbox
from grader.suite import Suite
from tests.fidelity import variants
from tests.fidelity.tally import Say, Tally

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent.parent.parent
SUITES = {"softmax": "03-softmax", "vector-add": "01-vector-add"}
HOME = "/home/learner"  # in a cheat, it stands for the learner's own folder
CLASSES = {"A": "skips the work", "B": "tampers", "C": "weak tests", "D": "timing"}


@dataclass(frozen=True)
class Cheat:
    """One file. ``codes`` and the pattern ``says`` are of the finding that it must get."""

    module: str
    name: str
    group: str  # of the catalogue, such as A5
    codes: tuple[str, ...]
    says: str
    naive: bool | None  # whether a grader in the same process believes it; None: by chance
    isolation: bool  # whether it reaches for what lies outside of its process
    effort: Effort  # with which tests/course/test_cheats.py grades it

    @property
    def path(self) -> Path:
        return FOLDER / self.module / f"{self.name}.py"

    @property
    def source(self) -> str:
        """The submission: the file, and below its imports the functions of ``_common.py`` that it
        calls or imports, with the imports there.
        """
        text, shared = self.path.read_text(), ""
        head, body = _parted(text)
        head = [(name, part) for name, part in head if name != "from _common"]
        imports, functions = _parted(self.path.with_name("_common.py").read_text())
        bound = {name for name, _ in body}
        for name, function in reversed(functions):
            names = {node.id if isinstance(node, ast.Name) else node.name
                     for node in ast.walk(ast.parse(text + shared))
                     if isinstance(node, ast.Name | ast.alias)}
            if name in names - bound:
                shared = function + shared
        if shared:
            shared = "\n" + "".join(line for _, line in imports[1:]) + shared
        return "".join([*(part for _, part in head), shared, *(part for _, part in body)])

    @property
    def trick(self) -> str:
        """What it does, in the words of its docstring."""
        return " ".join(self.path.read_text().split('"""')[1].split())

    def put(self, folder: Path) -> Path:
        """A copy whose learner lives in ``folder``."""
        path = folder / "kernel.py"
        path.write_text(self.source.replace(HOME, str(folder)))
        return path

    def caught(self, report: Report) -> Finding | None:
        """The finding that says what was seen; None where it is missing."""
        for result in report.results:
            for finding in result.findings if result.verdict is Verdict.FAILED else ():
                if finding.code in self.codes and re.search(self.says, finding.seen):
                    return finding
        return None


def _parted(source: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The statements of a file up to its last import at the top, and the others."""
    statements = variants.statements(source)
    head = [*itertools.takewhile(lambda one: one[0].startswith(("docstring", "import ", "from ")),
                                 statements)]
    return head, statements[len(head):]


def cheats() -> list[Cheat]:
    table: Mapping[str, Any] = tomllib.loads((FOLDER / "expected.toml").read_text())
    return [
        Cheat(module, name, entry["class"], tuple(entry["codes"]), entry["says"],
              None if naive == "by chance" else naive, entry.get("isolation", False),
              entry.get("effort", "values"))
        for module, entries in table.items() for name, entry in entries.items()
        for naive in [entry.get("naive", True)]
    ]


def suite_of(module: str) -> Suite:
    """A third of the module's cases, its properties, and all that counts work.

    Refusals and advisory cases are left out: a cheat should be caught by what it does, not by what
    it does not refuse.
    """
    suite = grader.load_suite(
        ROOT / "grader" / "suites" / "missing-elements" / SUITES[module] / "suite.py")
    cases = [case for case in suite.cases if case.raises is None and not case.advisory]
    counted = [case for case in cases if case.kind is Kind.PERFORMANCE]
    return replace(suite, cases=[case for case in cases if case not in counted][::3] + counted)


CANARIES = {
    "certificate.json": '{"verdict": "none"}\n',
    "journal.jsonl": '{"seq": 1}\n',
    "diary.txt": "private\n",
    "course/solution.py": "def vector_add(x, y):\n    return x + y\n",
    "course/test_hidden.py": "import torch\nsoftmax_answer = lambda x: torch.softmax(x, 1)\n",
}


def plant(home: Path) -> None:
    """Files that no submission may change, in the learner's folder and beside it."""
    for name, text in CANARIES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)


def touched(home: Path) -> list[str]:
    """The planted files that are not as they were, and files that are new."""
    found = {str(path.relative_to(home)): path.read_text() for path in home.rglob("*")
             if path.is_file() and path.name != "kernel.py"}
    return sorted(name for name in {*found, *CANARIES} if found.get(name) != CANARIES.get(name))


def is_confined(sandbox: Any, folder: Path) -> bool:
    """Whether a submission cannot write where it likes, found out by trying."""
    probe = folder / "probe.py"
    target = folder / "written"
    probe.write_text(f"open({str(target)!r}, 'w').close()\ndef f(): ...\n")
    with sandbox.fork("worker") as child:
        child.ask({"op": "load", "path": str(probe)})
    probe.unlink()
    written = target.exists()
    target.unlink(missing_ok=True)
    return not written


def attempted(sandbox: Sandbox, say: Say) -> Tally:
    """Grade every cheat: each must fail with its finding, and leave the canaries as they are."""
    tally = Tally("cheats")
    started = time.monotonic()
    for cheat in cheats():
        say(f"{cheat.module}/{cheat.name}")
        tally.kinds += 1
        tally.trials += 1
        with tempfile.TemporaryDirectory() as folder:
            plant(Path(folder))
            report = grader.grade(cheat.put(Path(folder)), suite_of(cheat.module), sandbox=sandbox)
            changed = touched(Path(folder))
        name = f"{cheat.group} {cheat.module}/{cheat.name}"
        if report.verdict is not Verdict.FAILED or cheat.caught(report) is None:
            tally.problems.append(f"{name}: {report.verdict}, and no finding says what it did")
        elif changed:
            tally.problems.append(f"{name}: it changed {', '.join(changed)}")
    tally.seconds = time.monotonic() - started
    return tally
