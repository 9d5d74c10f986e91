"""Requests about the kernels of one submission: what executor, compiler and GPU process share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from grader.engine.compiler.targets import UnknownTarget
from grader.executor.binding import Kernels
from grader.executor.extract import kernels
from grader.recording import model
from grader.recording.model import MalformedRecording
from grader.report import Finding
from grader.submission.source import UnreadableSubmission

Json = dict[str, Any]

WARMUP = str(Path(__file__).with_name("warmup.py"))


class KernelService:
    """Answers the requests of one grade: ``load`` comes first, then any number of the others."""

    operations: ClassVar[Mapping[str, Callable[[Any, Json, Sequence[int]], Json]]]

    def __init__(self) -> None:
        self._kernels: Kernels | None = None

    @property
    def kernels(self) -> Kernels:
        if self._kernels is None:
            raise MalformedRecording("a request before a load")
        return self._kernels

    def handle(self, request: Json, fds: Sequence[int]) -> Json:
        """Answers one request; the descriptors stay the caller's to close."""
        operation = self.operations.get(str(request.get("op")))
        try:
            if operation is None:
                raise MalformedRecording("an unknown request")
            return operation(self, request, fds)
        except kernels.KernelsRefused as refusal:
            return {"status": "refused", "findings": plain(refusal.findings)}
        except (MalformedRecording, UnreadableSubmission, UnknownTarget) as error:
            return {"status": "malformed", "why": str(error)[:1000]}

    def load(self, request: Json, fds: Sequence[int]) -> Json:
        """Extracts the kernels of a file."""
        self._kernels = kernels.from_file(str(request["path"]))
        return {"status": "ready"}


def plain(findings: Iterable[Finding]) -> list[Json]:
    return [finding.to_json() for finding in findings]


def warm_recording(x: model.View) -> Any:
    """One launch of the kernel of ``WARMUP`` on a float32 tensor of shape (3, 4)."""
    out = model.View(1, "float32", (3, 4), (4, 1), 0)
    arguments = {name: model.Argument(kind, value) for name, kind, value in (
        ("x_ptr", "tensor", x), ("y_ptr", "tensor", out), ("stride", "int", 4),
        ("n_cols", "int", 4), ("scale", "float", 1.0), ("BLOCK_SIZE", "int", 8))}
    launch = model.Launch("softmax_kernel", (3, 1, 1), arguments)
    return model.to_json(model.Recording((x,), (model.Alloc(1, 48), launch), (out,)))
