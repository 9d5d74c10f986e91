"""The judge's client of the GPU process: checks its replies, caches the GPU's ceilings."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from grader.engine.gpu.measurement import Ceilings, Gpu
from grader.report import Finding
from grader.sandbox import Child, ChildError, Sandbox, cancellation
from grader.sandbox.limits import OF_A_GPU

LOOK_S = 60.0  # to begin with CUDA; two seconds are usual, the first time after a start more
CEILINGS_S = 120.0
WAKE_S = 10.0
DRIFT = 0.05  # of the speed of a copy, above which all is measured again
TURN_S = 300.0  # to wait for others
_FILE, _LOCKS = "ceilings.json", ("gpu.door", "gpu.lock")
_MOST_KEPT = 32  # ceilings: of each GPU, driver, torch and Triton


class NoGpu(Exception):
    """No GPU can be used, or it is too small; the message says why."""


# Sends a request and descriptors to the GPU process, and returns its reply. Further arguments are
# the time limit in seconds, and the name of the task for messages.
Asking = Callable[[dict[str, Any], Sequence[int], float, str], dict[str, Any]]


def present() -> bool:
    """Whether NVIDIA's driver is loaded, as its device files show."""
    return any(Path(path).exists()
               for path in ("/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia/version"))


def wake() -> None:
    """Creates the driver's device files with ``nvidia-modprobe``, as its first user does.

    The GPU process cannot: no program that it starts gains privileges.
    """
    helper = shutil.which("nvidia-modprobe")
    if helper and present() and not Path("/dev/nvidia-uvm").exists():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run([helper, "-u", "-c", "0"], timeout=WAKE_S, check=False,
                           stdin=subprocess.DEVNULL, capture_output=True)


def visible() -> str | None:
    """The value of CUDA_VISIBLE_DEVICES."""
    return os.environ.get("CUDA_VISIBLE_DEVICES")


@contextmanager
def turn(*, alone: bool) -> Iterator[None]:
    """Holds the GPU's lock: exclusive (``alone``) for timing, shared for all other work.

    A grade that waits for the exclusive lock keeps later ones from taking the shared one. Without
    a lock within ``TURN_S``, or where files cannot be locked, the work goes on.
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError, RuntimeError):
            cache().parent.mkdir(parents=True, exist_ok=True)
            door, room = (held.enter_context(cache().with_name(name).open("w"))
                          for name in _LOCKS)
            deadline = time.monotonic() + TURN_S
            _lock(door, fcntl.LOCK_EX, deadline)
            _lock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, deadline)
            fcntl.flock(door, fcntl.LOCK_UN)
        yield


def _lock(file: IO[str], kind: int, deadline: float) -> None:
    while time.monotonic() < deadline:
        cancellation.check()
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return
        time.sleep(0.02)


def start(sandbox: Sandbox) -> Child:
    """Forks a GPU process, which loads nothing before its first request."""
    wake()
    return sandbox.fork("gpu", OF_A_GPU)


@contextmanager
def process(sandbox: Sandbox) -> Iterator[Asking]:
    """Starts a GPU process without a submission."""
    with start(sandbox) as child:
        child.ask({"op": "load", "devices": visible()}, timeout_s=LOOK_S)

        def ask(request: dict[str, Any], fds: Sequence[int], seconds: float,
                task: str) -> dict[str, Any]:
            try:
                return child.ask(request, fds, seconds)
            except ChildError as error:
                raise NoGpu(f"{task} did not end as it should: {error}") from error

        yield ask


def done_reply(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a reply that is done; any other raises NoGpu with its reason."""
    match reply.get("status"):
        case "done":
            return reply
        case "small":
            raise NoGpu(f"the memory of this GPU does not hold it ({_text(reply)})")
        case "none":
            raise NoGpu(_text(reply))
        case "faulted" | "refused":
            findings = reply.get("findings") or [{}]
            raise NoGpu(Finding.from_json(findings[0]).seen)
    raise NoGpu(f"the process before the GPU failed: {_text(reply)}")


def _text(reply: Mapping[str, Any]) -> str:
    reason = reply.get("why") or reply.get("traceback") or reply.get("message") or "it says nothing"
    return str(reason)[-1000:]


def look(ask: Asking) -> Gpu:
    """Asks for name, driver and sizes of the GPU; raises NoGpu if none can be used."""
    try:
        return Gpu.from_dict(_look(ask)["gpu"])
    except ValueError as error:
        raise NoGpu(f"the process before the GPU answers strangely: {error}") from error


def _look(ask: Asking) -> Mapping[str, Any]:
    return done_reply(ask({"op": "look"}, [], LOOK_S, "beginning with the GPU"))


def ceilings(ask: Asking, *, again: bool = False) -> Ceilings:
    """Returns the GPU's ceilings, measured at first use and cached.

    Cached ones are used if a copy is still as fast, within ``DRIFT``, unless they are to be
    measured ``again``, which takes seconds.

    Raises:
        NoGpu: there is none that can be used.
    """
    try:
        looked = _look(ask)
        gpu = Gpu.from_dict(looked["gpu"])
        kept = find(gpu, looked.get("versions") or {})
        if kept is not None and not again:
            with turn(alone=True):
                probe = done_reply(ask({"op": "ceilings", "again": False}, [], LOOK_S, "copying"))
            rate = probe.get("copy_gb_s")
            if isinstance(rate, float) and abs(rate / kept.copy_gb_s - 1) <= DRIFT:
                return kept
        with turn(alone=True):
            answer = done_reply(ask({"op": "ceilings", "again": True}, [], CEILINGS_S,
                              "measuring the GPU"))
        measured = Ceilings.from_dict(answer.get("ceilings"))
    except (KeyError, TypeError, ValueError) as error:
        raise NoGpu(f"the process before the GPU answers strangely: {error}") from error
    keep(measured)
    return measured


# The cache of ceilings, a file in the user's cache folder


def cache() -> Path:
    """``$XDG_CACHE_HOME/tritonlab/ceilings.json``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    return folder / "tritonlab" / _FILE


def kept() -> list[Ceilings]:
    """Reads the cached ceilings, newest last; none if the file cannot be read."""
    try:
        data = json.loads(cache().read_text(encoding="utf-8"))
        return [Ceilings.from_dict(one) for one in data["ceilings"]]
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return []


def find(gpu: Gpu, versions: Mapping[str, Any]) -> Ceilings | None:
    """Returns the newest cached ceilings of this GPU, driver, torch and Triton."""
    return next((one for one in reversed(kept())
                 if _key(one.gpu, one.versions) == _key(gpu, versions)), None)


def keep(measured: Ceilings) -> None:
    """Adds ceilings to the cache; if it cannot be written, they are measured again next time."""
    key = _key(measured.gpu, measured.versions)
    others = [one for one in kept() if _key(one.gpu, one.versions) != key]
    text = json.dumps({"ceilings": [one.to_dict() for one in (*others, measured)][-_MOST_KEPT:]},
                      indent=1)
    with contextlib.suppress(OSError, RuntimeError), contextlib.ExitStack() as cleanup:
        cache().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", prefix=".ceilings-", dir=cache().parent,
                                         encoding="utf-8", delete=False) as file:
            written = Path(file.name)
            cleanup.callback(written.unlink, missing_ok=True)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        written.replace(cache())


def _key(gpu: Gpu, versions: Mapping[str, Any]) -> tuple[Any, ...]:
    return gpu.uuid, gpu.driver, versions.get("torch"), versions.get("triton")
