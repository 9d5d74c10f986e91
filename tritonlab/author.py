"""Author: what a module has to fulfil before anyone meets it, every demand as a pure check."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import grader
from grader import syntax
from grader.blanks import blanks_left
from grader.inputs import Input, Sparse
from grader.places import numbered_comments
from grader.report import Kind
from grader.source import is_kernel
from grader.words import ranges
from tritonlab import reach
from tritonlab.course import Course, Module, Roots

if TYPE_CHECKING:
    from grader.suite import Case, Function, Mutant, Suite

EXERCISE_FILES = ("module.toml", "README.md", "lesson.py", "kernel.py")
SOLUTION_FILES = ("kernel.py",)
SUITE_FILES = ("suite.py", "mutants.toml")
KERNEL = "kernel.py"
HEADINGS = (
    "What you will be able to do", "Why it exists", "The idea", "Worked example", "Your task",
    "How it is graded", "Best practices", "Pitfalls", "Going further", "Three questions",
    "Time, prerequisites, next module",
)
STARTERS = ("blanks", "slow", "broken", "specification")  # what exercises of a track may be
PROMPT = "WRITE ME"  # what `tritonlab new` leaves where only an author can go on
DIAGRAM_COLUMNS = 78
RUNGS = 3
PASTED = 13  # characters, without spaces, from which on a line counts as one of the solution
PUBLIC_CORRECTNESS, PUBLIC_EDGE = 3, 1


@dataclass(frozen=True)
class Material:
    """A module as its author wrote it. ``starter`` is what its track says of exercises."""

    module: Module
    starter: str
    readme: str
    exercise: Mapping[str, str]  # texts by path: kernel.py, and what else the suite names
    solution: Mapping[str, str]
    suite: Suite

    @property
    def marker(self) -> str:
        """The word before the numbers of the exercise's places."""
        return self.module.marker

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions that the suite asks for."""
        return tuple(self.suite.signatures)

    @property
    def chosen_by(self) -> tuple[str, ...]:
        """What hints by function are chosen by: what a case calls, asks or reads."""
        asked = (case.about or self.suite.entry for case in self.cases)
        return tuple(dict.fromkeys(asked))

    @property
    def cases(self) -> Sequence[Case]:
        """Those of all functions."""
        return self.suite.all_cases


def read(module: Module, starter: str) -> Material:
    """Read a module whose files are complete.

    Raises:
        Exception: whatever the author's suite raises when it is loaded.
    """
    suite = grader.load_suite(module.suite)
    exercise, solution = (
        {name: _text(folder / name) for name in (KERNEL, *further(suite))
         if (folder / name).is_file()}
        for folder in (module.folder, module.solution.parent))
    return Material(module, starter, _text(module.folder / "README.md"), exercise, solution, suite)


def further(suite: Suite) -> tuple[str, ...]:
    """The files of a submission beside its kernel.py."""
    return tuple(getattr(suite, "files", ()))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def python_of(texts: Mapping[str, str]) -> str:
    """All Python files in one text, for what is read of all of them together."""
    return "\n".join(text for name, text in texts.items() if name.endswith(".py"))


# ---------------------------------------------------------------------------------------------
# Files


def strays(course: Course, roots: Roots) -> Iterator[str]:
    """What is wrong with the course as a whole: what belongs to no module, or is there twice."""
    for track in course.tracks:
        if track.starter not in STARTERS:
            yield f"tracks/{track.folder}/track.toml: {no_starter(track.starter)}"
        for names in ([m.number for m in track.modules], [m.id for m in track.modules]):
            yield from (f"two modules of {track.id} are {name}" for name in dict.fromkeys(names)
                        if names.count(name) > 1)
    tracks = {track.folder for track in course.tracks}
    known = {f"{module.track}/{module.folder.name}" for module in course.modules}
    for kind, root in (("tracks", roots.tracks), ("solutions", roots.solutions),
                       ("suites", roots.suites)):
        for path in _entries(root):
            if path.name not in tracks and path.name != "__init__.py":
                yield f"{kind}/{path.name} belongs to no track"
                continue
            for inner in _entries(path) if path.is_dir() else ():
                name = f"{path.name}/{inner.name}"
                if name not in known and inner.name != "track.toml":
                    why = "has no module.toml, or no name such as 07-slug" if kind == "tracks" \
                        else "belongs to no module"
                    yield f"{kind}/{name} {why}"


def no_starter(starter: str) -> str:
    """What to say of a starter that no track may have."""
    return f"starter = \"{starter}\" is none of {', '.join(STARTERS)}"


def files(module: Module) -> Iterator[str]:
    """Files that every module has, and this one lacks."""
    for kind, folder, needed in _folders(module):
        for name in needed:
            if not (folder / name).is_file():
                yield f"{kind}/{module.track}/{module.folder.name}/{name} is missing"


def nothing_astray(material: Material) -> Iterator[str]:
    """The suite's further files are there, and no others.

    Beside a suite lies what another file there names.
    """
    module, more = material.module, further(material.suite)
    for kind, folder, needed in _folders(module):
        place = f"{kind}/{module.track}/{module.folder.name}"
        there = {path.name for path in _entries(folder)}
        known = {*needed, *more}
        if kind == "suites":
            texts = {path: _text(path) for path in _entries(folder) if path.suffix == ".py"}
            known = {*needed, "calls.py", *(
                path.name for path in _entries(folder)
                if any(path.stem in text for one, text in texts.items() if one != path))}
        else:
            there = {str(path.relative_to(folder)) for path in folder.rglob("*")
                     if path.is_file() and "__pycache__" not in path.parts}
            yield from (f"{place}/{name} is missing, which the suite names"
                        for name in more if name not in there)
        for name in sorted(there - known):
            yield f"{place}/{name} is astray: nothing in the suite names it"


def _folders(module: Module) -> Iterator[tuple[str, Path, tuple[str, ...]]]:
    """The three folders of a module, with what each has to hold."""
    yield "tracks", module.folder, EXERCISE_FILES
    yield "solutions", module.solution.parent, SOLUTION_FILES
    yield "suites", module.suite.parent, SUITE_FILES


def _entries(folder: Path) -> list[Path]:
    """What lies in a folder, without what Python leaves there."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.name != "__pycache__")


