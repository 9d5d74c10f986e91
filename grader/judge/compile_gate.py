"""The compile gate: launches have to compile for a GPU, whatever the interpreter makes of them."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from grader.engine.compiler.targets import Target, find
from grader.processes.pool import Later
from grader.processes.replies import Compiled, Stopped
from grader.processes.session import Session, form
from grader.processes.time_limit import OutOfTime
from grader.recording.model import Recording, views_of
from grader.recording.specialization import SIZE
from grader.report import CaseResult, Finding, Kind, Skip, Verdict
from grader.sandbox import SandboxBroken


class _Begun(NamedTuple):
    case: str
    recording: Recording
    tuned: bool
    compiled: Later[Compiled] | None  # unless it has not begun


def name_for(target: Target) -> str:
    """The name of the gate's result among those of the cases."""
    return f"every launch compiles for the {target.title}"


def _tensors(recording: Recording) -> int:
    """How many tensors the launches take. A kernel does most where no optional one is missing."""
    return sum(len(list(views_of(argument))) for launch in recording.launches
               for argument in launch.arguments.values())


def _elements(recording: Recording) -> int:
    """Elements of the largest block, as the product of the sizes that a launch names."""
    return max((math.prod(argument.value for name, argument in launch.arguments.items()
                          if name.upper().startswith("BLOCK") and type(argument.value) is int)
                for launch in recording.launches), default=1)


