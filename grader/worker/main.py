"""The untrusted side: loads the learner's file, calls its function, returns what was recorded."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from grader import recording
from grader.sandbox import arena
from grader.worker import learner
from grader.worker.launches import recorded
from grader.worker.modes import Calls, Operations
from grader.worker.recorder import Recorder, Stop

_SAMPLE = Path(__file__).with_name("sample.py")


class Handler:
    """Answers "load" once and then any number of "call"s."""

    def __init__(self) -> None:
        self._path = ""
        self._entry: Any = None

    def handle(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        match request["op"]:
            case "load":
                return self._load(str(request["path"]), str(request["entry"]))
            case "call":
                return self._call(request, fds)
        raise ValueError(f"no such request: {request['op']!r}")

    def _load(self, path: str, entry: str) -> dict[str, Any]:
        self._path = path
        try:
            self._entry = getattr(learner.load(path), entry, None)
        except BaseException as error:
            return {"status": "raised", **learner.describe(path, error)}
        return {"status": "ready" if callable(self._entry) else "missing"}

    def _call(self, request: Mapping[str, Any], fds: list[int]) -> dict[str, Any]:
        storages = arena.unpack(fds[0], request["layout"]) if fds else []
        arguments: list[Any] = []
        inputs: list[tuple[str, torch.Tensor, int]] = []
        names = _parameters(self._entry)
        for position, item in enumerate(request["arguments"]):
            arguments.append(_argument(item, storages))
            if "tensor" in item:
                name = names[position] if position < len(names) else f"number {position + 1}"
                inputs.append((name, arguments[-1], item["tensor"][0]))
        recorder = Recorder(self._path, inputs, int(request.get("config", 0)))
        try:
            with _watched(recorder):
                result = self._entry(*arguments)
        except Stop as stop:
            described = {"types": ["Stop"], "message": str(stop), "line": None}
            if recorder.findings:
                described["line"] = recorder.findings[-1]["line"]
            return _raised(recorder, described)
        except BaseException as error:
            return _raised(recorder, learner.describe(self._path, error))
        return {**_returned(recorder, result), "configurations": recorder.configurations}


def _parameters(entry: Any) -> list[str]:
    try:
        return list(inspect.signature(entry).parameters)
    except (TypeError, ValueError):
        return []


def _argument(item: Mapping[str, Any], storages: list[torch.Tensor]) -> Any:
    if "tensor" in item:
        view = recording.view_from_json(item["tensor"])
        return arena.as_tensor(storages[view.storage], view)
    if "meta" in item:
        dtype, shape = item["meta"]
        return torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
    return item["value"]


@contextlib.contextmanager
def _watched(recorder: Recorder) -> Iterator[None]:
    with recorded(recorder), Calls(recorder), Operations(recorder):
        yield


def _raised(recorder: Recorder, described: dict[str, Any]) -> dict[str, Any]:
    return {"status": "raised", **described, "launches": recorder.launches,
            "findings": recorder.findings}


def _returned(recorder: Recorder, result: Any) -> dict[str, Any]:
    several = type(result) in (tuple, list)
    tensors = list(result) if several else [result]
    for tensor in tensors:
        if type(tensor) is not torch.Tensor:
            return {"status": "value", "type": type(tensor).__name__, "findings": recorder.findings}
    made = recorder.recording(tensors, several)
    return {"status": "returned", "recording": recording.to_json(made),
            "findings": recorder.findings}


def warm() -> None:
    """Load and call a small module once, so that forks find all imports and caches done."""
    handler = Handler()
    handler.handle({"op": "load", "path": str(_SAMPLE), "entry": "sample"}, [])
    with arena.pack([torch.ones(8)]) as packed:
        views = [{"tensor": recording.view_to_json(view)} for view in packed.views]
        call = {"op": "call", "layout": packed.layout(), "arguments": views}
        handler.handle(call, [packed.fd])
    learner.unload()
