"""Common first failures of a class, and those that no mutant of the module explains.

A mutant explains a failed submission if the first finding of its first failure fits it:

- The grader diagnosed it: the finding has the mutant's meaning. Or else:
- code: the finding has the first of the mutant's codes,
- place: the finding and the mutant have a TODO in common, or one of them names none,
- cases: all cases that the mutant gets ``wrong`` have failed and none of those that it gets
  ``right``, of which at least one has passed, where it names any,
- sign: the mutant has none. A report holds no data of findings, so only the grader can see a sign.

Where the mutant itself was graded, the failed cases have to be nearly those of its own grade, too:
a diagnosis can fit another mistake that no mutant makes.

Failures of the file as a whole (codes P) and files with blanks left need no mutant. Neither does a
right file. Everything else is unexplained, and is clustered by code, function and failed cases.
"""

import ast
import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, islice
from pathlib import Path
from string import ascii_lowercase
from textwrap import indent

from grader.report import Verdict
from grader.submission import statement_diff, syntax
from grader.suite.mutants import KERNEL, Mutant, read_mutants
from grader.text import toml_value
from tritonlab.authoring.checks import PROMPT
from tritonlab.classroom.book import Score
from tritonlab.classroom.report.outcomes import FailureView, ResultView, ResultViews
from tritonlab.classroom.settings import ClassAssignment
from tritonlab.classroom.store import Store
from tritonlab.course.course import Course, Module
from tritonlab.errors import TritonlabError

NEAR = 0.9  # share of failed cases in common from which on clusters are one
CLEAR = 0.5  # lead in share of a cluster from which on an edit of the solution is proposed
MOST_LINES = 3  # lines of code of a failure
MOST_CASES = 2  # that a skeleton names as `wrong` and as `right`
MOST_CONTRASTED = 100  # other submissions that an edit is compared with
MUTANTS = "mutants.toml"


@dataclass(frozen=True)
class GradedAnswer:
    """The submission of a student that counts, with its grade.

    Args:
        lines: of the file that findings point at.
    """

    student: str
    result: ResultView
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class ExplainedFailure:
    """The students whose first failure one mutant explains.

    Args:
        words: the finding of the first of them.
        lines: lines of code that the findings point at, without comments; the most frequent first.
    """

    mutant: Mutant
    students: tuple[str, ...]
    words: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class ProposedPatch:
    """A statement of the solution, and what the students of a cluster write in its place.

    Args:
        share: of the cluster; ``others`` is the share of those who do not fail so.
    """

    find: str
    replace: str
    share: float
    others: float


@dataclass(frozen=True)
class UnexplainedFailure:
    """Students whose first failures have the same code and failed cases, and fit no mutant.

    Args:
        failed: cases that all of them fail, in the order of the suite.
        passed: cases that all of them pass.
        todos: those that most of the findings point at.
        lines: of code that the findings point at, or what most write instead of the solution.
    """

    code: str
    name: str
    function: str
    students: tuple[str, ...]
    failed: tuple[str, ...]
    passed: tuple[str, ...]
    todos: tuple[int, ...]
    words: str
    lines: tuple[str, ...]
    patch: ProposedPatch | None = None


@dataclass(frozen=True)
class ClassMistakes:
    """The failures of a class, the most frequent first.

    Args:
        graded: students with a grade that passed or failed; ``unfinished`` have blanks left or a
            file that cannot be graded.
    """

    graded: int
    passed: int
    unfinished: int
    explained: tuple[ExplainedFailure, ...]
    unexplained: tuple[UnexplainedFailure, ...]

    @property
    def share_explained(self) -> float | None:
        """The share of failures that a mutant explains; None without failures."""
        explained, not_so = (sum(len(one.students) for one in failures)
                             for failures in (self.explained, self.unexplained))
        return explained / (explained + not_so) if explained + not_so else None


@dataclass(frozen=True)
class _Failure:
    """The first failure of one answer, and the cases that were judged."""

    answer: GradedAnswer
    finding: FailureView
    failed: frozenset[str]
    passed: frozenset[str]

    @property
    def line(self) -> str:
        """The line of code that the finding points at, without its comment."""
        lines = self.answer.lines
        number = self.finding.line or 0
        return _bare(lines[number - 1]) if 0 < number <= len(lines) else ""


