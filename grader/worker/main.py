"""The untrusted side: loads the learner's file, calls its function, returns what was recorded."""

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import torch
from torch._library.custom_ops import CustomOpDef

from grader.engine.compiler import targets
from grader.executor.service import WARMUP
from grader.recording import arena, host_values, model
from grader.recording.model import MAX_FINDINGS
from grader.submission import triton_namespace
from grader.worker import fake_driver, module_loader, suite_drivers
from grader.worker.compiled_kernel import Figures, Returned
from grader.worker.launch_capture import capture_launches
from grader.worker.recorder import Recorder, Stop
from grader.worker.torch_modes import FunctionCallMode, OperationMode, watched_backward


class WorkerHandler:
    """Answers "load" once and then any number of "call"s and "ask"s.

    Where one of these reads a figure of a compiled kernel that the judge has not sent yet, the
    reply is a question. With the answer the judge sends "again", and the request is handled again.
    """

    def __init__(self) -> None:
        self._path = ""
        self._module: ModuleType | None = None
        self._drivers = ModuleType("calls")
        self._figures = Figures()
        self._waiting: list[tuple[dict[str, Any], list[int]]] = []  # for figures, by their numbers

    def handle(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        if request["op"] != "again":
            return self._tried(request, fds)
        self._figures.learn(request["question"], request["figures"])
        waiting, own_fds = self._waiting[request["number"]]
        try:
            return self._tried(waiting, own_fds)
        finally:
            for fd in own_fds:
                os.close(fd)

    def _tried(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        self._figures.begin()
        reply = self._reply(request, fds)
        if self._figures.question is None:
            return reply
        self._waiting.append((request, [os.dup(fd) for fd in fds]))
        return {"status": "figures", "question": self._figures.question,
                "number": len(self._waiting) - 1}

    def _reply(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        match request["op"]:
            case "load":
                triton_namespace.hide()
                fake_driver.tell_of(targets.find(str(request.get("target", targets.DEFAULT))))
                return self.load(str(request["path"]), str(request.get("kernels", "")))
            case "call":
                return self._call(request, fds)
            case "ask":
                return self._ask(request, fds)
        raise ValueError(f"no such request: {request['op']!r}")

    def load(self, path: str, kernels: str = "") -> dict[str, Any]:
        """Import a file; ``kernels`` is another one of the same submission that holds them."""
        self._path = kernels or path  # whose lines are named
        try:
            with fake_driver.run_at_import(self._figures.returned(self._path)):
                self._module = module_loader.load(path)
        except BaseException as error:
            return {"status": "raised", **module_loader.describe(path, error)}
        return {"status": "ready"}

    def _call(self, request: Mapping[str, Any], fds: list[int]) -> dict[str, Any]:
        name, text = str(request["entry"]), str(request.get("drivers", ""))
        entry = self._driver(text, name) if text else getattr(self._module, name, None)
        if not callable(entry):
            return {"status": "missing"}
        arguments = _arguments(request, fds)
        positions = _parameters(entry)
        storages = {n: item["tensor"][0] for n, item in enumerate(request["arguments"])
                    if "tensor" in item}
        inputs = [(positions[n] if n < len(positions) else f"number {n + 1}", arguments[n],
                   storage) for n, storage in storages.items()]
        names = list(request.get("keywords", ()))
        split = len(arguments) - len(names)
        recorder = Recorder(
            self._path, inputs, int(request.get("config", 0)),
            changing={storages[n] for n in request.get("in_place", ()) if n in storages},
            trials=int(request.get("trials", 0)))
        try:
            with (capture_launches(recorder, self._figures.returned(self._path)),
                  watched_backward(recorder), FunctionCallMode(recorder), OperationMode(recorder)):
                result = entry(*arguments[:split],
                               **dict(zip(names, arguments[split:], strict=True)))
        except BaseException as error:
            described = module_loader.describe(self._path, error)
            if isinstance(error, Stop):
                described |= {"types": ["Stop"], "line":
                              recorder.findings[-1]["line"] if recorder.findings else None}
            return {"status": "raised", **described, "launches": recorder.launches,
                    "findings": recorder.findings}
        return {**_returned(recorder, result), "configurations": recorder.configurations}

    def _ask(self, request: Mapping[str, Any], fds: list[int]) -> dict[str, Any]:
        """Call a driver of the suite, or the learner's own host code; nothing is recorded."""
        function = self._driver(str(request["drivers"]), str(request["of"]))
        function = function or getattr(self._module, str(request["of"]), None)
        if not callable(function):
            return {"status": "missing"}
        arguments = _arguments(request, fds)
        findings: list[dict[str, Any]] = []
        try:
            with _eager(findings, self._figures.returned(self._path)) if request.get("eager") \
                    else contextlib.nullcontext():
                answer = function(*arguments)
            reply = {"status": "answered", "answer": host_values.to_json(answer)}
        except host_values.NotPlain as error:
            reply = {"status": "value", "type": str(error)}
        except BaseException as error:
            reply = {"status": "raised", **module_loader.describe(self._path, error)}
        return {**reply, "findings": findings}

    def _driver(self, text: str, name: str) -> Any:
        """A function of the suite's calls.py, or of every suite, given the learner's module."""
        if text and self._drivers.__dict__.get("__text__") != text:
            self._drivers = ModuleType("calls")
            self._drivers.__dict__["__text__"] = text
            sys.modules["calls"] = self._drivers  # dataclasses look their module up
            exec(compile(text, "calls.py", "exec", dont_inherit=True), self._drivers.__dict__)
        own = vars(self._drivers).get(name) if text else None
        driver = own if callable(own) else suite_drivers.OF_EVERY_SUITE.get(name)
        return functools.partial(driver, self._module) if driver else None


def _arguments(request: Mapping[str, Any], fds: list[int]) -> list[Any]:
    storages = arena.unpack(fds[0], request["layout"]) if fds else []
    return [_argument(item, storages) for item in request["arguments"]]


@contextlib.contextmanager
def _eager(findings: list[dict[str, Any]], returned: Returned) -> Iterator[None]:
    """Inside, launches run at once, under watch; what is found about them goes to ``findings``."""
    from grader.engine.interpreter.eager import interpreted

    trace = None
    try:
        with interpreted(capability=fake_driver.capability(), returned=returned) as trace:
            yield
    finally:
        if trace is not None:
            findings += [finding.to_json() for finding in trace.findings[:MAX_FINDINGS]]


def _parameters(entry: Any) -> list[str]:
    if isinstance(entry, CustomOpDef):
        return [argument.name for argument in entry._opoverload._schema.arguments]
    try:
        return list(inspect.signature(entry).parameters)
    except (TypeError, ValueError):
        return []


def _argument(item: Mapping[str, Any], storages: list[torch.Tensor]) -> Any:
    if "tensor" in item:
        view = model.view_from_json(item["tensor"])
        tensor = arena.as_tensor(storages[view.storage], view)
        return tensor.conj() if item.get("conjugate") else tensor
    if "meta" in item:
        dtype, shape = item["meta"]
        return torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
    if "dtype" in item:
        return getattr(torch, item["dtype"])
    return host_values.from_json(item["value"])


def _returned(recorder: Recorder, result: Any) -> dict[str, Any]:
    several = type(result) in (tuple, list)
    tensors = list(result) if several else [result]
    if result is None and recorder.works_in_place:
        tensors = []
    for tensor in tensors:
        if type(tensor) is not torch.Tensor:
            return {"status": "value", "type": type(tensor).__name__, "findings": recorder.findings}
    recording = recorder.recording(tensors, several)
    return {"status": "returned", "recording": model.to_json(recording),
            "findings": recorder.findings}


def warm() -> None:
    """Load and call a small module once, so that forks find all imports and caches done."""
    handler = WorkerHandler()
    handler.load(WARMUP)
    with arena.pack([torch.ones(8)]) as packed:
        views = [{"tensor": model.to_json(view)} for view in packed.views]
        call = {"op": "call", "entry": "softmax", "layout": packed.layout(), "arguments": views}
        handler.handle(call, [packed.fd])
    sys.modules.pop(module_loader.NAME, None)
