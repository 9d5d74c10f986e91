"""Checks of a module's files that run nothing; each yields its faults."""

import ast
import difflib
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import pairwise

from grader.diagnosis import messages
from grader.engine.compiler import targets
from grader.finding import NAMES, strange_relations
from grader.report import Kind
from grader.submission import syntax
from grader.submission.completion import NotCompletable, complete
from grader.submission.dataflow import is_kernel
from grader.submission.placeholders import blanks_left
from grader.submission.todo_regions import numbered_comments
from grader.suite.mistakes import nearest
from grader.text import joined, ranges, toml_line
from tritonlab.authoring.module_files import Material, entries, folders, nothing_astray, python_of
from tritonlab.course.course import HintGroup

HEADINGS = (
    "What you will be able to do", "Why it exists", "The idea", "Worked example", "Your task",
    "How it is graded", "Best practices", "Pitfalls", "In real code", "Going further",
    "Three questions", "Time, prerequisites",
)
CURES = {"blanks": "put `...  # TODO 1: a question?` in place of code of the solution",
         "slow": "write `# DECIDE 1: a question?` at each costly place"}
GRADING_SHARE = 0.1  # of a lesson's words; what all modules share stands on one page
PROMPT = "WRITE ME"  # what `tritonlab new` leaves where only an author can go on
DIAGRAM_COLUMNS = 78
RUNGS = 3
FENCED = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PASTED = 13  # characters, without spaces, from which on a line counts as one of the solution
PUBLIC_CORRECTNESS, PUBLIC_EDGE = 3, 1


def nothing_left_to_write(material: Material) -> Iterator[str]:
    """Finds prompts of the scaffold that are left."""
    module = material.module
    for kind, folder, _ in folders(module):
        for path in entries(folder):
            text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
            for number, line in enumerate(text.splitlines(), 1):
                if PROMPT in line:
                    prompt = line.partition(PROMPT)[2].strip(' :"\'*`,])')
                    yield f"{kind}/…/{path.name}, line {number}: {prompt}"


def headings_and_diagrams(material: Material) -> Iterator[str]:
    """Checks the order of the lesson's sections and the width of its diagrams."""
    bare = re.sub(r"^```.*?^```", "", material.readme, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^## (.+?)\s*$", bare, re.MULTILINE)
    if not re.match(r"# \S", material.readme):
        yield "README.md does not begin with a title"
    yield from (f"README.md has no section '{name}'" for name in HEADINGS if name not in headings)
    yield from (f"README.md has a section '{name}', which is not a standard section"
                for name in dict.fromkeys(headings) if name not in HEADINGS)
    expected = [name for name in headings if name in HEADINGS]
    if sorted(expected) == sorted(HEADINGS) and expected != list(HEADINGS):
        first = next(a for a, b in zip(expected, HEADINGS, strict=True) if a != b)
        yield f"README.md: the section '{first}' is out of order"
    yield from (f"README.md has the section '{name}' more than once"
                for name in HEADINGS if headings.count(name) > 1)
    idea = _section(material.readme, "The idea")
    if idea and "```text\n" not in idea:
        yield "README.md: 'The idea' has no diagram (a block that begins with ```text)"
    if idea and idea.count("```text\n") > idea.count("<!-- In words: "):
        yield ("README.md: 'The idea' has a diagram without words for those who cannot see it "
               "(`<!-- In words: … -->` below the block)")
    for block in re.findall(r"```text\n(.*?)```", material.readme, re.DOTALL):
        for line in block.splitlines():
            if len(line) > DIAGRAM_COLUMNS:
                yield (f"README.md: a line of a diagram has {len(line)} columns, "
                       f"{DIAGRAM_COLUMNS} are the most: {line.strip()[:40]}…")
    yield from _translated_sections(material)


def _section(readme: str, heading: str) -> str:
    section = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", readme,
                        re.DOTALL | re.MULTILINE)
    return section[1] if section else ""


