"""Attacks on the grader: each is run as a learner's code would run, on decoys, and judged outside.

The attackers' side is in ``attempts``, what they are after in ``decoys``, and what counts as a
success in ``evidence``.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from grader.sandbox import evidence, folders
from grader.sandbox.attempts import SOURCES
from grader.sandbox.client import Sandbox
from grader.sandbox.decoys import Scene, scene
from grader.sandbox.errors import ChildError
from grader.sandbox.evidence import Attempt, Judgement
from grader.sandbox.limits import MIB, Limits

__all__ = ["ATTACKS", "Arena", "Attack", "Attempt", "Confined", "Result", "Scene", "run", "scene"]

PATIENCE_S = 8.0  # for an attack to come to its end
BRIEFLY_S = 0.5  # for one that never does
SETTLE_S = 0.05  # for what an attack started to show
_LIMITS = Limits(address_space=512 * MIB, resident=512 * MIB)


class Arena(Protocol):
    """Where an attack is run."""

    def run(self, source: str, limits: Limits, patience_s: float) -> Attempt: ...


class Confined:
    """A child of a sandbox, as a learner's file gets one."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def run(self, source: str, limits: Limits, patience_s: float) -> Attempt:
        folder = Path(tempfile.mkdtemp(prefix="submission-", dir=self._sandbox.folder))
        path = folder / "kernel.py"
        path.write_text(source + "\ndef entry(): ...\n", encoding="utf-8")
        child = self._sandbox.fork("worker", limits)
        ended = ""
        try:
            child.ask({"op": "load", "path": str(path)}, timeout_s=patience_s)
        except ChildError as error:
            ended = str(error)

        def stop() -> None:
            child.kill()
            folders.remove(folder)

        return Attempt(child.pid, not ended, ended, child.output, stop)


@dataclass(frozen=True)
class Result:
    """What came of one attack. ``how`` is the evidence of a success, or what stopped it."""

    name: str
    succeeded: bool
    how: str
    seconds: float


@dataclass(frozen=True)
class Attack:
    """``alive`` is judged while its process still waits, ``after`` once that was ended."""

    name: str
    source: str
    alive: Judgement | None = None
    after: Judgement | None = None
    limits: Limits = _LIMITS
    patience_s: float = PATIENCE_S


def run(attack: Attack, target: Scene, arena: Arena) -> Result:
    """Run one attack and look at what it did."""
    started = time.monotonic()
    words = "\n".join(f"{name} = {value!r}" for name, value in target.words().items())
    attempt = arena.run(f"{words}\n{_TRY}\n{attack.source}", attack.limits,
                        attack.patience_s)
    seen = ""
    try:
        if attack.alive is not None:
            time.sleep(SETTLE_S)
            seen = attack.alive(target, attempt)
    finally:
        attempt.stop()
    if attack.after is not None and not seen:
        seen = attack.after(target, attempt)
    how = seen or attempt.ended or _refusal(attempt.printed()) or "nothing came of it"
    return Result(attack.name, bool(seen), how, time.monotonic() - started)


def _refusal(printed: str) -> str:
    lines = [line.removeprefix("refused: ") for line in printed.splitlines()
             if line.startswith("refused: ")]
    return lines[0][:100] if lines else ""


_TRY = '''
import os, sys, time
def attempt(*ways):
    for way in ways:
        try:
            print(way(), flush=True)
        except BaseException as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            print(f"refused: {why}", flush=True)
'''


def _attack(name: str, alive: Judgement | None = None, after: Judgement | None = None,
            limits: Limits = _LIMITS, patience_s: float = PATIENCE_S) -> Attack:
    return Attack(name, SOURCES[name], alive, after, limits, patience_s)


ATTACKS = (
    _attack("read a hidden test", evidence.told),
    _attack("list the hidden tests", evidence.listed),
    _attack("forge the certificate", evidence.forged),
    _attack("delete the learner's files", evidence.deleted),
    _attack("write into site-packages", evidence.exists("package")),
    _attack("write into /tmp", evidence.exists("temporary")),
    _attack("fill /dev/shm", evidence.exists("shared")),
    _attack("write a file of 80 MB", evidence.stored),
    _attack("write 40 files", evidence.stored),
    _attack("kill the judge", evidence.killed),
    _attack("read the judge's memory", evidence.told),
    _attack("read the judge's environment", evidence.told),
    _attack("copy the judge's memory (process_vm_readv)", evidence.told),
    _attack("trace the judge (ptrace)", evidence.traced),
    _attack("connect to a port of this machine", evidence.connected),
    _attack("start another program", evidence.executed, patience_s=2.0),
    _attack("fork without end", evidence.bombed),
    _attack("start a thread", evidence.threaded),
    _attack("leave a process behind", after=evidence.survived),
    _attack("write a verdict to an open descriptor", evidence.verdict),
    _attack("take 1 GiB of memory", evidence.held),
    _attack("take 1 GiB of shared memory", evidence.held),
    _attack("compute for ever, ignoring signals", after=evidence.outlived,
            limits=Limits(cpu_s=1), patience_s=4.0),  # the kernel ends it before the judge does
    _attack("sleep for ever, ignoring signals", after=evidence.outlived, patience_s=BRIEFLY_S),
    _attack("print for ever", after=evidence.flooded, patience_s=BRIEFLY_S),
    _attack("raise its own limits", evidence.raised),
)