def analyze(answers: Sequence[GradedAnswer], mutants: Sequence[Mutant], solution: str = "",
            grades: Mapping[str, ResultView] | None = None,
            masked: Callable[[str], str] = str) -> ClassMistakes:
    """Returns which mutants explain the failures of a class, and clusters of the others.

    Args:
        answers: one of each student, graded with the whole suite.
        solution: the text in which findings of the same file would point; with it, a patch is
            proposed for clusters whose students wrote the same statement.
        grades: results of mutants by id, graded like the answers, as far as there are any.
        masked: code as it may be shown, for instance without names of students.
    """
    decided = [one for one in answers
               if one.result.verdict in (Verdict.PASSED, Verdict.FAILED)]
    passing = [one for one in decided if one.result.verdict == Verdict.PASSED]
    failing = [_failure(one) for one in decided if one.result.verdict == Verdict.FAILED]
    failures = [one for one in failing if one is not None]
    own = {name: judged(result) for name, result in (grades or {}).items()}
    explained: dict[str, list[_Failure]] = {}
    left: list[_Failure] = []
    for one in failures:
        mutant = explanation(one.finding, one.failed, one.passed, mutants, own)
        if mutant is None:
            left.append(one)
        else:
            explained.setdefault(mutant.id, []).append(one)
    by_id = {mutant.id: mutant for mutant in mutants}
    order = {name: place for place, name in enumerate(
        case.name for one in decided for case in one.result.cases)}
    clusters = [_cluster(members, [one.lines for one in decided], order, solution, masked)
                for members in _clustered(left)]
    return ClassMistakes(
        len(decided), len(passing), len(decided) - len(passing) - len(failures),
        tuple(sorted((ExplainedFailure(
            by_id[name], _students(members), members[0].finding.words, _lines(members, masked))
            for name, members in explained.items()), key=lambda one: -len(one.students))),
        tuple(sorted(clusters, key=lambda one: -len(one.students))))


@dataclass(frozen=True)
class ModuleMistakes:
    """The mistakes of one module; ``file`` is the one of its mutants."""

    module: str
    mistakes: ClassMistakes
    mutants: tuple[Mutant, ...]
    file: Path


def mutants_of(course: Course,
               assignments: Iterable[ClassAssignment]) -> dict[str, tuple[Mutant, ...]]:
    """The mutants of the modules of these assignments."""
    return {module: read_mutants(course.find(module).suite.with_name(MUTANTS))
            for one in assignments for module in one.modules}


def of_module(store: Store, results: ResultViews, module: Module, scores: Iterable[Score],
              masked: Callable[[str], str], *, patches: bool = True) -> ModuleMistakes:
    """Analyzes the submissions of a module that count.

    Args:
        masked: code without names of students.
        patches: propose edits of the solution.
    """
    answers = []
    for score in scores:
        graded = next((one.graded for one in score.modules if one.module == module.id), None)
        result = results.of(graded.key) if graded and not score.excused else None
        if graded is None or result is None:
            continue
        lines: list[str] = []
        if result.verdict == Verdict.FAILED or patches:
            with contextlib.suppress(TritonlabError):  # the store reports it elsewhere
                content = store.files(graded.blob).get(KERNEL, b"")
                lines = content.decode("utf-8", "replace").splitlines()
        answers.append(GradedAnswer(score.student, result, lines))
    file = module.suite.with_name(MUTANTS)
    mutants = read_mutants(file)
    solution = module.solution.read_text(encoding="utf-8") if patches else ""
    return ModuleMistakes(module.id, analyze(answers, mutants, solution, masked=masked), mutants,
                          file)


def explanation(finding: FailureView, failed: frozenset[str], passed: frozenset[str],
                mutants: Sequence[Mutant],
                own: Mapping[str, tuple[frozenset[str], frozenset[str]]] | None = None,
                ) -> Mutant | None:
    """Returns the mutant that explains a first finding, as the module's docstring defines it.

    Of several, the one whose meaning the grader gave comes first, then the one that names the most
    cases.

    Args:
        failed: names of the failed cases; ``passed`` of those that passed.
        own: the same of the mutants' own grades, by id.
    """
    same = [mutant for mutant in mutants if mutant.codes[:1] == (finding.code,) and (
        not own or mutant.id not in own or _alike((failed, passed), own[mutant.id]))]
    for mutant in same:
        if mutant.meaning == finding.means:
            return mutant
    todos = {*finding.todos}
    fitting = [mutant for mutant in same if not mutant.sign
               and (not todos or not mutant.todos or todos & {*mutant.todos})
               and failed.issuperset(mutant.wrong) and failed.isdisjoint(mutant.right)
               and not (mutant.right and passed.isdisjoint(mutant.right))]
    return max(fitting, key=lambda one: len(one.wrong) + len(one.right), default=None)