class Gate:
    """Has launches compiled while cases are judged, and reports the refusals in the end."""

    def __init__(self, session: Session, target: Target,
                 functions: Mapping[str, str] | None = None) -> None:
        """Compiles nothing before ``begin``.

        ``functions``: which one each case is about, where a suite has several.
        """
        self.target = target
        self.name = name_for(target)
        self._ahead = False
        self._session = session
        self._functions = functions or {}
        self._begun: list[_Begun] = []
        self._stopped: Finding | None = None  # compiling a kernel did not end
        self._is_late = False  # the time of the grade did not suffice

    @property
    def used(self) -> bool:
        """Whether there is anything to compile."""
        return bool(self._begun) or self._stopped is not None

    def add(self, case: str, recording: Recording, configurations: int = 1) -> None:
        """Queues the launches of a case; once begun, they are compiled after those before them.

        Args:
            configurations: those that an autotuner has to choose from. It passes over what does not
                fit the GPU, as long as another one does.
        """
        if not recording.launches or self._stopped is not None:
            return
        self._begun.append(_Begun(case, recording, configurations > 1, None))
        if self._ahead:
            self.begin()

    def begin(self) -> None:
        """Begins to compile what is queued, and from now on all that is added.

        The smallest block of each form is compiled to the end. Then large ones come first: next to
        one that is lowered, a smaller one is only parsed.
        """
        self._ahead = True
        self._session.divide([one.recording for one in self._begun if one.compiled is None])
        for number, one in self._in_order():
            if one.compiled is None and self._stopped is None:
                try:
                    compiled = self._session.begin_compile(one.recording, self.target)
                except Stopped as stop:
                    self._stopped = stop.finding
                except OutOfTime:
                    self._is_late = True
                    return
                else:
                    self._begun[number] = one._replace(compiled=compiled)

    def _in_order(self) -> list[tuple[int, _Begun]]:
        """Compilations in their order, each with its position in the order of cases."""
        recordings = [one.recording for one in self._begun]
        blocks = list(map(_elements, recordings))
        first: set[int] = set()
        forms: set[Hashable] = set()
        for number in sorted(range(len(blocks)), key=lambda number: (
                blocks[number] < SIZE, blocks[number], -_tensors(recordings[number]))):
            if new := set(map(form, recordings[number].launches)) - forms:
                first.add(number)
                forms |= new
        return sorted(enumerate(self._begun),
                      key=lambda item: (item[0] not in first, -blocks[item[0]]))

    def compiled(self, recording: Recording, target: str = "",
                 begun: Later[Compiled] | None = None) -> Compiled:
        """Compiles the launches for the gate's own target, unless another is named.

        Where one does not compile there are no binaries. The gate's result reports that for its own
        target, and the findings for another.

        Args:
            begun: compiles launches like these; waited for, so that they are asked for once and
                not after all that was begun since.

        Raises:
            Stopped: compiling did not end in time.
        """
        chosen = find(target) if target else self.target
        if self._stopped is not None:
            raise Stopped(self._stopped)
        try:
            if begun is not None:
                begun()
            compiled = self._session.begin_compile(recording, chosen, whole=True)()
        except Stopped as stop:
            self._stopped = stop.finding
            raise
        if not compiled.findings:
            return compiled
        return Compiled(findings=() if chosen is self.target else compiled.findings)

    def in_its_words(self, finding: Finding, recording: Recording) -> Finding:
        """The interpreter's refusal with the compiler's message, its line and caret."""
        refusal = self._refusal(recording)
        if refusal is None:
            return finding
        if refusal.data == finding.data or \
                refusal.text.rpartition(": ")[2].rstrip(".") in finding.text:
            return refusal
        return replace(refusal, data=finding.data).within("refused too", refusal=refusal.data)

    def _refusal(self, recording: Recording) -> Finding | None:
        if self._stopped is not None:
            return None
        try:
            findings = self._session.begin_compile(recording, self.target)().findings
        except SandboxBroken:
            raise
        except Exception:  # the gate's own result reports it
            return None
        return next((finding for finding in findings if finding.code == "L05"), None)

    def refusal_in(self, case: str) -> Finding | None:
        """The compiler's first refusal of a launch of this case."""
        refused = (self._refusal(begun.recording) for begun in self._begun if begun.case == case)
        return next(filter(None, refused), None)

    def result(self, *, whole: bool = True,
               tell: Callable[[str], None] = lambda event: None) -> CaseResult:
        """Waits for all of them; a fault of the grader's own is an error, never the learner's.

        Args:
            whole: report all cases in which a kernel does not compile, not the first alone.
            tell: gets a line for each call whose kernels are waited for.

        Raises:
            SandboxBroken: the processes are gone.
        """
        started = time.monotonic()
        try:
            refused = sorted(islice(self._refused(tell), None if whole else 1),
                             key=lambda one: one[0])
        except SandboxBroken:
            raise
        except Exception:
            return CaseResult(self.name, Kind.CORRECTNESS, Verdict.ERROR,
                              reason=traceback.format_exc())
        launches = sum(len(begun.recording.launches) for begun in self._begun)
        result = CaseResult(self.name, Kind.CORRECTNESS, Verdict.PASSED,
                            facts={"compiled": f"{launches} launches"},
                            seconds=time.monotonic() - started)
        finding = refused[0][1] if refused else self._stopped
        if finding is None and self._is_late:
            return replace(result, verdict=Verdict.SKIPPED, skipped=Skip.TIME, facts={},
                           reason="not all were compiled: the grade had reached its time limit")
        if finding is None:
            return result
        if cases := list(dict.fromkeys(self._begun[number].case for number, _ in refused)):
            finding = replace(finding.within("compiled", case=cases[0], others=len(cases) - 1),
                              function=self._functions.get(cases[0], ""))
        return replace(result, verdict=Verdict.FAILED, findings=(finding,), facts={})

    def _refused(self, tell: Callable[[str], None]) -> Iterator[tuple[int, Finding]]:
        """Place and finding of what does not compile.

        Once compiling a launch did not end, nothing more is compiled.
        """
        too_large: list[tuple[int, Finding]] = []
        fits = False
        self.begin()
        for done, (number, begun) in enumerate(self._in_order()):
            if self._stopped is not None or begun.compiled is None:
                return
            kernels = dict.fromkeys(f"`{launch.kernel}`" for launch in begun.recording.launches)
            tell(f"{self.name}: {done} of {len(self._begun)} calls, {' and '.join(kernels)} next")
            try:
                findings = begun.compiled().findings
            except Stopped as stop:
                self._stopped = stop.finding
                return
            except OutOfTime:
                self._is_late = True
                return
            fits |= begun.tuned and not findings
            for finding in findings:
                if begun.tuned and finding.code == "T05":
                    too_large.append((number, finding))
                else:
                    yield number, finding
        if not fits:
            yield from too_large
