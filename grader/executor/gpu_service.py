"""Answers the judge before a GPU: takes the kernels from a source file, runs and times recordings.

Nothing of the learner runs in this process but kernels. It knows no seed and no expected value.
"""

import gc
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, Literal

import torch
import triton
from triton.runtime.driver import driver

from grader.engine.compiler import targets
from grader.engine.compiler.compile import complete
from grader.engine.compiler.compile_errors import finding, heard
from grader.engine.gpu import ceilings
from grader.engine.gpu.clock import Cuda
from grader.engine.gpu.memory import GpuMemory
from grader.executor.binding import Kernels, LaunchRefused, without_memory
from grader.executor.gpu_replay import Launcher, prepare, run_checked, time_call
from grader.executor.service import Json, KernelService, plain
from grader.finding import fault
from grader.recording import model
from grader.recording.arena import append_results
from grader.recording.model import Index, Launch, MalformedRecording, Recording
from grader.report import Finding

MOST_SETS = 6  # of inputs, each in a file of its own
_MOST_FINDINGS = 16
_MOST_THREADS = 16  # that compile
_LONGEST = 1000  # characters of what CUDA says
_OF_CUDA = ("CUDA error", "Triton Error [CUDA]", "device-side assert")
_ILLEGAL = ("illegal memory access", "misaligned address", "invalid address")


class GpuUnavailable(Exception):
    """There is none, or it cannot be used."""


class GpuHandler(KernelService):
    """The GPU process of one grade.

    The device is begun with when it is first needed, in a process that is confined by then.
    """

    def __init__(self, place: str = "cuda", launcher: Callable[[], Launcher] | None = None,
                 clock: Cuda | None = None) -> None:
        """Without a GPU, ``launcher`` and ``clock`` stand in for it, before memory at ``place``."""
        super().__init__()
        self._visible: str | None = None
        self._place = torch.device(place)
        self._launcher = launcher or OnCuda
        self._clock = clock

    def handle(self, request: Json, fds: Sequence[int]) -> Json:
        try:
            return super().handle(request, fds)
        except GpuUnavailable as error:
            return {"status": "none", "why": str(error)[:_LONGEST]}
        except torch.OutOfMemoryError as error:
            return {"status": "small", "why": str(error).split(". ")[0][:_LONGEST]}
        except RuntimeError as error:
            if not any(word in str(error) for word in _OF_CUDA):
                raise
            return faulted(error)
        finally:
            gc.collect()

    def load(self, request: Json, fds: Sequence[int]) -> Json:
        """``devices`` are those that the judge itself may see; None where nobody says."""
        visible = request.get("devices")
        self._visible = visible if isinstance(visible, str) else None
        return super().load(request, fds) if request.get("path") else {"status": "ready"}

    def _device(self) -> Cuda:
        """The device, begun with.

        Raises:
            GpuUnavailable: there is none.
        """
        if self._clock is None:
            begin(self._visible)
            self._clock = Cuda()
        return self._clock

    def _look(self, request: Json, fds: Sequence[int]) -> Json:
        self._device()
        return {"status": "done", "gpu": ceilings.look().to_dict(),
                "versions": ceilings.versions("")}

    def _ceilings(self, request: Json, fds: Sequence[int]) -> Json:
        """The speed of a copy, measured in a tenth of a second, or ``again`` all of them."""
        device = self._device()
        if self._place.type != "cuda":
            raise GpuUnavailable("what stands in for a GPU has no ceilings")
        try:
            if not request.get("again"):
                rate = ceilings.copy_gb_s(device, ceilings.copied_bytes(), probe=True)
                return {"status": "done", "copy_gb_s": rate}
            return {"status": "done", "ceilings": ceilings.measured(device).to_dict()}
        finally:
            torch.cuda.empty_cache()

    def _run(self, request: Json, fds: Sequence[int]) -> Json:
        kernels, recording = self.kernels, model.from_json(request.get("recording"))
        poison = model.read(request.get("poison", 0), Literal[0, 1])
        self._device()
        memory = loaded(recording, request["layouts"][0], fds[0], poison, self._place)
        return run(recording, memory, fds[1], kernels, self._launcher(),
                   windows=_windows(request))

    def _compile(self, request: Json, fds: Sequence[int]) -> Json:
        kernels = self.kernels
        recordings = [model.from_json(one) for one in request.get("recordings", ())]
        self._device()
        compile_ahead(kernels, (launch for one in recordings for launch in one.launches))
        return {"status": "done"}

    def _measure(self, request: Json, fds: Sequence[int]) -> Json:
        kernels, layouts = self.kernels, request.get("layouts")
        if not isinstance(layouts, list) or not 1 <= len(layouts) == len(fds) - 1 <= MOST_SETS:
            raise MalformedRecording("a measurement without its files")
        recordings = [model.from_json(one) for one in request.get("recordings", ())]
        if not recordings:
            raise MalformedRecording("a measurement of nothing")
        device = self._device()
        if self._place.type == "cuda":
            torch.cuda.empty_cache()
        sets = [loaded(recordings[0], layout, fd, number % 2, self._place)
                for number, (layout, fd) in enumerate(zip(layouts, fds, strict=False))]
        return measure(recordings, sets, fds[-1], kernels, self._launcher(), device,
                       windows=_windows(request))

    operations: ClassVar = {"load": load, "look": _look, "ceilings": _ceilings,
                            "compile": _compile, "run": _run, "measure": _measure}


