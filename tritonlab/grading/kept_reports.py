"""Reports of passed exercises, shown again while nothing that the verdict depends on has changed.

As `go test` and Bazel do: a second grade of an unchanged file shows the first one's report.
"""

import ast
import hashlib
import json
import platform
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.util import decode_source

import msgspec

from grader.gpu import detect
from grader.processes.cache import Cache, folder_sha256, sources_sha256
from grader.report import WEAK_ISOLATION, Report, Verdict, versions
from grader.submission import source, syntax
from grader.submission.dataflow import kernel_definitions
from grader.submission.kernel_digest import kernel_code
from tritonlab.course.course import EXERCISE, Module
from tritonlab.progress.certificate import FAST
from tritonlab.progress.journal import JournalReading

_MOST_BYTES = 4 << 20  # of all reports; one has 20 to 100 KB


@dataclass(frozen=True)
class Subject:
    """What a verdict depends on: files, module, versions, and the GPU that is compiled for or used.

    ``key`` leaves out comments; ``lines`` changes when code moves to other lines.
    ``kernels`` is a key without host functions, for ``--quick``; empty without a GPU, or where an
    exercise has several files. ``sha256`` is that of the files themselves.
    """

    key: str
    lines: str
    sha256: str
    kernels: str = ""

    @classmethod
    def of(cls, content: Mapping[str, bytes], module: Module, target: str | None,
           gpu: bool) -> "Subject | None":
        """Returns the subject of a grade; None for files that do not parse."""
        code, lines = hashlib.sha256(), hashlib.sha256()
        try:
            for name, data in sorted(content.items()):
                for digest, text in zip((code, lines), _texts(name, data), strict=True):
                    digest.update(f"{name}\0{text}\0".encode())
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        folders = (module.folder, module.solution.parent, module.suite.parent)
        gpus = detect.names() if gpu and detect.present() else ()
        parts = (module.id, [folder_sha256(folder) for folder in folders],
                 asdict(module.override), sources_sha256(), versions(), platform.machine(),
                 target, gpus)

        def key(*own: str) -> str:
            return hashlib.sha256(json.dumps((own, parts)).encode()).hexdigest()

        kernels = _kernels(decode_source(content[EXERCISE])) \
            if gpus and len(content) == 1 else ()
        return cls(key(code.hexdigest()), lines.hexdigest(), source.digest(content),
                   key("", *kernels) if kernels else "")


def _texts(name: str, data: bytes) -> tuple[str, str]:
    """Returns the code of a file without comments: without and with its lines."""
    if not name.endswith(".py"):
        return data.hex(), ""
    with warnings.catch_warnings(action="ignore"):  # of the learner's literals
        tree = syntax.parse(decode_source(data))
    return ast.dump(tree), ast.dump(tree, include_attributes=True)


def _kernels(text: str) -> tuple[str, ...]:
    """Returns digests of the kernels of a file; none if one of them has no digest."""
    codes = [kernel_code(text, one.key) for one in kernel_definitions(syntax.tree_of(text))]
    return tuple(one.sha256 for one in codes if one) if all(codes) else ()


class _Entry(msgspec.Struct):
    """A report, ``lines`` of its subject, and when it was made."""

    report: Report
    lines: str
    at: str


def keep(subject: Subject, report: Report, at: str) -> None:
    """Keeps the report of a pass, unless the learner's code could have written it.

    One without the GPU that is here is not kept, since the next grade may use it, and neither is
    one of files that were saved after ``subject`` was made.

    Args:
        at: when it was graded, for people.
    """
    passed = report.verdict is Verdict.PASSED and report.source_sha256 == subject.sha256
    if not passed or report.partial or report.gpu_passed or report.unusable_gpu \
            or report.isolation.startswith(WEAK_ISOLATION):
        return
    cache = Cache("reports", _MOST_BYTES)
    cache.write(subject.key, msgspec.to_builtins(_Entry(report, subject.lines, at)))
    if subject.kernels and report.evidence == FAST:
        cache.write(subject.kernels, at)


def gpu_passed(subject: Subject) -> str:
    """Returns when this GPU passed the same kernels; empty if it has not."""
    at = Cache("reports", _MOST_BYTES).read(subject.kernels) if subject.kernels else None
    return at if isinstance(at, str) else ""


def find(subject: Subject, module: Module, reading: JournalReading) -> Report | None:
    """Returns the kept report of a subject, if the journal has its grade.

    Findings name lines, so a report with findings is of no use once lines have moved.
    """
    try:
        entry = msgspec.convert(Cache("reports", _MOST_BYTES).read(subject.key), _Entry)
    except msgspec.ValidationError:  # None, or of another version
        return None
    report = entry.report
    if entry.lines != subject.lines and any(report.findings()):
        return None
    recorded = any((r["source_sha256"], r["seed"]) == (report.source_sha256, report.seed)
                   for r in reading.passes(module.id))
    return replace(report, shown_again=entry.at) if recorded else None