# ---------------------------------------------------------------------------------------------
# What can be read


def nothing_left_to_write(material: Material) -> Iterator[str]:
    """Prompts of the scaffold that are still there."""
    module = material.module
    for kind, folder, _ in _folders(module):
        for path in _entries(folder):
            text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
            for number, line in enumerate(text.splitlines(), 1):
                if PROMPT in line:
                    what = line.partition(PROMPT)[2].strip(' :"\'*`,])')
                    yield f"{kind}/…/{path.name}, line {number}: {what}"


def headings_and_diagrams(material: Material) -> Iterator[str]:
    """The sections of the lesson in their order, and a diagram of the idea that fits."""
    bare = re.sub(r"^```.*?^```", "", material.readme, flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"^## (.+?)\s*$", bare, re.MULTILINE)
    if not re.match(r"# \S", material.readme):
        yield "README.md does not begin with a title"
    yield from (f"README.md has no section '{name}'" for name in HEADINGS if name not in found)
    yield from (f"README.md has a section '{name}', which no module has"
                for name in dict.fromkeys(found) if name not in HEADINGS)
    known = [name for name in found if name in HEADINGS]
    if sorted(known) == sorted(HEADINGS) and known != list(HEADINGS):
        first = next(a for a, b in zip(known, HEADINGS, strict=True) if a != b)
        yield f"README.md: the section '{first}' is out of order"
    yield from (f"README.md has the section '{name}' more than once"
                for name in HEADINGS if found.count(name) > 1)
    idea = re.search(r"^## The idea$(.*?)(?=^## |\Z)", material.readme, re.DOTALL | re.MULTILINE)
    if idea and "```text\n" not in idea[1]:
        yield "README.md: 'The idea' shows no diagram (a block that begins with ```text)"
    for block in re.findall(r"```text\n(.*?)```", material.readme, re.DOTALL):
        for line in block.splitlines():
            if len(line) > DIAGRAM_COLUMNS:
                yield (f"README.md: a line of a diagram has {len(line)} columns, "
                       f"{DIAGRAM_COLUMNS} are the most: {line.strip()[:40]}…")


