"""The report of a grade: findings, verdicts, case results, serialization."""

from __future__ import annotations

import enum
import functools
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import msgspec

from grader.finding import NAMES, Data, Fault, Figure, Sign, data_from_json, matches, text_of


class Verdict(enum.StrEnum):
    """The outcome of a case or of a whole grade.

    FAILED speaks about the kernel, ERROR about the grader. SKIPPED means that this machine cannot
    tell and says why; it never counts as a pass. INCONCLUSIVE means that a timing was too noisy.
    """

    PASSED = "PASSED"
    FAILED = "FAILED"
    ERROR = "ERROR"
    SKIPPED = "SKIPPED"
    INCONCLUSIVE = "INCONCLUSIVE"


class Skip(enum.StrEnum):
    """The reason for a skipped case, if code depends on it."""

    FAILED = "failed"  # it cannot change the first failure
    GPU = "gpu"  # only a usable GPU can tell
    TIME = "time"  # the grade had taken its time
    ENDED = "ended"  # a case before it ended the grade
    MACHINE = "machine"  # too large for this machine, or for a sample


class Kind(enum.StrEnum):
    """The kind of a case."""

    CORRECTNESS = "correctness"
    EDGE = "edge"
    PROPERTY = "property"
    PERFORMANCE = "performance"
    CALL = "call"


WEAK_ISOLATION = ("tier 0", "tier 1")  # how ``Report.isolation`` begins where a measure is missing
SPARED = "not run: less effort was requested"
AFTER_FAILURE = "not run: it cannot change the first failure"
EXIT_PASSED, EXIT_FAILED, EXIT_USAGE, EXIT_GRADER_BROKE = 0, 1, 2, 3


@dataclass(frozen=True)
class Finding:
    """A diagnosis: a code, the data that it is about, and what these usually mean.

    ``code`` is one of ``grader.diagnosis.codes.MEANINGS``. ``circumstances`` are put around the
    sentence in order. ``means``, ``where`` and ``next_step`` are filled in by
    ``grader.diagnosis.codes.explain``. ``line`` is a line of the learner's file, counted from 1.
    ``also`` is a second line that has to change as well. ``file`` is the file of the line, relative
    to the exercise, where the exercise has several; empty for ``kernel.py``.
    ``function`` is the learner's function that the case is about, where a suite has several or asks
    host code.
    """

    code: str
    data: Data
    line: int | None = None
    means: str = ""
    where: str = ""
    next_step: str = ""
    todos: tuple[int, ...] = ()
    function: str = ""
    circumstances: tuple[Fault, ...] = ()
    also: int | None = None
    file: str = ""

    @property
    def name(self) -> str:
        """The name of the code, such as ``store-out-of-bounds`` for M02."""
        return NAMES.get(self.code, self.code)

    @property
    def seen(self) -> str:
        """The data in words: numbers, the first index, the program."""
        from grader.diagnosis import messages  # the process of the learner's code shows none

        return messages.text(self.data, self.circumstances)

    @property
    def text(self) -> str:
        """The text of others in it: of a suite, a compiler, Python or a library."""
        return text_of(self.data, self.circumstances)

    def within(self, kind: str, **figures: Any) -> Finding:
        """The finding with one more circumstance around it."""
        return replace(self, circumstances=(*self.circumstances, Fault(kind, figures)))

    def has(self, sign: Sign) -> bool:
        """Whether it has the sign of a mistake."""
        return matches(self.data, self.circumstances, sign)

    def to_dict(self) -> dict[str, Any]:
        """The finding in words, as plain data."""
        return {"code": self.code, "name": self.name, "seen": self.seen, "line": self.line,
                "means": self.means, "where": self.where, "next_step": self.next_step,
                "todos": self.todos, "function": self.function, "file": self.file}

    def to_json(self) -> dict[str, Any]:
        """Code, data and line, for another process."""
        return {"code": self.code, "data": msgspec.to_builtins(self.data), "line": self.line}

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> Finding:
        """The finding of a process of the grader.

        Raises:
            ValueError: the data are of no family.
        """
        return cls(item["code"], data_from_json(item["data"]), item["line"])


