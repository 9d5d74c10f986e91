"""Grades mutants and planted mistakes, and compares each diagnosis with the place."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import grader
from grader.diagnosis.codes import MEANINGS
from grader.report import Finding, Report, Verdict
from grader.sandbox import Sandbox
from grader.submission import source, syntax
from grader.suite import Suite
from tests.fidelity import variants
from tests.fidelity.diagnosis.planting import planted
from tritonlab.authoring import module_files
from tritonlab.authoring import mutants as authored
from tritonlab.authoring.module_files import KERNEL, Material
from tritonlab.course import course

# Codes whose general meaning states neither cause nor kind of mistake.
CATCH_ALL = ("N01",)
MOST_TRIED = 16  # mistakes of one module, those that nothing notices included


@dataclass(frozen=True)
class Diagnosis:
    """What the first failure of a grade said of one mistake; ``code`` is empty if none failed."""

    module: str
    name: str
    line: int
    before: str
    after: str
    code: str
    means: str
    where: str
    seen: str
    catch_all: bool
    placed: bool


def modules(only: Collection[str] = ()) -> Iterator[Material]:
    """The modules of the shipped course, or those with these slugs."""
    shipped = course.load(course.shipped_roots())
    for module in shipped.modules:
        if not only or module.slug in only:
            material = module_files.read(module, "")
            yield replace(material, suite=grader.load_suite(
                module.suite, module.folder, module.solution.parent))


def mutants(material: Material, box: Sandbox, folder: Path) -> Iterator[Diagnosis]:
    """The diagnosis of every mutant of a module, whose place is where its text differs."""
    for mutant in material.suite.mutants:
        texts = mutant.apply_to(material.solution)
        lines = {file: _changed(text, texts.get(file, ""))
                 for file, text in material.solution.items()}
        report = _graded(material, authored.concerned(material, mutant), texts, box,
                         folder / "mutants" / material.module.slug / mutant.id)
        patch = mutant.patches[0]
        yield _diagnosis(material, texts, mutant.id, lines, (patch.find, patch.replace), report)


def mistakes(material: Material, most: int, box: Sandbox, folder: Path,
             right: Mapping[str, str] | None = None, variant: str = "") -> Iterator[Diagnosis]:
    """The diagnoses of planted mistakes that a case notices.

    Args:
        right: the files in which they are planted; the solution's by default.
        variant: the name of other files.
    """
    file, found, right = material.suite.kernel_file, 0, right or material.solution
    seed = f"{material.module.slug} {variant}".strip()
    for number, one in enumerate(planted(right[file], seed)):
        if found == most or number == MOST_TRIED:
            return
        texts = {**right, file: one.text}
        report = _graded(material, material.suite, texts, box,
                         folder / "planted" / seed / str(number))
        if report.verdict is not Verdict.FAILED:
            continue
        found += 1
        yield _diagnosis(material, texts, f"{variant}: {one.kind}".lstrip(": "),
                         {file: range(one.line, one.last + 1)}, (one.before, one.after), report)


def in_variants(material: Material, most: int, box: Sandbox, folder: Path) -> Iterator[Diagnosis]:
    """The same in each right kernel that differs from the solution, if it passes here."""
    slug, solution = material.module.slug, material.module.solution
    for path in variants.of(slug):
        whole = variants.whole(path, solution, folder / "variants" / slug / path.stem)
        right = {file: (whole.parent / file).read_text() if file != KERNEL else whole.read_text()
                 for file in material.solution}
        report = _graded(material, material.suite, right, box, whole.parent / "graded")
        if report.verdict is Verdict.PASSED:
            yield from mistakes(material, most, box, folder, right, path.stem)


def _graded(material: Material, suite: Suite, texts: Mapping[str, str], box: Sandbox,
            folder: Path) -> Report:
    module_files.write(texts, folder)
    return grader.grade(folder / KERNEL, suite, sandbox=box, effort="diagnosis")


def _changed(before: str, after: str) -> list[int]:
    """The lines of ``after`` that differ; where lines are gone, those around them."""
    lines: list[int] = []
    matcher = difflib.SequenceMatcher(None, before.split("\n"), after.split("\n"), autojunk=False)
    for operation, _, _, start, end in matcher.get_opcodes():
        if operation == "delete":
            lines += [start, start + 1]
        elif operation != "equal":
            lines += range(start + 1, end + 1)
    return lines


def _diagnosis(material: Material, texts: Mapping[str, str], name: str,
               lines: Mapping[str, Collection[int]], codes: tuple[str, str],
               report: Report) -> Diagnosis:
    """``lines`` are those that the mistake changed, by file."""
    first = report.first_failure
    line = min((line for changed in lines.values() for line in changed), default=0)
    if first is None or not first.findings:
        return Diagnosis(material.module.slug, name, line, *codes, "", "", "", "", False, False)
    finding = first.findings[0]
    catch_all = finding.code in CATCH_ALL and finding.means == MEANINGS[finding.code]
    return Diagnosis(material.module.slug, name, line, *codes, finding.code,
                     finding.means, finding.where, finding.seen, catch_all,
                     _placed(finding, material, texts, lines))


def _placed(finding: Finding, material: Material, texts: Mapping[str, str],
            changed: Mapping[str, Collection[int]]) -> bool:
    """Whether the first place that a finding names contains one of the lines.

    The first place is its line, and the TODO that it names first; of a file that is not Python,
    the file.
    """
    file = finding.file or material.suite.kernel_file
    text, lines = texts[file], changed.get(file, ())
    if not file.endswith(".py"):
        return bool(lines)
    tree = syntax.tree_of(text)
    numbers = source.places(tree, text, source.numbered_comments(text),
                            material.suite.exercise).lines
    named = _statement(tree, finding.line) if finding.line else range(0)
    if finding.where.startswith("After"):  # a statement is missing between this one and the next
        named = range(named.start, next((n for n, line in enumerate(text.split("\n"), 1)
                                         if n >= named.stop and line.strip()[:1] not in ("", "#")),
                                        named.stop) + 1)
    return any(line in named for line in lines) or (bool(finding.todos) and any(
        numbers.get(line) == finding.todos[0] for line in lines))


def _statement(tree: ast.Module, line: int) -> range:
    """The lines of the innermost statement around a line, or of its head."""
    around = [node for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.ExceptHandler)
              and line in range(syntax.first_line(node), syntax.last_line(node) + 1)]
    if not around:
        return range(line, line + 1)
    inner = min(around, key=lambda node: syntax.last_line(node) - node.lineno)
    body = getattr(inner, "body", [])
    last = max(inner.lineno, body[0].lineno - 1) if body else syntax.last_line(inner)
    return range(syntax.first_line(inner), last + 1)