def begin(visible: str | None) -> None:
    """Let this process see the GPU.

    Raises:
        GpuUnavailable: there is none, or its driver cannot be used here.
    """
    os.environ.pop("PYTORCH_NVML_BASED_CUDA_CHECK", None)
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    if visible is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible
    if torch.version.cuda is None:
        raise GpuUnavailable("this torch is built without CUDA")
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.zeros(1, device="cuda")
    except Exception as error:  # torch has many, and one that is none of its own
        raise GpuUnavailable(_first_line(error)) from error
    try:
        assert driver.active.utils is not None  # made of C, by a compiler of this machine
    except Exception as error:
        raise GpuUnavailable(
            f"Triton cannot compile what launches kernels: {_first_line(error)}") from error
    triton.set_allocator(  # for what kernels keep outside of their programs, such as descriptors
        lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))


def compile_ahead(kernels: Kernels, launches: Iterable[Launch]) -> None:
    """Compiles launches side by side, so that a run finds them; it reports what is refused here.

    Some versions of Triton have a C compiler make what launches kernels of each signature, at its
    first launch. That is done here too.
    """
    bind = without_memory(kernels).bind
    signatures: set[str] = set()

    def make_launcher(compiling: Future[Any]) -> None:
        with suppress(Exception):
            compiled = compiling.result()
            signature = repr([compiled.src.signature, [*compiled.src.constants]])
            if signature not in signatures:
                signatures.add(signature)
                driver.active.launcher_cls(compiled.src, compiled.metadata)

    with ThreadPoolExecutor(min(_MOST_THREADS, len(os.sched_getaffinity(0)))) as pool, \
            triton.AsyncCompileMode(pool, ignore_errors=True):
        for launch in launches:
            with suppress(Exception):
                kernel, bound = bind(launch)
                begun = kernel.run(grid=launch.grid, warmup=True, **bound,
                                   **complete(launch.options))
                if hasattr(begun, "future"):  # it was not compiled before
                    begun.future.add_done_callback(make_launcher)


