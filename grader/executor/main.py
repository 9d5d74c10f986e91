"""Answers the judge: takes the kernels from a source file, replays and surveys recordings."""

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Annotated, ClassVar

import torch
from msgspec import Meta

from grader.engine.compiler import targets
from grader.engine.interpreter.memory import Memory
from grader.engine.interpreter.patch_triton import installed
from grader.executor.replay import Settings, replay
from grader.executor.service import WARMUP, Json, KernelService, plain, warm_recording
from grader.executor.survey import survey
from grader.executor.trace import trace
from grader.recording import arena, model
from grader.recording.compiled_kernel import AccessLayout
from grader.recording.trace import encode

OTHER_S = 1.0  # that a run may have taken, so that another one fits into the same time

_Positive = Annotated[int, Meta(ge=1)]
_Index = Annotated[int, Meta(ge=0)]


class ExecutorHandler(KernelService, AbstractContextManager["ExecutorHandler"]):
    """The executor of one grade."""

    def __init__(self) -> None:
        super().__init__()
        self._engine = ExitStack()  # put in its place once, not for every run

    def __exit__(self, *_: object) -> None:
        self._engine.close()

    def load(self, request: Json, fds: Sequence[int]) -> Json:
        target = targets.find(str(request.get("target", targets.DEFAULT)))
        reply = super().load(request, fds)
        self._engine.enter_context(installed(Memory(), target.capability))
        return reply

    def _run(self, request: Json, fds: Sequence[int]) -> Json:
        kernels, recording = self.kernels, model.from_json(request.get("recording"))
        settings: Settings = model.read(request, Settings)
        arena_fd, output = fds
        started = time.monotonic()
        replayed = replay(recording, request["layout"], arena_fd, output, kernels, settings)
        if request.get("other") and not (replayed.findings or replayed.determined) \
                and time.monotonic() - started < OTHER_S:
            other = replay(recording, request["layout"], arena_fd, output, kernels,
                           replace(settings, order="reverse", poison=1))
            replayed.other = other.results
        return {"status": "done", **vars(replayed), "findings": plain(replayed.findings)}

    def _survey(self, request: Json, fds: Sequence[int]) -> Json:
        launches, findings = survey(
            model.from_json(request.get("recording")), request["layout"], fds[0], self.kernels,
            model.read(request.get("resident"), list[_Positive]),
            model.read(request.get("l2_bytes"), _Positive),
            model.read(request.get("layouts", []), list[list[AccessLayout]]))
        return {"status": "done", "launches": [launch.to_dict() for launch in launches],
                "findings": plain(findings)}

    def _trace(self, request: Json, fds: Sequence[int]) -> Json:
        arena_fd, output = fds
        traced, findings = trace(
            model.from_json(request.get("recording")), request["layout"], arena_fd, self.kernels,
            model.read(request.get("programs"), list[_Index]))
        with open(output, "wb", closefd=False) as file:
            file.write(encode(traced))
        return {"status": "done", "findings": plain(findings)}

    operations: ClassVar = {"load": load, "run": _run, "survey": _survey, "trace": _trace}


def warm() -> None:
    """Grade a tiny kernel, so that forked children find every cache full.

    Raises:
        RuntimeError: the engine cannot run it.
    """
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    with ExecutorHandler() as handler, arena.pack([x]) as packed:
        handler.handle({"op": "load", "path": WARMUP}, [])
        output = os.memfd_create("tritonlab-warm")
        try:
            reply = handler.handle({"op": "run", "recording": warm_recording(packed.views[0]),
                                    "layout": packed.layout()}, [packed.fd, output])
        finally:
            os.close(output)
    if reply["status"] != "done" or reply["findings"]:
        raise RuntimeError(f"the engine cannot run its own kernel: {reply}")
