"""The GPU of this machine, seen from the judge: what it is, what it reaches, and what was cached.

The process before the GPU measures; what it says is checked here and kept here.
"""

from __future__ import annotations

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
from typing import IO, Any, Protocol

from grader.measurement import Ceilings, Gpu
from grader.report import Finding
from grader.sandbox import ChildError, Sandbox, cancellation
from grader.sandbox.limits import of_a_gpu

LOOK_S = 60.0  # to begin with CUDA; two seconds are usual, the first time after a start more
CEILINGS_S = 120.0
WAKE_S = 10.0
DRIFT = 0.05  # of the speed of a copy, above which all is measured again
TURN_S = 300.0  # to wait for others
_FILE, _LOCKS = "ceilings.json", ("gpu.door", "gpu.lock")
_MOST_KEPT = 32  # ceilings: of each GPU, driver, torch and Triton


class NoGpu(Exception):
    """What a GPU was to tell cannot be told here: there is none, or it is too small. Says why."""


class Asking(Protocol):
    """Asks the process before the GPU for something, and gives its reply."""

    def __call__(self, request: dict[str, Any], fds: Sequence[int], seconds: float,
                 what: str) -> dict[str, Any]: ...


def present() -> bool:
    """Whether there is a driver: a quick look, before anything is started."""
    return any(Path(path).exists()
               for path in ("/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia/version"))


def wake() -> None:
    """Have the device files made that a driver makes at its first use, as its own helper does.

    The process before the GPU cannot: whatever it starts gains no rights.
    """
    helper = shutil.which("nvidia-modprobe")
    if helper and present() and not Path("/dev/nvidia-uvm").exists():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run([helper, "-u", "-c", "0"], timeout=WAKE_S, check=False,
                           stdin=subprocess.DEVNULL, capture_output=True)


def visible() -> str | None:
    """Which devices this process may see, in the words of CUDA_VISIBLE_DEVICES."""
    return os.environ.get("CUDA_VISIBLE_DEVICES")


@contextmanager
def turn(*, alone: bool) -> Iterator[None]:
    """Wait for other grades of this user: what is timed runs alone, and all else side by side.

    Who waits to be alone keeps others from coming after it. Where no lock can be had, or none
    within ``TURN_S``, nobody waits any longer.
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
        try:
            return fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
    return None


@contextmanager
def process(sandbox: Sandbox) -> Iterator[Asking]:
    """A process before the GPU without a submission, for what can be asked without one."""
    wake()
    with sandbox.fork("gpu", of_a_gpu()) as child:
        child.ask({"op": "load", "devices": visible()}, timeout_s=LOOK_S)

        def ask(request: dict[str, Any], fds: Sequence[int], seconds: float,
                what: str) -> dict[str, Any]:
            try:
                return child.ask(request, fds, seconds)
            except ChildError as error:
                raise NoGpu(f"{what} did not end as it should: {error}") from error

        yield ask


def told(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """A reply that holds what was asked for.

    Raises:
        NoGpu: it says why it cannot.
    """
    match reply.get("status"):
        case "done":
            return reply
        case "small":
            raise NoGpu(f"the memory of this GPU does not hold it ({_text(reply)})")
        case "none":
            raise NoGpu(_text(reply))
        case "faulted" | "refused":
            findings = reply.get("findings") or [{}]
            raise NoGpu(Finding.from_dict(findings[0]).seen)
    raise NoGpu(f"the process before the GPU failed: {_text(reply)}")


def _text(reply: Mapping[str, Any]) -> str:
    said = reply.get("why") or reply.get("traceback") or reply.get("message") or "it says nothing"
    return str(said)[-1000:]


def look(ask: Asking) -> Gpu:
    """What the GPU is.

    Raises:
        NoGpu: there is none that can be used.
    """
    try:
        return Gpu.from_dict(_look(ask)["gpu"])
    except ValueError as error:
        raise NoGpu(f"the process before the GPU answers strangely: {error}") from error


def _look(ask: Asking) -> Mapping[str, Any]:
    return told(ask({"op": "look"}, [], LOOK_S, "beginning with the GPU"))


def ceilings(ask: Asking, *, again: bool = False,
             tell: Callable[[str], None] = lambda text: None) -> Ceilings:
    """What the GPU reaches, measured at first use and kept; a copy tells whether it still holds.

    Args:
        again: measure, whatever is kept.
        tell: is told what takes seconds, before it begins.

    Raises:
        NoGpu: there is none that can be used.
    """
    try:
        looked = _look(ask)
        gpu = Gpu.from_dict(looked["gpu"])
        kept = find(gpu, looked.get("versions") or {})
        if kept is not None and not again:
            with turn(alone=True):
                probe = told(ask({"op": "ceilings", "again": False}, [], LOOK_S, "copying"))
            rate = probe.get("copy_gb_s")
            if isinstance(rate, float) and abs(rate / kept.copy_gb_s - 1) <= DRIFT:
                return kept
        tell(f"measuring what the {gpu.name} reaches")
        with turn(alone=True):
            answer = told(ask({"op": "ceilings", "again": True}, [], CEILINGS_S,
                              "measuring the GPU"))
        made = Ceilings.from_dict(answer.get("ceilings"))
    except (KeyError, TypeError, ValueError) as error:
        raise NoGpu(f"the process before the GPU answers strangely: {error}") from error
    keep(made)
    return made


# ---------------------------------------------------------------------------------------------
# Kept in a file of the user's cache


def cache() -> Path:
    """``$XDG_CACHE_HOME/tritonlab/ceilings.json``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    return folder / "tritonlab" / _FILE


def kept() -> list[Ceilings]:
    """All that are kept, the newest last; a file that cannot be read holds none."""
    try:
        data = json.loads(cache().read_text(encoding="utf-8"))
        return [Ceilings.from_dict(one) for one in data["ceilings"]]
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return []


def find(gpu: Gpu, versions: Mapping[str, Any]) -> Ceilings | None:
    """Those of this very GPU with this driver, torch and Triton."""
    for one in reversed(kept()):
        if (one.gpu.uuid, one.gpu.driver) == (gpu.uuid, gpu.driver) and all(
                one.versions.get(name) == versions.get(name) for name in ("torch", "triton")):
            return one
    return None


def keep(made: Ceilings) -> None:
    """Write them down; where that cannot be done, they are measured again next time."""
    key = (made.gpu.uuid, made.gpu.driver, made.versions.get("torch"), made.versions.get("triton"))
    others = [one for one in kept() if key != (
        one.gpu.uuid, one.gpu.driver, one.versions.get("torch"), one.versions.get("triton"))]
    text = json.dumps({"ceilings": [one.to_dict() for one in (*others, made)][-_MOST_KEPT:]},
                      indent=1)
    with contextlib.suppress(OSError, RuntimeError):
        _write(cache(), text)


def _write(path: Path, text: str) -> None:
    """All of it or nothing, and there for good once this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, name = tempfile.mkstemp(prefix=".ceilings-", dir=path.parent)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