class Refusal(Exception):
    """Something cannot go on; findings say why, and the first one's sentence is the message."""

    def __init__(self, *findings: Finding) -> None:
        super().__init__(findings[0].seen)
        self.finding, self.findings = findings[0], findings


@dataclass(frozen=True)
class Details:
    """Details of one case, a line each; ``elements`` are (index, got, expected)."""

    inputs: tuple[str, ...] = ()
    launches: tuple[str, ...] = ()
    elements: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class CaseResult:
    """The verdict on one case.

    ``findings`` are ordered, the one to show first comes first. ``facts`` are numbers beside their
    limits, such as ``{"traffic": "1.00x of the minimum, limit 1.00x"}``; they are given whether the
    case passes or fails. ``advisory`` results are shown and never decide. ``replay`` are the
    options of a grade that runs this case alone with the same inputs, for a shell; only failures
    have them. ``details`` are gathered where a case was graded alone.
    """

    name: str
    kind: Kind
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""  # why a case was skipped, was inconclusive, or broke the grader
    advisory: bool = False
    seconds: float = 0.0
    replay: str = ""
    details: Details | None = None
    clocked: bool = False  # it asks for speed, which nothing but a clock can show
    skipped: Skip | None = None
    measured: Mapping[str, Any] | None = None  # what the clock of a GPU showed; times in ms
    predicted: Mapping[str, Any] | None = None  # its speed without a GPU; shares as of ``Limits``

    @property
    def fails(self) -> bool:
        """Whether it fails the grade: what is shown beside it decides nothing."""
        return self.verdict is Verdict.FAILED and not self.advisory

    def to_dict(self) -> dict[str, Any]:
        """The result with its findings in words, as plain data."""
        data = asdict(replace(self, findings=()))
        del data["skipped"]
        return data | {"findings": tuple(finding.to_dict() for finding in self.findings)}


@dataclass(frozen=True)
class Step:
    """One group of an exercise's blanks: TODO numbers, or functions where they have none.

    ``state`` is what a grade found out while blanks are left: ``right``, ``wrong``, ``begun`` (some
    are left, and those filled in are right), ``open``, or ``unchecked``.
    """

    group: str
    title: str
    todos: tuple[int, ...] = ()
    functions: tuple[str, ...] = ()
    state: str = "unchecked"