def numbers_and_hint_groups(material: Material) -> Iterator[str]:
    """Blanks or decisions are numbered 1 to n, and a group of hints helps with each."""
    found = _numbers(python_of(material.exercise), material.marker)
    count, marker = len(found), material.marker
    if sorted(found) != [*range(1, count + 1)]:
        yield (f"kernel.py: the comments `# {marker} n` are numbered {ranges(found)}, "
               f"not 1 to {count}")
    if not found and material.starter in ("blanks", "slow"):
        yield f"kernel.py has no comment `# {marker} 1: …`, although its track asks for them"
    if material.starter == "blanks" and material.suite.blanks != count:
        yield f"suite.py says blanks={material.suite.blanks}, kernel.py has {count}"
    if material.suite.marker != marker:
        yield f"suite.py says marker=\"{material.suite.marker}\", the track asks for \"{marker}\""
    helped = [n for group in material.module.hints for n in group.todos]
    if missing := sorted(set(found) - set(helped)):
        yield f"module.toml: no group of hints is for {marker} {ranges(missing)}"
    if extra := sorted(set(helped) - set(found)):
        yield f"module.toml: hints are for {marker} {ranges(extra)}, which kernel.py has not"
    if double := sorted({n for n in helped if helped.count(n) > 1}):
        yield f"module.toml: two groups of hints are for {marker} {ranges(double)}"
    yield from _hints_by_function(material, bool(found))


def _hints_by_function(material: Material, numbered: bool) -> Iterator[str]:
    helped = {name for group in material.module.hints for name in group.functions}
    for name in sorted(helped - set(material.chosen_by)):
        yield f"module.toml: hints are for `{name}`, which no case asks"
    for name in () if numbered else material.chosen_by:
        if name not in helped:
            yield f"module.toml: no group of hints names `{name}` among its functions"
    for group in material.module.hints:
        if not group.todos and not group.functions:
            yield f"module.toml: group {group.group} says neither `todos` nor `functions`"


def _numbers(text: str, marker: str) -> list[int]:
    """The numbers of the comments ``# MARKER n: …``, each where it appears first."""
    return list(dict.fromkeys(numbered_comments(text, marker).values()))


def rungs_of_hints(material: Material) -> Iterator[str]:
    """Three rungs a group, none of which holds a line of the solution."""
    code = (line.partition("  # ")[0] for text in material.solution.values()
            for line in text.splitlines())
    lines = {re.sub(r"\s", "", line): line.strip() for line in code}
    for group in material.module.hints:
        if len(group.rungs) != RUNGS:
            yield f"module.toml: group {group.group} has {len(group.rungs)} rungs, not {RUNGS}"
        for number, rung in enumerate(group.rungs, 1):
            text = re.sub(r"\s", "", rung)
            if not text:
                yield f"module.toml: rung {number} of group {group.group} is empty"
            for bare, line in lines.items():
                if len(bare) >= PASTED and bare in text:
                    yield (f"module.toml: rung {number} of group {group.group} holds a line of "
                           f"the solution: `{line}`")


def same_signatures(material: Material) -> Iterator[str]:
    """Exercise and solution define the same public functions, and agree in what is given."""
    try:
        ours, theirs = (signatures(python_of(texts))
                        for texts in (material.solution, material.exercise))
    except SyntaxError as error:
        yield f"a kernel.py cannot be parsed: {error}"
        return
    for name in material.functions:
        for place, defined in (("tracks", theirs), ("solutions", ours)):
            if name not in defined:
                yield f"{place}/…/kernel.py defines no `{name}`, which the suite grades"
    for name, signature in theirs.items():
        if name not in ours:
            yield f"the exercise defines `{name}{signature}`, the solution does not"
        elif ours[name] != signature:
            yield f"`{name}` is `{signature}` in the exercise and `{ours[name]}` in the solution"
    if material.starter == "blanks":
        given = set(_statements(python_of(material.solution)))
        for line in _statements(python_of(material.exercise)):
            if line not in given:
                yield f"the exercise gives a line that the solution has not: `{line}`"