def judged(result: ResultView) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the cases that failed, and of those that passed."""
    failed, passed = (frozenset(case.name for case in result.cases if case.verdict == verdict)
                      for verdict in (Verdict.FAILED, Verdict.PASSED))
    return failed, passed


def _alike(one: tuple[frozenset[str], frozenset[str]],
           other: tuple[frozenset[str], frozenset[str]]) -> bool:
    """Whether nearly the same cases failed, of those that were judged in both grades."""
    both = frozenset.union(*one) & frozenset.union(*other)
    mine, theirs = one[0] & both, other[0] & both
    return bool(mine & theirs) and len(mine & theirs) >= NEAR * len(mine | theirs)


def toml(failures: Sequence[UnexplainedFailure], mutants: Sequence[Mutant],
         file: str = KERNEL) -> str:
    """Returns the skeletons of the mutants that would explain clusters, for ``mutants.toml``.

    ``WRITE ME`` marks what an author has to write; `tritonlab check` reports it. The cases are
    those that tell a cluster from mutants with the same code.

    Args:
        file: the one that findings point at.
    """
    taken = {mutant.id for mutant in mutants}
    free = (name for number in count() if (name := _letters(number)) not in taken)
    return "\n".join(_skeleton(one, name, mutants, file)
                     for one, name in zip(failures, free, strict=False))


def _skeleton(failure: UnexplainedFailure, name: str, mutants: Sequence[Mutant], file: str) -> str:
    rivals = [mutant for mutant in mutants if mutant.codes[:1] == (failure.code,)]
    wrong = _telling(failure.failed, {case for one in rivals for case in one.right})
    right = _telling(failure.passed, {case for one in rivals for case in one.wrong})
    patch = failure.patch
    number = len(failure.students)
    head = [f"{number} student{'s fail' if number > 1 else ' fails'} like this: {failure.words}",
            *(f"  {line}" for line in failure.lines)]
    if patch:
        head.append(f"{patch.share:.0%} of them wrote the replacement below, and {patch.others:.0%}"
                    " of the others.")
    return "\n".join([
        *(f"# {_comment(line)}" for line in head),
        "[[mutant]]",
        f"id = {_string(name)}",
        f"title = {_string(f'{PROMPT}: the mistake in a few words')}",
        f"codes = [{_string(failure.code)}]",
        f"meaning = {_string(f'{PROMPT}: what such a failure usually means, without the cure')}",
        f"todos = {list(failure.todos)}",
        *(f"{key} = [{', '.join(map(_string, names))}]"
          for key, names in (("wrong", wrong), ("right", right)) if names),
        "",
        "[[mutant.patch]]",
        *([f"file = {_string(file)}"] if file != KERNEL else []),
        f"find = {_string(patch.find if patch else f'{PROMPT}: a text of the solution')}",
        f"replace = {_string(patch.replace if patch else f'{PROMPT}: the mistake')}",
        ""])


def _failure(answer: GradedAnswer) -> _Failure | None:
    """The first failure of a grade; None if it is about the file as a whole."""
    result = answer.result
    if result.steps or result.refused or not result.failures:
        return None
    return _Failure(answer, result.failures[0], *judged(result))


def _clustered(failures: Sequence[_Failure]) -> list[list[_Failure]]:
    """Groups failures by code, function and failed cases; the largest group of alike ones leads.

    Cases that only one of two grades judged do not count. A few cases may differ, as inputs may be
    drawn anew for each submission.
    """
    exact: dict[tuple[str, str, frozenset[str]], list[_Failure]] = {}
    for one in failures:
        key = (one.finding.code, one.finding.function, one.failed)
        exact.setdefault(key, []).append(one)
    clusters: list[list[_Failure]] = []
    for members in sorted(exact.values(), key=lambda group: -len(group)):
        cluster = next((one for one in clusters if _near(one[0], members[0])), None)
        if cluster is None:
            clusters.append([*members])
        else:
            cluster += members
    return clusters


def _near(one: _Failure, other: _Failure) -> bool:
    mine, theirs = ((each.finding.code, each.finding.function) for each in (one, other))
    return mine == theirs and _alike((one.failed, one.passed), (other.failed, other.passed))


def _cluster(members: Sequence[_Failure], sources: Sequence[Sequence[str]],
             order: Mapping[str, int], solution: str,
             masked: Callable[[str], str]) -> UnexplainedFailure:
    first = members[0].finding
    todos = Counter(todo for one in members for todo in one.finding.todos)
    failed, passed = (frozenset.intersection(*cases) for cases in (
        [one.failed for one in members], [one.passed for one in members]))
    patch = _patch(members, sources, solution, masked)
    lines = _lines(members, masked) or ((patch.replace,) if patch else ())
    return UnexplainedFailure(
        first.code, first.name, first.function, _students(members),
        tuple(sorted(failed, key=order.__getitem__)), tuple(sorted(passed, key=order.__getitem__)),
        tuple(sorted(todo for todo, number in todos.items() if 2 * number > len(members))),
        first.words, lines, patch)


def _students(members: Sequence[_Failure]) -> tuple[str, ...]:
    return tuple(sorted(one.answer.student for one in members))


def _lines(members: Sequence[_Failure], masked: Callable[[str], str]) -> tuple[str, ...]:
    lines = Counter(line for one in members if (line := one.line))
    return tuple(masked(line) for line, _ in lines.most_common(MOST_LINES))


def _bare(line: str) -> str:
    """A line of code without its comment and indentation."""
    parts = re.match(r"""(?:[^#'"]|'(?:\\.|[^'\\])*'?|"(?:\\.|[^"\\])*"?)*""", line)
    return parts[0].strip() if parts else ""


# -- patches ---------------------------------------------------------------------------------------


def _patch(members: Sequence[_Failure], sources: Sequence[Sequence[str]], solution: str,
           masked: Callable[[str], str]) -> ProposedPatch | None:
    """The edit of the solution that most sets a cluster apart, if one does clearly."""
    if not solution:
        return None
    own = ["\n".join(one.answer.lines) for one in members[:MOST_CONTRASTED]]
    others = [*islice((text for one in sources if (text := "\n".join(one)) not in own),
                      MOST_CONTRASTED)]
    mine = Counter(edit for source in own for edit in _edits(source, solution))
    theirs = Counter(edit for source in others for edit in _edits(source, solution))
    patches = [ProposedPatch(*edit, number / len(own), theirs[edit] / max(1, len(others)))
               for edit, number in mine.items()]
    best = max(patches, key=lambda one: one.share - one.others, default=None)
    if best is None or best.share - best.others < CLEAR or masked(best.replace) != best.replace:
        return None
    return best


@lru_cache(maxsize=1024)
def _edits(source: str, solution: str) -> frozenset[tuple[str, str]]:
    """Statements of the solution, and what a submission has in their place.

    Only edits that a patch can make are returned: the statement occurs once in the solution, and
    the result is Python.
    """
    edits = set()
    for edit in statement_diff.edits(syntax.tree_of(source), syntax.tree_of(solution)):
        if edit.mine is None or edit.theirs is None or isinstance(
                edit.theirs, ast.FunctionDef | ast.ClassDef):
            continue
        find = ast.get_source_segment(solution, edit.theirs) or ""
        if find and solution.count(find) == 1:
            margin = " " * edit.theirs.col_offset
            replace = indent(ast.unparse(edit.mine), margin).strip()
            if syntax.tree_of(solution.replace(find, replace)).body:
                edits.add((find, replace))
    return frozenset(edits)


# -- TOML ------------------------------------------------------------------------------------------


def _telling(names: Sequence[str], telling: set[str]) -> list[str]:
    """The first few cases, those first that tell a mistake from others."""
    return sorted(names, key=lambda name: name not in telling)[:MOST_CASES]


def _letters(number: int) -> str:
    rest, place = divmod(number, len(ascii_lowercase))
    return (_letters(rest - 1) if rest else "") + ascii_lowercase[place]


def _comment(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f\ud800-\udfff]+", " ", text)


def _string(text: str) -> str:
    """A TOML string: literal where it has quotes, on several lines where it has several."""
    text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    printable = not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
    if "\n" in text and printable and "'''" not in text and not text.endswith("'"):
        return f"'''\n{text}'''"
    if ('"' in text or "\\" in text) and printable and "'" not in text and "\n" not in text:
        return f"'{text}'"
    return toml_value(text)
