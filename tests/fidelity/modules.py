"""Right-but-different solutions and mutants of every module, each with many fresh seeds.

A right solution must pass with every seed. A mutant must fail with every seed, with the code that
its suite declares for it, and with the diagnosis in its own words.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grader
from grader import Verdict
from grader.sandbox import Sandbox
from grader.suite import Mutant, Suite
from tests.fidelity import variants
from tests.fidelity.tally import Say, Tally
from tritonlab.authoring import expectations, module_files

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Module:
    """What belongs to one module, as paths and data."""

    slug: str
    suite: Suite
    solution: Path

    @property
    def variants(self) -> list[Path]:
        return variants.of(self.slug)


def modules() -> Iterator[Module]:
    """Every module that has hidden tests."""
    for path in sorted((ROOT / "grader" / "suites").glob("*/*/suite.py")):
        folder = path.parent.relative_to(ROOT / "grader" / "suites")
        yield Module(folder.name.partition("-")[2], grader.load_suite(path),
                     ROOT / "solutions" / folder / "kernel.py")


def right_but_different(seeds: int, sandbox: Sandbox, say: Say, most: int | None = None) -> Tally:
    """Grade the solution and its variants (``most`` of them) with ``seeds`` fresh seeds each."""
    tally = Tally("right-but-different solutions")
    started = time.monotonic()
    for module in modules():
        for path in [module.solution, *module.variants][:most]:
            tally.kinds += 1
            for number in range(seeds):
                with tempfile.TemporaryDirectory() as folder:
                    kernel = variants.whole(path, module.solution, Path(folder))
                    report = grader.grade(kernel, module.suite, sandbox=sandbox)
                tally.trials += 1
                if report.verdict is not Verdict.PASSED:
                    tally.problems.append(f"{module.slug}/{path.stem}, seed {report.seed}: "
                                          f"{told(report)}")
                say(f"{module.slug}/{path.stem} {number + 1}/{seeds}")
    tally.seconds = time.monotonic() - started
    return tally


def mutants(seeds: int, sandbox: Sandbox, say: Say) -> Tally:
    """Grade every mutant with ``seeds`` fresh seeds."""
    tally = Tally("mutants")
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for module in modules():
            for mutant in module.suite.mutants:
                tally.kinds += 1
                path = _write(mutant, module, Path(folder) / f"{module.slug}-{mutant.id}")
                for number in range(seeds):
                    report = grader.grade(path, module.suite, sandbox=sandbox)
                    tally.trials += 1
                    if problem := next(expectations.survives(mutant, report), ""):
                        tally.problems.append(f"{module.slug}/{mutant.id}, seed {report.seed}: "
                                              f"{problem}")
                    say(f"{module.slug}/{mutant.id} {number + 1}/{seeds}")
    tally.seconds = time.monotonic() - started
    return tally


def _write(mutant: Mutant, module: Module, folder: Path) -> Path:
    """All files of a mutant; its kernel.py."""
    solution = {name: (module.solution.parent / name).read_text()
                for name in (module.solution.name, *module.suite.files)}
    module_files.write(mutant.apply_to(solution), folder)
    return folder / module.solution.name


def told(report: grader.Report) -> str:
    """What a report says first."""
    first = report.first_failure
    if first is None:
        return f"{report.verdict} {report.reason}"
    return f"{first.name}: {first.findings[0].code} {first.findings[0].seen}"