def signatures(text: str) -> dict[str, str]:
    """The public functions of a file but its kernels, and the fields of its public classes."""
    found = {}
    for node in syntax.parse(text).body:
        if isinstance(node, ast.FunctionDef) and not is_kernel(node):
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            found[node.name] = f"({ast.unparse(node.args)}){returns}"
        elif isinstance(node, ast.ClassDef):
            fields = [ast.unparse(field) for field in node.body if isinstance(field, ast.AnnAssign)]
            found[node.name] = f"{{{', '.join(fields)}}}"
    # A function whose decorator is a blank is a kernel all the same: its block sizes tell.
    return {name: said for name, said in found.items()
            if not name.startswith("_") and "constexpr" not in said}


def _statements(text: str) -> Iterator[str]:
    """The statements of a file in one spelling: of nested ones the heads, blanks left out."""
    for node in ast.walk(syntax.parse(text)):
        if not isinstance(node, ast.stmt):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring, or a blank that is a line of its own
        for name in ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list"):
            if isinstance(getattr(node, name, None), list):
                setattr(node, name, [])
        blank = any(isinstance(inner, ast.Constant) and inner.value is Ellipsis
                    for inner in ast.walk(node))
        if not blank:
            yield ast.unparse(node).rstrip(":")


def no_blank_in_solution(material: Material) -> Iterator[str]:
    """The solution holds neither blanks nor the questions beside them."""
    for name, text in material.solution.items():
        if not name.endswith(".py"):
            continue
        for marker in ("TODO", "DECIDE"):
            if left := _numbers(text, marker):
                yield f"solutions/…/{name} still asks {marker} {ranges(left)}"
        try:
            tree = syntax.parse(text)
        except SyntaxError as error:
            yield f"solutions/…/{name} cannot be parsed: {error}"
            continue
        if finding := blanks_left(text, {}, tree, list(ast.walk(tree)), 0):
            yield f"solutions/…/{name}: {finding.seen}"


def public_cases(material: Material) -> Iterator[str]:
    """Enough cases for ``python kernel.py``, where tensors are compared at all."""
    cases = material.cases
    if all(case.kind is Kind.CALL for case in cases):
        return
    for kind, least in ((Kind.CORRECTNESS, PUBLIC_CORRECTNESS), (Kind.EDGE, PUBLIC_EDGE)):
        count = sum(case.public and case.kind is kind for case in cases)
        if count < least:
            yield (f"suite.py: {count} {kind} case{'s are' if count != 1 else ' is'} public, "
                   f"{least} at least should be")


def sound_mutants(material: Material) -> Iterator[str]:
    """There are mutants; each can be applied, changes something and names cases that exist."""
    mutants = material.suite.mutants
    names = {case.name for case in material.cases} | {
        law.name for law in material.suite.properties}
    if not mutants:
        yield "mutants.toml holds no mutant: nothing shows that the suite finds a mistake"
    for mutant in mutants:
        head = f"mutants.toml, {mutant.id}"
        if [m.id for m in mutants].count(mutant.id) > 1:
            yield f"{head}: another one has this id"
        if not mutant.codes:
            yield f"{head}: it names no code"
        if not mutant.meaning.strip():
            yield f"{head}: it does not say what such a failure means"
        try:
            if mutated(material, mutant) == material.solution:
                yield f"{head}: it is the solution"
        except ValueError as error:
            yield f"mutants.toml: {error}"
        for name in (*mutant.wrong, *mutant.right):
            if name not in names:
                yield f"{head}: no case is called '{name}'"
        try:
            re.compile(mutant.sign)
        except re.error as error:
            yield f"{head}: `sign` is no pattern: {error}"
        asked = set(_numbers(python_of(material.exercise), material.marker))
        if strange := sorted(set(mutant.todos) - asked):
            yield f"{head}: kernel.py has no {material.marker} {ranges(strange)}"