def _translated_sections(material: Material) -> Iterator[str]:
    """Checks that a translated lesson has all sections in order.

    They are identified by a comment in its heading, such as ``<!-- why-it-exists -->``.
    """
    anchors = [re.sub(r"[^a-z]+", "-", heading.lower()) for heading in HEADINGS]
    for file in sorted(material.module.folder.glob("README.*.md")):
        bare = re.sub(r"^```.*?^```", "", file.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        headings = re.findall(r"^## (.+?)\s*$", bare, re.MULTILINE)
        own = [match[1] for heading in headings
               if (match := re.search(r"<!-- ([a-z-]+) -->$", heading))]
        for heading in headings:
            if not re.search(r"<!-- [a-z-]+ -->$", heading):
                yield (f"{file.name}: the section '{heading}' has no anchor such as "
                       "<!-- the-idea -->")
        yield from (f"{file.name} has no section <!-- {one} -->" for one in anchors
                    if one not in own)
        yield from (f"{file.name} has a section <!-- {one} -->, which is not a standard section"
                    for one in dict.fromkeys(own) if one not in anchors)
        if sorted(own) == sorted(anchors) and own != anchors:
            yield f"{file.name}: the sections are out of order"


def short_on_grading(material: Material) -> Iterator[str]:
    """Checks how much of the lesson is about grading, and that it links the shared page."""
    text = re.sub(r"<!--.*?-->", "", material.readme, flags=re.DOTALL)
    section = _section(text, "How it is graded")
    share = len(section.split()) / max(1, len(text.split()))
    if share > GRADING_SHARE:
        yield (f"README.md: 'How it is graded' takes {share:.0%} of the words, "
               f"{GRADING_SHARE:.0%} are the most: `tritonlab read grading` has what is common")
    if "grading.md" not in section:
        yield "README.md: 'How it is graded' does not link ../../grading.md"


def three_answers(material: Material) -> Iterator[str]:
    """Checks that each of the three questions has an answer."""
    questions = re.findall(r"^(\d)\. ", _section(material.readme, "Three questions"), re.MULTILINE)
    answers = re.findall(r"^(\d)\. ", material.module.answers(), re.MULTILINE)
    for place, numbers in (("README.md: 'Three questions'", questions), ("answers.md", answers)):
        if numbers != ["1", "2", "3"]:
            yield f"{place} is not a list with the numbers 1, 2, 3"


def numbers_and_hint_groups(material: Material) -> Iterator[str]:
    """Checks that TODOs are numbered 1 to n, each with a group of hints."""
    numbers = _numbers(python_of(material.exercise), material.module.marker)
    count, marker = len(numbers), material.module.marker
    if sorted(numbers) != [*range(1, count + 1)]:
        yield (f"kernel.py: the comments `# {marker} n` are numbered {ranges(numbers)}, "
               f"not 1 to {count}")
    elif material.starter == "blanks" and (astray := _out_of_order(python_of(material.exercise))):
        yield f"kernel.py: {marker} {astray[1]} stands after {marker} {astray[0]}"
    if not numbers and material.starter in ("blanks", "slow"):
        yield (f"kernel.py has no comment `# {marker} 1: …`, although its track asks for them: "
               f"{CURES[material.starter]}")
    if material.starter == "blanks" and material.suite.blanks != count:
        yield f"suite.py says blanks={material.suite.blanks}, kernel.py has {count}"
    if material.suite.marker != marker:
        yield f"suite.py says marker=\"{material.suite.marker}\", the track asks for \"{marker}\""
    helped = [n for group in material.module.hints for n in group.todos]
    if missing := sorted(set(numbers) - set(helped)):
        yield f"module.toml: no group of hints is for {marker} {ranges(missing)}"
    if extra := sorted(set(helped) - set(numbers)):
        yield f"module.toml: hints are for {marker} {ranges(extra)}, which kernel.py does not have"
    if double := sorted({n for n in helped if helped.count(n) > 1}):
        yield f"module.toml: two groups of hints are for {marker} {ranges(double)}"
    functions = {name for group in material.module.hints for name in group.functions}
    for name in sorted(functions - set(material.chosen_by)):
        yield f"module.toml: hints are for `{name}`, which no case asks"
    for name in () if numbers else material.chosen_by:
        if name not in functions:
            yield f"module.toml: no group of hints names `{name}` among its functions"
    for group in material.module.hints:
        if not group.todos and not group.functions:
            yield f"module.toml: group {group.group} says neither `todos` nor `functions`"


def _numbers(text: str, marker: str) -> list[int]:
    """Returns the distinct numbers of comments ``# MARKER n: …`` in order."""
    return list(dict.fromkeys(numbered_comments(text, marker).values()))


def _out_of_order(text: str) -> tuple[int, int] | None:
    """Returns the first two TODOs of which the second should stand above the first."""
    numbers = numbered_comments(text, "TODO").values()
    return next(((one, other) for one, other in pairwise(numbers) if other < one), None)


def rungs_of_hints(material: Material) -> Iterator[str]:
    """Checks that each group, in each language, has three rungs without a line of the solution."""
    code = (line.partition("  # ")[0] for text in material.solution.values()
            for line in text.splitlines())
    lines = {re.sub(r"\s", "", line): line.strip() for line in code}
    named = [(f"group {group.group}", group) for group in material.module.hints]
    named += [(f"[hints.{one.language}] of group {group.group}", translated)
              for group in material.module.hints for one in group.translations
              if (translated := group.translated(one.language))]
    for name, group in named:
        if len(group.rungs) != RUNGS:
            yield f"module.toml: {name} has {len(group.rungs)} rungs, not {RUNGS}"
        for number, rung in enumerate(group.rungs, 1):
            text = re.sub(r"\s", "", rung)
            if not text:
                yield f"module.toml: rung {number} of {name} is empty"
            for code in FENCED.findall(rung):
                try:
                    syntax.parse(textwrap.dedent(code))
                except SyntaxError as error:
                    yield (f"module.toml: the code in rung {number} of {name} cannot "
                           f"be parsed: {error}")
            for bare, line in lines.items():
                if len(bare) >= PASTED and bare in text:
                    yield (f"module.toml: rung {number} of {name} holds a line of "
                           f"the solution: `{line}`")


def same_signatures(material: Material) -> Iterator[str]:
    """Checks that exercise and solution have the same signatures and given lines."""
    if unparsed := [*_unparsed(material)]:
        yield from unparsed
        return
    ours, theirs = (signatures(python_of(texts))
                    for texts in (material.solution, material.exercise))
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
        solution = set(_statements(python_of(material.solution)))
        for line in _statements(python_of(material.exercise)):
            if line not in solution:
                yield f"the exercise gives a line that the solution does not have: `{line}`"


def _unparsed(material: Material) -> Iterator[str]:
    """Finds Python files of exercise and solution that cannot be parsed."""
    for kind, texts in (("tracks", material.exercise), ("solutions", material.solution)):
        for name, text in texts.items():
            try:
                syntax.parse(text if name.endswith(".py") else "")
            except SyntaxError as error:
                yield (f"{kind}/…/{name}, line {error.lineno}: Python cannot parse this: "
                       f"{error.msg}. Correct the syntax")


def signatures(text: str) -> dict[str, str]:
    """Returns the signatures of public functions, kernels apart, and the fields of classes."""
    spellings = {}
    for node in syntax.parse(text).body:
        if isinstance(node, ast.FunctionDef) and not is_kernel(node):
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            spellings[node.name] = f"({ast.unparse(node.args)}){returns}"
        elif isinstance(node, ast.ClassDef):
            fields = [ast.unparse(field) for field in node.body if isinstance(field, ast.AnnAssign)]
            spellings[node.name] = f"{{{', '.join(fields)}}}"
    # A function with a blank as decorator is a kernel if it has constexpr parameters.
    return {name: spelling for name, spelling in spellings.items()
            if not name.startswith("_") and "constexpr" not in spelling}


def _statements(text: str) -> Iterator[str]:
    """Yields the statements of a file as unparsed, nested ones by their heads, without blanks."""
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


def exercise_can_be_completed(material: Material) -> Iterator[str]:
    """Checks that code of the solution can stand in each blank of the exercise."""
    if material.starter == "blanks" and not any(_unparsed(material)):
        exercise = python_of(material.exercise)
        try:
            complete(exercise, exercise, python_of(material.solution))
        except NotCompletable as error:
            yield f"kernel.py cannot be graded step by step: {error}"


def no_blank_in_solution(material: Material) -> Iterator[str]:
    """Checks that the solution has neither blanks nor TODO comments."""
    for name, text in material.solution.items():
        if not name.endswith(".py"):
            continue
        for marker in ("TODO", "DECIDE"):
            if left := _numbers(text, marker):
                yield f"solutions/…/{name} still asks {marker} {ranges(left)}"
        try:
            tree = syntax.parse(text)
        except SyntaxError:  # reported with the signatures
            continue
        if finding := blanks_left(text, {}, tree, 0):
            yield f"solutions/…/{name}: {finding.seen}"


def public_cases(material: Material) -> Iterator[str]:
    """Checks that enough cases are public, if tensors are compared at all."""
    cases = material.suite.all_cases
    if not cases and not material.suite.properties:
        yield "suite.py has no case: write cases=[correctness(…), …]"
    if all(case.kind is Kind.CALL for case in cases):
        return
    for kind, least in ((Kind.CORRECTNESS, PUBLIC_CORRECTNESS), (Kind.EDGE, PUBLIC_EDGE)):
        count = sum(case.public and case.kind is kind for case in cases)
        if count < least:
            yield (f"suite.py: {count} {kind} case{'s are' if count != 1 else ' is'} public, "
                   f"{least} at least should be")


def sound_mutants(material: Material) -> Iterator[str]:
    """Checks that each mutant applies, changes something and names existing cases."""
    mutants = material.suite.mutants
    names = {case.name for case in material.suite.all_cases} | {
        prop.name for prop in material.suite.properties}
    if not mutants:
        yield ("mutants.toml has no mutant: nothing proves that the suite detects a mistake. "
               "Write [[mutant]] with id, title, codes, meaning and [[mutant.patch]]")
    for number, mutant in enumerate(mutants):
        head = f"{_mutant_line(material, number)}: mutant {mutant.id}"
        if [m.id for m in mutants].count(mutant.id) > 1:
            yield f"{head}: another mutant has this id"
        if not mutant.codes:
            yield f"{head}: it names no code"
        if not mutant.meaning.strip():
            yield f"{head}: it has no meaning"
        try:
            if mutant.apply_to(material.solution) == material.solution:
                yield f"{head}: it is the solution"
        except ValueError as error:
            yield (f"{_mutant_line(material, number, 'patch', 0, 'find')}: {error} Copy it from "
                   "the solution, with as much around it as makes it unique")
        for name in (*mutant.wrong, *mutant.right):
            if name not in names:
                yield f"{head}: no case is called '{name}'.{nearest(name, names)}"
        if fields := sorted({*mutant.sign} - messages.fields() | strange_relations(mutant.sign)):
            yield f"{head}: `sign` names {' and '.join(fields)}, which no finding has"
        todos = set(_numbers(python_of(material.exercise), material.module.marker))
        if strange := sorted(set(mutant.todos) - todos):
            yield f"{head}: kernel.py has no {material.module.marker} {ranges(strange)}"


def stated_thresholds(material: Material) -> Iterator[str]:
    """Checks that 'How it is graded' states the required speeds and traffic of the suite."""
    limits = [case.limits for case in material.suite.all_cases if case.limits]
    section = _section(material.readme, "How it is graded")
    first = material.readme[:material.readme.find("## How it is graded")].count("\n") + 1

    def line(match: re.Match[str]) -> str:
        return f"README.md, line {first + section[:match.start()].count(chr(10))}"

    shares = {round(100 * share, 6) for one in limits for share in (one.pass_at, one.stretch)
              if share is not None and share >= LEAST_SHARE}
    stated = {float(text) for text in re.findall(rf"{_NUMBER}\s*%", section)}
    if stated:  # a lesson without numbers states nothing that could differ
        for share in sorted(shares - stated):
            yield (f"README.md, line {first}: 'How it is graded' does not state {share:g} %, which "
                   "suite.py has as pass_at or stretch. Correct one of them")
    for match in re.finditer(rf"{_NUMBER}\s*%\s+of\s+(?:the\s+)?(?:copy|speed)", section):
        if float(match[1]) not in shares:
            required = _listed(f"{share:g} %" for share in sorted(shares))
            yield (f"{line(match)}: the lesson requires {match[1]} % of a speed, the suite "
                   f"{required}. Correct one of them")
    ratios = {f"{ratio:.2f}x" for one in limits for ratio in (one.traffic, one.flops) if ratio}
    for match in re.finditer(r"(\d+\.\d\dx)\s+of\s+the\s+minimum", section):
        if match[1] not in ratios:
            yield (f"{line(match)}: the lesson allows {match[1]} of the minimum, the suite "
                   f"{_listed(sorted(ratios))}. Correct one of them")


_NUMBER = r"(\d+(?:\.\d+)?)"
LEAST_SHARE = 0.005  # of the roofline; less is required so that a prediction is shown


def _listed(values: Iterable[str]) -> str:
    return joined(values, "or") if (values := [*values]) else "nothing"


def targets_exist(material: Material) -> Iterator[str]:
    """Checks that performance cases name GPUs that kernels can be compiled for."""
    lines = material.module.suite.read_text(encoding="utf-8").splitlines()
    names = targets.all_targets()
    wanted = {case.limits.target for case in material.suite.all_cases if case.limits}
    for name in sorted(wanted - {"", *names}):
        line = next((number for number, line in enumerate(lines, 1) if repr(name)[1:-1] in line
                     and "target" in line), 1)
        yield (f"suite.py, line {line}: '{name}' is not a GPU.{nearest(name, names)} The names are "
               f"{joined(names)}")


def settings(material: Material) -> Iterator[str]:
    """Checks that module.toml and its groups of hints have no unknown key."""
    file = material.module.folder / "module.toml"
    text = file.read_text(encoding="utf-8")
    data = tomllib.loads(text)
    tables = [(data, MODULE_KEYS, ())] + [
        (group, HINT_KEYS, ("hints", number)) for number, group in enumerate(data.get("hints", []))]
    for table, keys, place in tables:
        for key in table:
            if key not in keys:
                yield (f"module.toml, line {toml_line(text, *place, key)}: '{key}' is not a key."
                       f"{nearest(key, keys)} The keys are {joined(keys)}")


MODULE_KEYS = ("title", "summary", "core", "minutes", "objectives", "prerequisites", "before",
               "files", "picture", "hints")
HINT_KEYS = tuple(one.name for one in fields(HintGroup))


def codes_exist(material: Material) -> Iterator[str]:
    """Checks that mutants name codes of findings."""
    for number, mutant in enumerate(material.suite.mutants):
        for code in mutant.codes:
            if code not in NAMES:
                by_name = {name: one for one, name in NAMES.items()}
                near = difflib.get_close_matches(code.lower(), [*by_name, *map(str.lower, NAMES)],
                                                 n=1)
                hint = f" Did you mean {by_name.get(near[0], near[0].upper())}?" if near else ""
                yield (f"{_mutant_line(material, number, 'codes')}: mutant {mutant.id}: '{code}' "
                       f"is not a code.{hint} `tritonlab codes` lists all")


def _mutant_line(material: Material, number: int, *keys: str | int) -> str:
    """The place of a mutant's key in mutants.toml."""
    file = material.module.suite.with_name("mutants.toml")
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return f"mutants.toml, line {toml_line(text, 'mutant', number, *keys)}"


READ: Mapping[str, Callable[[Material], Iterable[str]]] = {
    "nothing astray": nothing_astray,
    "nothing left to write": nothing_left_to_write,
    "headings and diagrams of the lesson": headings_and_diagrams,
    "the lesson is short on grading": short_on_grading,
    "the three questions are answered": three_answers,
    "numbers and groups of hints": numbers_and_hint_groups,
    "rungs of hints": rungs_of_hints,
    "signatures of exercise and solution": same_signatures,
    "the exercise can be completed": exercise_can_be_completed,
    "no blank in the solution": no_blank_in_solution,
    "public cases": public_cases,
    "settings of the module": settings,
    "thresholds of the lesson": stated_thresholds,
    "codes of mutants": codes_exist,
    "targets of limits": targets_exist,
    "mutants can be applied": sound_mutants,
}
