"""Answers the judge: takes the kernels from a source file, replays and surveys recordings."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch

from grader.engine.compiler import targets
from grader.engine.compiler.targets import Target
from grader.engine.interpreter.memory import Memory
from grader.engine.interpreter.patch_triton import installed
from grader.executor.binding import Kernels
from grader.executor.extract import kernels
from grader.executor.replay import Settings, replay
from grader.executor.survey import survey
from grader.recording import arena, model
from grader.recording.model import MalformedRecording
from grader.report import Finding
from grader.submission import source

OTHER_S = 1.0  # that a run may have taken, so that another one fits into the same time

Json = dict[str, Any]


class ExecutorHandler:
    """The executor of one grade. ``load`` comes first, then any number of the others."""

    def __init__(self) -> None:
        self._kernels: Kernels | None = None
        self._engine = ExitStack()  # put in its place once, not for every run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.close()

    def handle(self, request: Json, fds: Sequence[int]) -> Json:
        """Answer one request; the descriptors stay the caller's to close."""
        try:
            match request.get("op"):
                case "load":
                    return self._load(str(request["path"]),
                                      targets.find(str(request.get("target", targets.DEFAULT))))
                case "run":
                    return self._run(request, fds)
                case "survey":
                    return self._survey(request, fds)
            return malformed("an unknown request")
        except (MalformedRecording, source.UnreadableSubmission) as error:
            return malformed(str(error))

    def _load(self, path: str, target: Target) -> Json:
        try:
            self._kernels = kernels.from_file(path)
        except kernels.KernelsRefused as refusal:
            return refused(refusal.findings)
        self._engine.enter_context(installed(Memory(), target.capability))
        usable = [name for name, kernel in self._kernels.items() if not isinstance(kernel, Finding)]
        return {"status": "ready", "kernels": usable}

    def _run(self, request: Json, fds: Sequence[int]) -> Json:
        if self._kernels is None or len(fds) != 2:
            return malformed("a run before a load, or without its two files")
        asked, settings = model.from_json(request.get("recording")), _settings(request)
        started = time.monotonic()
        made = replay(asked, request["layout"], fds[0], fds[1], self._kernels, settings)
        if request.get("other") and not (made.findings or made.determined) \
                and time.monotonic() - started < OTHER_S:
            other = replay(asked, request["layout"], fds[0], fds[1], self._kernels,
                           replace(settings, order="reverse", poison=1))
            made.other = other.results
        return made.to_json()

    def _survey(self, request: Json, fds: Sequence[int]) -> Json:
        if self._kernels is None or len(fds) != 1:
            return malformed("a survey before a load, or without its file")
        resident, l2_bytes = request.get("resident"), request.get("l2_bytes", 0)
        if not isinstance(resident, list) or not all(map(_is_count, [*resident, l2_bytes])):
            return malformed("a survey needs resident programs for each launch, and an L2")
        made = survey(model.from_json(request.get("recording")), request["layout"], fds[0],
                      self._kernels, resident, l2_bytes)
        return made.to_json()


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def warm() -> None:
    """Grade a tiny kernel, so that forked children find every cache full."""
    with ExecutorHandler() as handler:
        _grade_a_tiny_kernel(handler)


def _grade_a_tiny_kernel(handler: ExecutorHandler) -> None:
    path = Path(__file__).with_name("warmup.py")
    handler.handle({"op": "load", "path": str(path)}, [])
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    with arena.pack([x]) as packed:
        output = os.memfd_create("tritonlab-warm")
        try:
            reply = handler.handle({"op": "run", "recording": warm_recording(packed.views[0]),
                                    "layout": packed.layout()}, [packed.fd, output])
        finally:
            os.close(output)
    if reply["status"] != "done" or reply["findings"]:
        raise RuntimeError(f"the engine cannot run its own kernel: {reply}")


def warm_recording(x: model.View) -> Json:
    out = model.View(1, "float32", (3, 4), (4, 1), 0)
    arguments = {
        "x_ptr": model.Argument("tensor", x),
        "y_ptr": model.Argument("tensor", out),
        "stride": model.Argument("int", 4),
        "n_cols": model.Argument("int", 4),
        "scale": model.Argument("float", 1.0),
        "BLOCK_SIZE": model.Argument("int", 8),
    }
    launch = model.Launch("softmax_kernel", (3, 1, 1), arguments)
    events = (model.Alloc(1, 48), launch)
    return model.to_json(model.Recording((x,), events, (out,)))


def _settings(request: Json) -> Settings:
    order, sample = request.get("order", "forward"), request.get("sample")
    poison = request.get("poison", 0)
    if order not in ("forward", "reverse") or poison not in (0, 1):
        raise MalformedRecording("an unknown order or poison")
    if sample is not None and (not isinstance(sample, int) or sample < 1):
        raise MalformedRecording("a sample is a number of programs")
    windows = tuple((int(first), int(count)) for first, count in request.get("windows") or ())
    return Settings(order, poison, bool(request.get("duplicate_writes")),
                    bool(request.get("zeroed")), sample, windows,
                    tuple(map(str, request.get("names") or ())))


def refused(findings: Sequence[Finding]) -> Json:
    return {"status": "refused", "findings": [f.to_json() for f in findings]}


def malformed(why: str) -> Json:
    return {"status": "malformed", "why": why[:1000]}
