"""Verdict, code, message and place of every case of known files that does not pass."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grader
from grader.report import Report, Verdict
from grader.sandbox import Sandbox
from tritonlab.authoring import module_files
from tritonlab.authoring.module_files import KERNEL, Material
from tritonlab.course import course

SEED = "60d5eed"
FOLDER = Path(__file__).parent / "verdicts"
N_MUTANTS = 2
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")  # of an object in memory: another one in every run


def modules(slugs: Sequence[str] = ()) -> list[Material]:
    """The shipped modules, or those with one of ``slugs``, in the order of the course."""
    shipped = course.load()
    starters = {track.folder: track.starter for track in shipped.tracks}
    return [module_files.read(module, starters[module.track]) for module in shipped.modules
            if not slugs or module.slug in slugs]


def kept(material: Material) -> Path:
    """The file with the verdicts of one module."""
    return FOLDER / f"{material.module.slug}.json"


def of(material: Material, sandbox: Sandbox, mutants: Sequence[str] = ()) -> str:
    """The verdicts of one module's solution, exercise and mutants as JSON, a line for each case.

    Without the ids of ``mutants``, two are taken: the first and the one in the middle.
    """
    known = {mutant.id: mutant for mutant in material.suite.mutants}
    ids = list(known)
    chosen = [known[name] for name in mutants or (ids[0], ids[len(ids) // N_MUTANTS])]
    trees = {"solution": material.solution, "exercise": material.exercise,
             **{f"mutant {mutant.id}": mutant.apply_to(material.solution) for mutant in chosen}}
    lines = [f"{json.dumps(name)}: {_report(files, material, sandbox)}"
             for name, files in trees.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def mutants_of(text: str) -> list[str]:
    """The ids of the mutants whose verdicts are kept."""
    return [name.removeprefix("mutant ") for name in json.loads(text) if name.startswith("mutant")]


def _report(files: dict[str, str], material: Material, sandbox: Sandbox) -> str:
    with tempfile.TemporaryDirectory() as folder:
        module_files.write(files, Path(folder))
        report = grader.grade(Path(folder) / KERNEL, material.suite, sandbox=sandbox, seed=SEED,
                              effort="uncompiled")
    explanations: dict[str, int] = {}
    cases = _cases(report, explanations)
    lines = [f'"verdict": {_json([str(report.verdict), report.reason])}',
             *(f"{_json(name)}: {_json(case)}" for name, case in cases.items()),
             *(f'"explanation {number}": {_json(text)}' for text, number in explanations.items())]
    return "{\n " + ",\n ".join(ADDRESS.sub("0x...", line) for line in lines) + "}"


def _cases(report: Report, explanations: dict[str, int]) -> dict[str, list[Any]]:
    """[verdict, reason, *findings]; a finding is [code, line, text, number of its explanation]."""
    cases: dict[str, list[Any]] = {}
    for result in report.results:
        if result.verdict is Verdict.PASSED:
            continue
        cases[result.name] = [str(result.verdict), result.reason]
        for finding in result.findings:
            explanation = "\n".join((finding.means, finding.where, finding.next_step))
            number = explanations.setdefault(explanation, len(explanations) + 1)
            cases[result.name].append([finding.code, finding.line, finding.seen, number])
    return cases


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
