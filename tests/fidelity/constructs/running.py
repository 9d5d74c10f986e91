"""Runs a construct on the engine or on a real GPU and says whether it behaves as it should."""

from __future__ import annotations

import contextlib
import inspect
import io
import signal
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch

from .construct import Check, Construct, difference, listed

BEHAVES = "behaves"
REFUSED = "refused rightly"
DIFFERS = "differs"  # and the construct's own table says why
STALE = "stale reason"  # the table says that it differs, and it does not
WRONG = "silently wrong"  # another value, or code that no GPU runs, and no word about it
FAILED = "failed"  # an error or a false alarm for code that a GPU runs
SKIPPED = "skipped"
LIKE_A_GPU = (BEHAVES, REFUSED, STALE)

_LIMIT_SECONDS = 30


class TookTooLong(BaseException):
    """A construct outlasted its limit; no handler of ordinary errors may catch it."""


class GpuLost(RuntimeError):
    """After an illegal access nothing more can run on the GPU in this process."""


@dataclass(frozen=True)
class Settings:
    """How the engine runs: the arguments of ``interpreted``."""

    chunk: int | None = None
    order: str = "forward"
    poison: int = 0


@dataclass(frozen=True)
class Row:
    theme: str
    name: str
    verdict: str
    detail: str
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def run(construct: Construct, device: str = "cpu", settings: Settings | None = None) -> Row:
    """One row of the table.

    Raises:
        GpuLost: a kernel left the real GPU unusable.
    """
    settings = settings or Settings()
    started = time.perf_counter()
    if device != "cpu" and construct.not_on_gpu:
        verdict, detail = SKIPPED, construct.not_on_gpu
    else:
        verdict, detail = _judge(construct, device, settings)
    return Row(construct.theme, construct.name, verdict, detail, time.perf_counter() - started)


def _judge(construct: Construct, device: str, settings: Settings) -> tuple[str, str]:
    verdict, detail = _verdict(construct, device, settings)
    if device != "cpu":
        return verdict, detail
    if not construct.reason:
        return verdict, detail
    if verdict in (BEHAVES, REFUSED):
        return STALE, f"it {verdict}, though: {construct.reason}"
    return DIFFERS, construct.reason


def _verdict(construct: Construct, device: str, settings: Settings) -> tuple[str, str]:
    try:
        with _quiet(), _limited():
            if device == "cpu":
                checks, found = _interpret(construct, settings)
            else:
                checks, found = _on_gpu(construct, device), set()
    except GpuLost:
        raise
    except TookTooLong:
        return FAILED, f"it took more than {_LIMIT_SECONDS} s"
    except Exception as error:
        return _raised(construct, error)
    if construct.rejected:
        return WRONG, "it ran, and no GPU runs it"
    if construct.fails:
        return WRONG, f"it ran to its end instead of failing with {construct.fails}"
    wrong = next((wrong for wrong in map(difference, checks) if wrong), "")
    if device == "cpu" and found != construct.finds:
        return FAILED, f"findings {_listed(found)} instead of {_listed(construct.finds)}. {wrong}"
    return (WRONG, wrong) if wrong else (BEHAVES, "")


def _interpret(construct: Construct, settings: Settings) -> tuple[list[Check], set[str]]:
    from grader.engine.interpreter.eager import interpreted

    options: dict[str, Any] = {"order": settings.order, "poison": settings.poison}
    if "chunk" in inspect.signature(interpreted).parameters:
        options["chunk"] = settings.chunk
    checks: list[Check] = []
    found: set[str] = set()
    for number in range(construct.configurations):
        with interpreted(**options, config=number) as trace:
            checks += listed(construct.body("cpu"))
        found |= {finding.code for finding in trace.findings}
    return checks, found


def _on_gpu(construct: Construct, device: str) -> list[Check]:
    try:
        checks = listed(construct.body(device))
        torch.cuda.synchronize()
    except Exception as error:
        try:
            torch.cuda.synchronize()
            torch.zeros(1, device=device).item()
        except Exception:
            raise GpuLost(f"{type(error).__name__}: {error}") from error
        raise
    return checks


def _raised(construct: Construct, error: Exception) -> tuple[str, str]:
    finding = getattr(error, "finding", None)
    said = f"{type(error).__name__}: {error}" if finding is None else str(error)
    if construct.fails:
        right = finding is not None and finding.code == construct.fails
        return (BEHAVES, "") if right else (FAILED, said)
    if not construct.rejected:
        return FAILED, said
    unknown = type(error) is RuntimeError and "does not support" in str(error)
    if unknown or (finding is not None and finding.code not in construct.refusals):
        return FAILED, said
    return REFUSED, said


def _listed(codes: Iterable[str]) -> str:
    return ", ".join(sorted(codes)) or "none"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Kernels may print and Triton may warn."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _LIMIT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
