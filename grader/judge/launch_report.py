"""A report of each recorded launch, without a GPU: code, traffic, time, defects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from grader.diagnosis.perf_lints import Defect, Observed, of_call
from grader.engine.compiler.targets import Target
from grader.judge import alignment
from grader.processes.pool import Later
from grader.processes.replies import Listing, Surveyed, unusable
from grader.processes.session import Session
from grader.recording.arena import extent, itemsize
from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import Interval, Prediction, Survey
from grader.recording.model import Launch, Recording, views_of
from grader.report import Finding
from grader.submission.dataflow import indirect_lines

MOST_CONFIGURATIONS = 8  # of an autotuner that are examined; each takes a second or two


@dataclass(frozen=True)
class InspectedLaunch:
    """One launch: the code it runs, what it moves and how long it would take.

    ``survey`` and ``prediction`` are None where its addresses are not known. ``line`` is that
    of the launch in the learner's file.
    """

    kernel: str
    grid: tuple[int, int, int]
    line: int | None
    binary: Binary
    survey: Survey | None = None
    prediction: Prediction | None = None
    ptx: Listing = ()
    sass: Listing = ()
    live: tuple[tuple[int, int], ...] = ()  # the most live registers of each line, where listed

    @property
    def programs(self) -> int:
        return prod(self.grid)

    @property
    def dram(self) -> Interval | None:
        """Bytes between DRAM and L2, read and written together."""
        if self.survey is None:
            return None
        read, written = self.survey.loaded, self.survey.stored
        return Interval(read.low + written.low, read.high + written.high)

    def at_once(self, target: Target) -> int:
        """Programs that the whole target holds at the same time: one wave."""
        return self.binary.occupancy.programs * target.multiprocessors

    def waves(self, target: Target) -> float:
        return self.programs / self.at_once(target)


@dataclass(frozen=True)
class SurveyBegun:
    """A survey that the executor makes meanwhile."""

    recording: Recording
    surveyed: Later[Surveyed]


@dataclass(frozen=True)
class Examined:
    """The launches of one recording, in order, compiled and surveyed.

    ``findings`` say which do not compile or leave their tensors. ``unknown`` are sentences: why the
    traffic of a launch cannot be told. ``prediction`` is that of all launches one after the other.
    """

    launches: tuple[InspectedLaunch, ...] = ()
    defects: tuple[Defect, ...] = ()
    findings: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()
    prediction: Prediction | None = None


def recordings_of(session: Session, inputs: Sequence[Any],
                  most: int) -> tuple[list[Recording], list[Finding]]:
    """The recordings of a call with each configuration of its autotuners.

    They end with one that cannot be used, for which there are findings.
    """
    recordings: list[Recording] = []
    for outcome in session.configurations(inputs, most):
        findings = unusable(outcome)
        if findings or outcome.recording is None:
            return recordings, findings
        recordings.append(outcome.recording)
    return recordings, []


def examine_call(session: Session, inputs: Sequence[Any], source: str, target: Target, *,
                 timed: bool = True, listings: bool = False, causes: bool = False,
                 begun: SurveyBegun | None = None) -> Examined:
    """Calls the learner's function and examines its launches.

    Of an autotuner's configurations the one that is predicted to be the fastest is reported, as a
    GPU would choose it; those that do not fit the target are passed over where another one does.

    Args and raises: as of ``examine``.
    """
    recordings, findings = recordings_of(session, inputs, MOST_CONFIGURATIONS)
    surveys = [begun] * len(recordings)
    if timed and len(recordings) > 1:
        surveys = _begin_surveys(session, recordings, inputs, target)
    candidates: list[Examined] = []
    for recording, survey in zip(recordings, surveys, strict=True):
        examined = examine(session, recording, inputs, source, target,
                           timed=timed, listings=listings, causes=causes, begun=survey)
        if any(finding.code != "T05" for finding in examined.findings):
            return examined
        candidates.append(examined)
    if findings or not candidates:
        return Examined(findings=tuple(findings))
    return min(candidates, key=lambda one: (
        bool(one.findings), one.prediction.seconds if one.prediction else math.inf))


def _begin_surveys(session: Session, recordings: Sequence[Recording], inputs: Sequence[Any],
                   target: Target) -> list[SurveyBegun | None]:
    """Has all recordings compiled and listed, each surveyed while the next one is compiled."""
    compiled = [session.begin_compile(one, target, whole=True, apart=number)
                for number, one in enumerate(recordings)]
    session.begin_listings(recordings, target)
    surveys: list[SurveyBegun | None] = []
    for recording, code in zip(recordings, compiled, strict=True):
        binaries = code().binaries
        surveys.append(SurveyBegun(recording, begin_survey(
            session, recording, inputs, binaries, target)) if binaries else None)
    return surveys


def examine(session: Session, recording: Recording, inputs: Sequence[Any], source: str,
            target: Target, *, timed: bool = True, listings: bool = False, causes: bool = False,
            begun: SurveyBegun | None = None) -> Examined:
    """Compiles and surveys every launch of a recording.

    Args:
        inputs: those that it was recorded with.
        source: the learner's file.
        timed: False: only find out whether they compile and stay within their tensors.
        listings: give PTX, SASS and live registers with their lines too.
        causes: find the arguments that make accesses narrow, by compiling with other ones.
        begun: a survey for this target, which is used if it is of this recording.

    Raises:
        grader.processes.replies.Stopped: a process did not survive it.
    """
    compiled = session.begin_compile(recording, target, whole=timed)()
    if compiled.findings:
        return Examined(findings=compiled.findings)
    if not timed:
        resident = [target.multiprocessors] * len(recording.launches)
        accessed = session.begin_survey(recording, inputs, resident, target)()
        return Examined(findings=accessed.findings, unknown=accessed.unknown)
    if begun is None or begun.recording != recording:
        begun = SurveyBegun(recording, begin_survey(
            session, recording, inputs, compiled.binaries, target))
    surveyed = begun.surveyed()
    times = session.time(recording, surveyed.surveys, target)
    rows = zip(recording.launches, compiled.binaries, surveyed.surveys, times.launches,
                strict=True)
    launches = [InspectedLaunch(launch.kernel, launch.grid, launch.line, binary, survey, time)
                for launch, binary, survey, time in rows]
    if listings:
        numbers = {one.binary.ptx_sha256: number for number, one in enumerate(launches)}
        texts = {code: session.listings(recording, number, target)
                 for code, number in numbers.items()}
        launches = [replace(one, ptx=text.ptx, sass=text.sass, live=text.live)
                    for one in launches for text in [texts[one.binary.ptx_sha256]]]
    observed = [Observed(one.binary, one.survey, indirect_lines(source, one.kernel),
                         *_tensors(launch))
                for one, launch in zip(launches, recording.launches, strict=True)]
    defects = of_call(observed, target)
    lines = {defect.line for defect in defects if defect.name == "scalar access"}
    if causes and lines:
        observed = [replace(one, unaligned=alignment.unaligned(
                        session, recording, launch, one.binary, lines, source, target))
                    for one, launch in zip(observed, recording.launches, strict=True)]
        defects = of_call(observed, target)
    return Examined(tuple(launches), defects, surveyed.findings, surveyed.unknown, times.whole)


def begin_survey(session: Session, recording: Recording, inputs: Sequence[Any],
                 binaries: Sequence[Binary], target: Target) -> Later[Surveyed]:
    """Begins to survey launches, of which ``binaries`` are the code.

    Raises:
        grader.processes.replies.Stopped: the executor did not survive the launches before.
    """
    resident = [max(1, binary.occupancy.programs * target.multiprocessors) for binary in binaries]
    return session.begin_survey(recording, inputs, resident, target,
                                [binary.layouts for binary in binaries])


def _tensors(launch: Launch) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes and storage of each tensor, by parameter."""
    sizes: dict[str, int] = {}
    storages: dict[str, int] = {}
    for name, argument in launch.arguments.items():
        for view in views_of(argument):
            sizes[name] = sizes.get(name, 0) + extent(view) * itemsize(view)
            storages[name] = view.storage
    return sizes, storages