class OnCuda:
    """Launches kernels as their own host code would, on the current stream."""

    def __init__(self) -> None:
        self._known: set[int] = set()  # launches that compile, by identity

    def __call__(self, kernel: Any, launch: Launch, bound: Mapping[str, Any]) -> None:
        """Launch a kernel.

        Raises:
            LaunchRefused: it does not compile for this GPU.
            GpuUnavailable: Triton cannot compile the code that launches it, whatever the kernel.
        """
        chosen = complete(launch.options)
        if id(launch) in self._known:
            kernel.run(grid=launch.grid, warmup=False, **bound, **chosen)
            return
        printed: list[str] = []
        try:
            with heard() as printed:
                kernel.run(grid=launch.grid, warmup=False, **bound, **chosen)
        except (torch.OutOfMemoryError, OSError):
            raise
        except Exception as error:
            if any(word in str(error) for word in _OF_CUDA):
                raise
            if isinstance(error, subprocess.SubprocessError) or "C compiler" in str(error):
                raise GpuUnavailable("Triton cannot compile what launches kernels: "
                            f"{_first_line(error)}") from error
            major, minor = torch.cuda.get_device_capability()
            here = replace(targets.find(), title=torch.cuda.get_device_name(),
                           capability=10 * major + minor)
            raise LaunchRefused(finding(error, "".join(printed), kernel, here)) from error
        self._known.add(id(launch))


def loaded(recording: Recording, layout: Any, fd: int, poison: int,
           device: torch.device) -> GpuMemory:
    """The inputs of a recording in memory of the device."""
    if not isinstance(layout, list) or not all(
            view.storage < len(layout) for view in recording.inputs):
        raise MalformedRecording("an input's storage is not in the arena")
    memory = GpuMemory(device, poison)
    for number, place in enumerate(layout):
        memory.load(number, fd, place)
    return memory


def run(recording: Recording, memory: GpuMemory, output: int, kernels: Kernels,
        launcher: Launcher, *, windows: Sequence[Sequence[int]] = ()) -> Json:
    """Run a recording once, checked, and write its results to the file ``output``."""
    results: list[list[Any]] = []
    try:
        replay = prepare(recording, memory, kernels, launcher)
        findings = run_checked(replay, recording)
        if not findings:
            results = _written(output, replay.results, windows)
    except LaunchRefused as refusal:
        findings = [refusal.finding]
    return {"status": "done", "findings": plain(findings[:_MOST_FINDINGS]), "results": results,
            "launches": []}


def measure(recordings: Sequence[Recording], sets: Sequence[GpuMemory], output: int,
            kernels: Kernels, launcher: Launcher, device: Cuda, *,
            windows: Sequence[Sequence[int]] = ()) -> Json:
    """Time a call, and write to ``output`` what the last timed runs left."""
    on_gpu = sets[0].device.type == "cuda"
    timing = time_call(
        recordings, sets, kernels, launcher, device,
        l2_bytes=torch.cuda.get_device_properties().L2_cache_size if on_gpu else 0,
        room=lambda: torch.cuda.mem_get_info()[0] if on_gpu else 0)
    return {
        "status": "done", "findings": plain(timing.findings[:_MOST_FINDINGS]),
        "measurement": timing.best and timing.best.to_dict(),
        "configurations": [one.to_dict() for one in timing.configurations],
        "results": [_written(output, results, windows) for results in timing.results],
        "untimed": [_written(output, results, windows) for results in timing.untimed],
    }


def _written(output: int, results: Sequence[torch.Tensor],
             windows: Sequence[Sequence[int]]) -> list[list[Any]]:
    """Writes whole results, or runs of (first element, count) of each as it lies row by row."""
    parts = [result.contiguous().view(-1)[first:first + count]
             for result in results for first, count in windows] if windows else results
    return append_results(output, parts)


def faulted(error: Exception) -> Json:
    """A kernel took the context of this process with it; nothing more can be run here."""
    why = _first_line(error)
    code = "M01" if any(word in why for word in _ILLEGAL) else "R03"
    kind = "illegal access" if code == "M01" else "stopped by GPU"
    return {"status": "faulted", "findings": plain([Finding(code, fault(kind, text=why))])}


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:_LONGEST]


def _windows(request: Json) -> list[tuple[int, int]]:
    windows: list[tuple[int, int]] = model.read(
        request.get("windows") or [], list[tuple[Index, Index]])
    return windows