def draws(suite: Suite, name: str) -> bool:
    """Whether the case of this name has random inputs.

    The compile gate has none of its own, and a case at its real size has no values at all.
    """
    cases = [case for case in suite.all_cases if case.name == name
             and not (case.limits and case.limits.pass_at)]
    return any(law.name == name for law in suite.properties) or any(
        isinstance(spec, Input | Sparse) for case in cases for spec in case.inputs)


def concerned(material: Material, mutant: Mutant) -> Suite:
    """The suite without cases that run nothing of a mutant: they give what the solution's give.

    That is so of functions that reach nothing which it changes, and where all files that it changes
    are replaced. Cases stay that tell mistakes of its code apart, for the diagnosis.
    """
    suite = material.suite
    changed = [patch.file for patch in mutant.patches]
    texts = mutated(material, mutant)
    roots = {KERNEL, suite.kernel_file}
    telling = {name for other in suite.mutants if other.codes[:1] == mutant.codes[:1]
               for name in (*other.wrong, *other.right)}

    def is_left(case: Case) -> bool:
        trees = case.call.trees if case.call else ()
        return not trees or not all(name.startswith(tree.instead_of) or name in tree.files
                                    for tree in trees for name in changed)

    def left(function: Function, prefix: str) -> list[Case]:
        idle = function.entry and not reach.changes(
            function.called, material.solution, texts, roots)
        return [case for case in function.cases if is_left(case) and not (
            idle and case.call is None and case.reading is None
            and f"{prefix}{case.name}" not in telling)]

    functions = [replace(function, cases=left(function, f"{function.entry}: "))
                 for function in suite.functions]
    return replace(suite, cases=left(suite, ""), functions=functions)


def is_of_values(suite: Suite, name: str) -> bool:
    """Whether the case of this name, or the law, has no limits on what a launch costs."""
    return all(case.limits is None for case in suite.all_cases if case.name == name)


def repeated(suite: Suite, name: str, times: int) -> tuple[Suite, list[str]]:
    """A case or a law so many times, each with inputs of its own, and what they are called.

    Before them comes the case that shows the learner's own block.
    """
    labels = [f", time {time}" for time in range(1, times + 1)]

    def kept(function: Function) -> list[Case]:
        prefix = f"{function.entry}: " if suite.functions and function is not suite else ""
        asked = [case for case in function.cases if f"{prefix}{case.name}" == name]
        first = [case for case in function.cases if case.kind is Kind.CORRECTNESS][:1]
        return [*(case for case in first if asked and case not in asked),
                *(replace(case, name=f"{case.name}{label}") for case in asked for label in labels)]

    laws = tuple(replace(law, name=f"{law.name}{label}")
                 for law in suite.properties if law.name == name for label in labels)
    functions = [replace(function, cases=kept(function)) for function in suite.functions]
    narrow = replace(suite, cases=kept(suite), functions=functions, properties=laws)
    return narrow, [f"{name}{label}" for label in labels]


def mutated(material: Material, mutant: Mutant) -> dict[str, str]:
    """The files of a mutant.

    Raises:
        ValueError: a text to replace does not occur exactly once in the solution.
    """
    return mutant.apply_to(material.solution)


READ: Mapping[str, Callable[[Material], Iterable[str]]] = {
    "nothing astray": nothing_astray,
    "nothing left to write": nothing_left_to_write,
    "headings and diagrams of the lesson": headings_and_diagrams,
    "numbers and groups of hints": numbers_and_hint_groups,
    "rungs of hints": rungs_of_hints,
    "signatures of exercise and solution": same_signatures,
    "no blank in the solution": no_blank_in_solution,
    "public cases": public_cases,
    "mutants can be applied": sound_mutants,
}