@dataclass(frozen=True)
class Report:
    """All that one grade found out.

    ``seed`` (hexadecimal) reproduces the inputs. ``output`` is what the learner's code printed,
    shortened; it is shown and never parsed. ``only`` names the case that was graded alone;
    ``repeated`` says that the seed was given, so that the inputs could be known beforehand.
    ``gpu`` is the one that kernels ran on, ``ceilings`` how fast it was found to be, and ``on_gpu``
    the result of each value case there; one of ``results`` sums those up, and decides.
    ``unusable_gpu`` says why a GPU that is there was of no use. ``printed`` are the first lines
    that kernels printed in the case ``printed_in``: the first one that failed; where none did and
    the report is partial, the first one that printed. ``steps`` are those of an exercise with
    blanks that are left: it was graded with code of the solution in their place, and never passes.
    ``shown_again`` is the time of the grade, where its report is shown once more. ``gpu_passed`` is
    the time when the GPU passed the same kernels, where it was left out for that.
    """

    suite: str
    source_sha256: str
    suite_sha256: str
    grader_version: str
    versions: Mapping[str, str]
    engine: str
    isolation: str
    seed: str
    results: tuple[CaseResult, ...]
    target: str = ""  # the GPU that launches were compiled for; empty where there was none
    seconds: float = 0.0
    output: str = ""
    reason: str = ""  # why the grader itself could not go on, when the verdict is ERROR
    public_only: bool = False
    only: str = ""
    repeated: bool = False
    gpu: str = ""
    ceilings: Mapping[str, Any] = field(default_factory=dict)
    on_gpu: tuple[CaseResult, ...] = ()
    unusable_gpu: str = ""
    printed: tuple[str, ...] = ()
    printed_in: str = ""
    steps: tuple[Step, ...] = ()
    shown_again: str = ""
    gpu_passed: str = ""

    @property
    def partial(self) -> bool:
        """Whether this grade can be no evidence, whatever its verdict: it is not recorded."""
        return self.public_only or bool(self.only) or self.repeated

    @property
    def deciding(self) -> tuple[CaseResult, ...]:
        return tuple(result for result in self.results if not result.advisory)

    @property
    def verdict(self) -> Verdict:
        """FAILED if a deciding case failed, else ERROR if one broke, else PASSED if one passed.

        INCONCLUSIVE where time ran out before all were judged; FAILED too while blanks are left.
        """
        verdicts = {result.verdict for result in self.deciding}
        if Verdict.FAILED in verdicts:
            return Verdict.FAILED
        if self.reason or Verdict.ERROR in verdicts:
            return Verdict.ERROR
        if self.out_of_time:
            return Verdict.INCONCLUSIVE
        if self.steps:
            return Verdict.FAILED
        for verdict in (Verdict.PASSED, Verdict.INCONCLUSIVE):
            if verdict in verdicts:
                return verdict
        return Verdict.SKIPPED

    @property
    def exit_code(self) -> int:
        if self.verdict is Verdict.PASSED:
            return EXIT_PASSED
        return EXIT_GRADER_BROKE if self.verdict is Verdict.ERROR else EXIT_FAILED

    @property
    def evidence(self) -> str:
        """The level that this grade reached, if any: ``correct``, ``efficient`` or ``fast``.

        For ``efficient``, traffic and compiled code were within what a performance case allows. For
        ``fast``, all values came out right on a GPU too, and its clock passed every case that asks
        for speed.
        """
        if self.verdict is not Verdict.PASSED or self.partial:
            return ""
        counted = any(r.kind is Kind.PERFORMANCE and r.verdict is Verdict.PASSED
                      for r in self.deciding)
        if not (self.target and counted):
            return "correct"
        clocked = [result for result in self.deciding if result.clocked]
        shown = [*clocked, *(result for result in self.on_gpu if not result.advisory)]
        fast = (self.gpu and clocked and self.on_gpu
                and all(result.measured for result in clocked)
                and all(result.verdict is Verdict.PASSED for result in shown))
        return "fast" if fast else "efficient"

    @property
    def out_of_time(self) -> bool:
        """Whether deciding cases were left undecided because the grade had taken its time."""
        return any(result.skipped is Skip.TIME for result in self.deciding)

    @property
    def noisy(self) -> tuple[CaseResult, ...]:
        """The deciding cases whose times lay too far apart."""
        return tuple(r for r in self.deciding if r.verdict is Verdict.INCONCLUSIVE)

    @property
    def has_picture(self) -> bool:
        """Whether the first failure is about values or memory, which a trace shows."""
        failure = self.first_failure
        return bool(failure and failure.findings and failure.findings[0].code[0] in "NM")

    @property
    def first_failure(self) -> CaseResult | None:
        return next((r for r in self.results if r.fails), None)

    def findings(self) -> Iterator[Finding]:
        for result in self.results:
            yield from result.findings

    def count(self, verdict: Verdict) -> int:
        return sum(result.verdict is verdict for result in self.deciding)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, ready for ``json.dumps``; the form is ``schema`` 1."""
        data = asdict(self)
        for part in ("results", "on_gpu"):
            data[part] = tuple(result.to_dict() for result in getattr(self, part))
        return {
            "schema": 1,
            "verdict": str(self.verdict),
            "exit_code": self.exit_code,
            "evidence": self.evidence,
            "cases": {str(v).lower(): self.count(v) for v in Verdict},
            **data,
        }


def words(kind: str, **figures: Figure) -> str:
    """The sentence of a fault of this kind, for engines that state a reason as text."""
    from grader.diagnosis import messages  # the process of the learner's code shows none

    return messages.words(kind, **figures)


def versions() -> dict[str, str]:
    """Versions that a verdict depends on."""
    names = ("torch", "triton", "numpy")
    return {"python": platform.python_version(), **{name: version_of(name) for name in names}}


@functools.cache
def version_of(package: str) -> str:
    """The version of an installed package; to parse its metadata takes milliseconds."""
    from importlib.metadata import version

    return version(package)
