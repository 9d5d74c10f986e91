"""Finds the statements that decide a failure: with those of the solution, the case passes.

Solution and submission are compared statement by statement, where their functions and names agree.
What differs without effect, or without effect on this case, is not a cause: each cause is proved by
runs of the failing case. Lines, kinds of mistakes and code of the submission leave this module,
never code of the solution.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import islice
from typing import Generic, TypeVar

from grader.submission import syntax
from grader.submission.dataflow import lines_elsewhere
from grader.submission.mistake_kinds import kind_of, part_of
from grader.submission.repair_candidates import candidates
from grader.submission.source import KERNEL
from grader.submission.statement_diff import Edit, edits, patched
from grader.submission.todo_regions import numbered_comments, places
from grader.suite import Mutant

MOST_RUNS = 10
MOST_S = 10.0  # after which no further run is begun; a loaded machine is slow
MOST_REPAIRS = 40  # single changes that are tried
MOST_CAUSES = 2  # statements; more of them are another way to write the kernel
MOST_EDITS = 40
_MOST_SORTED = 600  # candidates that are put in another order, but for the first ones
_FIRST = 5
_PER_OTHER = 3
# A known mistake has to be of the same kind, where this says which expression to change.
_PRECISE = frozenset(("bound", "stride"))

_T = TypeVar("_T")
_Hunk = tuple[str, int, int, int, int]  # an operation of difflib
Passes = Callable[[str], bool]  # whether the failing case passes with this text


@dataclass(frozen=True)
class Cause:
    """A statement that decides a failure.

    Args:
        line: of the submission; of a missing statement, the line that it follows.
        kind: of the mistake, as ``messages.mistake`` words it; empty where it has no name.
        missing: the statement is missing.
        todo: the number of its place in the exercise, if it has one.
        in_solution: the lines of the right statement; empty where there should be none.
        part: the submission's expression that is wrong, where it is a single one.
        unused: names that the submission defines in this function and never uses, and that the
            right statement uses.
        reads: names that only this statement reads, where the solution computes it another way.
        own: proved by another name of the submission, and not by a statement of the solution.
        file: of the line, where the submission has several.
    """

    line: int
    kind: str = ""
    missing: bool = False
    todo: int | None = None
    in_solution: range = range(0)
    part: str = ""
    unused: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    own: bool = False
    file: str = KERNEL

    def may_be(self, mutant: Mutant, solution: str) -> bool:
        """Whether a known mistake changes the statement of this cause.

        Args:
            solution: the text of the cause's file there.
        """
        if self.own:
            return False
        if not self.in_solution:
            return True
        lines: set[int] = set()
        for patch in mutant.patches:
            if patch.file != self.file:
                continue
            before, text, _ = solution.partition(patch.find)
            first = before.count("\n") + 1
            lines |= {*range(first, first + text.count("\n") + 1)}
        return not lines.isdisjoint(self.in_solution) and (
            self.kind not in _PRECISE or self.kind in kinds_of(mutant, solution, self.file))


def kinds_of(mutant: Mutant, solution: str, file: str) -> frozenset[str]:
    """The kinds of mistake in a known wrong version of a file; some have no name."""
    return frozenset(kind_of(one.mine, one.theirs) for one in edits(
        syntax.tree_of(with_mistake(mutant, solution, file)), syntax.tree_of(solution)))


def with_mistake(mutant: Mutant, solution: str, file: str) -> str:
    """The text of a file of the solution with a known mistake."""
    for patch in mutant.patches:
        if patch.file == file:
            solution = solution.replace(patch.find, patch.replace)
    return solution


def causes(text: str, solution: str, exercise: str, roots: Collection[str], passes: Passes,
           numbers: Mapping[int, int] = {}) -> list[Cause]:
    """The statements, at most two, without which the failing case passes; none if unknown.

    Args:
        text: of the submission.
        solution: the file of the solution.
        exercise: what the learner began with.
        roots: the learner's functions that the case calls.
        passes: runs the case with another text.
        numbers: line of the submission -> number of its place.
    """
    mine, theirs = syntax.tree_of(text), syntax.tree_of(solution)
    elsewhere = lines_elsewhere(text, frozenset(roots))
    differing = [one for one in edits(mine, theirs) if one.line not in elsewhere]
    if not 0 < len(differing) <= MOST_EDITS:
        return []
    search = _Search[Edit](lambda chosen: passes(patched(mine, chosen)))
    # Extra statements whose names the solution does not read stay, because the learner's other
    # statements read them.
    deciding = _around(search.smallest(
        differing, [one for one in differing if one.theirs is not None]), differing)
    if not 0 < len(deciding) <= MOST_CAUSES:
        return []
    rewritten = _rewritten(mine, deciding)
    if rewritten is not None:
        one, reads = rewritten
        return [Cause(one.line, "values", todo=numbers.get(one.line),
                      in_solution=_lines(one.theirs), reads=reads)]
    of_solution = places(theirs, solution, numbered_comments(solution), exercise).lines
    return [Cause(max(1, one.line), kind_of(one.mine, one.theirs), one.mine is None,
                  of_solution.get(one.solution_line) or numbers.get(one.line),
                  _lines(one.theirs), part_of(one.mine, one.theirs, text), _unused(mine, one))
            for one in deciding]


def _around(deciding: Sequence[Edit], differing: Sequence[Edit]) -> list[Edit]:
    """The edits, where an added statement such as `try` stands around removed ones, as one."""
    removed = {ast.dump(one.mine): one for one in differing if one.mine and one.theirs is None}
    kept, within = list[Edit](), set[str]()
    for one in deciding:
        inside = removed.keys() & {ast.dump(node) for node in ast.walk(one.theirs)} if \
            one.mine is None and one.theirs is not None else set[str]()
        within |= inside
        first = min((removed[code].line for code in inside), default=0)
        kept.append(replace(one, line=max(1, first - 1)) if first else one)
    return [one for one in kept
            if one.theirs is not None or one.mine is None or ast.dump(one.mine) not in within]


def text_causes(text: str, solution: str, passes: Passes) -> list[Cause]:
    """The lines without which the failing case passes; line 0 if only the file is known.

    For checks of what a file says, docstrings and comments included.
    """
    mine, theirs = text.splitlines(keepends=True), solution.splitlines(keepends=True)
    hunks = [hunk for hunk in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes()
             if hunk[0] != "equal"]

    def replaced(chosen: Collection[_Hunk]) -> str:
        lines = list(mine)
        for _, start, end, other, other_end in sorted(chosen, key=lambda one: -one[1]):
            lines[start:end] = theirs[other:other_end]
        return "".join(lines)

    deciding = _Search[_Hunk](lambda chosen: passes(replaced(chosen))).smallest(hunks)
    if 0 < len(deciding) <= MOST_CAUSES:
        return [Cause(max(1, start + (operation != "insert")), "text",
                      missing=operation == "insert")
                for operation, start, *_ in sorted(deciding, key=lambda one: one[1])]
    return [Cause(0, "text")] if hunks and passes(solution) and not passes(text) else []


def repair(text: str, suspects: Sequence[Iterable[int]], passes: Passes,
           numbers: Mapping[int, int] = {}, of_shapes: bool = False,
           likely: Collection[str] = (), most: int = MOST_REPAIRS) -> list[Cause]:
    """The statement in which one changed expression makes the failing case pass; none if unknown.

    It needs no statement of the solution, so it explains kernels that are written another way.

    Args:
        suspects: groups of lines, the most suspicious first.
        of_shapes: the failure is one of shapes.
        likely: kinds of mistakes that are tried earlier.
        most: repairs that are tried.
    """
    tree, started = syntax.tree_of(text), time.monotonic()
    tried = {patched(tree, [])}
    tries: Iterable[Edit] = candidates(tree, suspects, of_shapes)
    if likely:
        tries = _likelier(list(islice(tries, _MOST_SORTED)), likely)
    for edit in tries:
        other = patched(tree, [edit])
        if other in tried:
            continue
        if len(tried) > most or time.monotonic() - started > MOST_S:
            break
        tried.add(other)
        if passes(other):
            kind, part = kind_of(edit.mine, edit.theirs), part_of(edit.mine, edit.theirs, text)
            return [Cause(edit.line, kind, edit.mine is None, numbers.get(edit.line),
                          part=part or _updated(edit), unused=_unused(tree, edit), own=True)]
    return []


def _likelier(tries: Sequence[Edit], likely: Collection[str]) -> Iterator[Edit]:
    """The first edits, then several of the likely kinds for each other one."""
    yield from tries[:_FIRST]
    alike, others = list[Edit](), list[Edit]()
    for edit in tries[_FIRST:]:
        (alike if kind_of(edit.mine, edit.theirs) in likely else others).append(edit)
    for number, edit in enumerate(others):
        yield from alike[_PER_OTHER * number:_PER_OTHER * (number + 1)]
        yield edit
    yield from alike[_PER_OTHER * len(others):]


def _updated(edit: Edit) -> str:
    """The name that a missing statement changes."""
    return next(iter(_stored(edit)), "") if edit.mine is None else ""


def _rewritten(tree: ast.Module,
               deciding: Sequence[Edit]) -> tuple[Edit, tuple[str, ...]] | None:
    """The statement that the solution computes from a name that the submission lacks.

    With it come the submission's names that nothing but this statement reads.
    """
    added = [one for one in deciding if one.mine is None and isinstance(one.theirs, ast.Assign)]
    changed = [one for one in deciding if one.mine is not None and one.theirs is not None]
    if len(added) != 1 or len(changed) != 1 or not _stored(added[0]) & _read(changed[0].theirs):
        return None
    around = _function_around(tree, changed[0].line)
    if around is None:
        return None
    defined = {node.id for node in ast.walk(around)
               if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    elsewhere = [node.id for node in ast.walk(around)
                 if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    own = [node.id for node in ast.walk(changed[0].mine or ast.Pass())
           if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    reads = tuple(name for name in dict.fromkeys(own) if name in defined
                  and own.count(name) == elsewhere.count(name)
                  and name not in _read(changed[0].theirs))
    unnamed = not kind_of(changed[0].mine, changed[0].theirs)
    return (changed[0], reads) if reads or unnamed else None


def _stored(edit: Edit) -> set[str]:
    return {node.id for node in ast.walk(edit.theirs or ast.Pass())
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _read(node: ast.AST | None) -> set[str]:
    return {one.id for one in ast.walk(node or ast.Pass())
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def _function_around(tree: ast.Module, line: int) -> ast.FunctionDef | None:
    return next((node for node in tree.body if isinstance(node, ast.FunctionDef)
                 and node.lineno <= line <= syntax.last_line(node)), None)


def _unused(tree: ast.Module, edit: Edit) -> tuple[str, ...]:
    """Names of the function around an edit that only the right statement would use."""
    around = _function_around(tree, edit.line)
    if around is None or edit.theirs is None:
        return ()
    named = [node for node in ast.walk(around) if isinstance(node, ast.Name)]
    used = {node.id for node in named if isinstance(node.ctx, ast.Load)}
    defined = {node.id for node in named} | {
        node.arg for node in ast.walk(around.args) if isinstance(node, ast.arg)}
    wanted = [node.id for node in ast.walk(edit.theirs)
              if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    return tuple(name for name in dict.fromkeys(wanted) if name in defined - used)


def _lines(node: ast.stmt | None) -> range:
    """The lines of a statement with its decorators."""
    return range(syntax.first_line(node), syntax.last_line(node) + 1) if node else range(0)


@dataclass
class _Search(Generic[_T]):
    """Delta debugging: a smallest set of edits with which the case passes."""

    run: Callable[[Sequence[_T]], bool]
    runs: int = 0
    started: float = field(default_factory=time.monotonic)

    def passes(self, chosen: Sequence[_T]) -> bool:
        if self.runs == MOST_RUNS or (self.runs and time.monotonic() - self.started > MOST_S):
            raise _GivenUp
        self.runs += 1
        return self.run(chosen)

    def smallest(self, every: Sequence[_T], some: Sequence[_T] = ()) -> list[_T]:
        """The edits of a smallest set; empty where all are not enough, or the runs are spent.

        Args:
            some: tried before all of them.
        """
        try:
            if not 0 < len(some) < len(every) or not self.passes(some):
                # A failure that does not come again is none of the statements'.
                some = list(every) if self.passes(every) else []
            deciding = self._among(list(some), []) if some else []
            return [] if deciding and self.passes([]) else deciding
        except _GivenUp:
            return []

    def _among(self, edits: list[_T], kept: list[_T]) -> list[_T]:
        """The edits that are needed beside those that are ``kept``, with which all pass."""
        if len(edits) == 1:
            return edits
        half = len(edits) // 2
        one, other = edits[:half], edits[half:]
        if self.passes([*one, *kept]):
            return self._among(one, kept)
        if self.passes([*other, *kept]):
            return self._among(other, kept)
        needed = self._among(one, [*other, *kept])
        return [*needed, *self._among(other, [*needed, *kept])]


class _GivenUp(Exception):
    """The runs are spent."""
