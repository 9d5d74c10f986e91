"""Attacks on the grader, run as a learner's code is, against decoys; success is judged outside.

``attempts`` holds the hostile code, ``honeypots`` its targets, ``evidence`` the proofs of success.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from grader.attacks import evidence
from grader.attacks.attempts import SOURCES
from grader.attacks.evidence import Judgement, RunningAttack
from grader.attacks.honeypots import Scene, scene
from grader.sandbox import tempdirs
from grader.sandbox.client import Sandbox
from grader.sandbox.errors import ChildError
from grader.sandbox.limits import MIB, ResourceLimits

__all__ = ["ATTACKS", "Attack", "AttackResult", "AttackRunner", "Confined", "RunningAttack",
           "Scene", "run", "scene"]

PATIENCE_S = 8.0  # for an attack to come to its end
BRIEFLY_S = 0.5  # for one that never does
SETTLE_S = 0.05  # for what an attack started to show
_LIMITS = ResourceLimits(address_space=512 * MIB, resident=512 * MIB)


class AttackRunner(Protocol):
    """Runs the source of an attack."""

    def run(self, source: str, limits: ResourceLimits, patience_s: float) -> RunningAttack: ...


class Confined:
    """Runs attacks in a worker of a sandbox, as a learner's file is run."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def run(self, source: str, limits: ResourceLimits, patience_s: float) -> RunningAttack:
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
            tempdirs.remove(folder)

        return RunningAttack(child.pid, not ended, ended, child.output, stop)


@dataclass(frozen=True)
class AttackResult:
    """The outcome of one attack. ``how`` is the evidence of success, or what stopped it."""

    name: str
    succeeded: bool
    how: str
    seconds: float


@dataclass(frozen=True)
class Attack:
    """A hostile file. ``alive`` looks for evidence while it runs, ``after`` once it has ended."""

    name: str
    source: str
    alive: Judgement | None = None
    after: Judgement | None = None
    limits: ResourceLimits = _LIMITS
    patience_s: float = PATIENCE_S


def run(attack: Attack, target: Scene, arena: AttackRunner) -> AttackResult:
    """Runs one attack and looks for evidence of success."""
    started = time.monotonic()
    words = "\n".join(f"{name} = {value!r}" for name, value in target.words().items())
    attempt = arena.run(f"{words}\n{_TRY}\n{attack.source}", attack.limits,
                        attack.patience_s)
    proof = ""
    try:
        if attack.alive is not None:
            time.sleep(SETTLE_S)
            proof = attack.alive(target, attempt)
    finally:
        attempt.stop()
    if attack.after is not None and not proof:
        proof = attack.after(target, attempt)
    how = proof or attempt.ended or _refusal(attempt.printed()) or "nothing came of it"
    return AttackResult(attack.name, bool(proof), how, time.monotonic() - started)


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
            limits: ResourceLimits = _LIMITS, patience_s: float = PATIENCE_S) -> Attack:
    return Attack(name, SOURCES[name], alive, after, limits, patience_s)


ATTACKS = (
    _attack("read a hidden test", evidence.printed_secret),
    _attack("list the hidden tests", evidence.listed),
    _attack("forge the certificate", evidence.forged),
    _attack("delete the learner's files", evidence.deleted),
    _attack("write into site-packages", evidence.exists("package")),
    _attack("write into /tmp", evidence.exists("temporary")),
    _attack("fill /dev/shm", evidence.exists("shared")),
    _attack("write a file of 80 MB", evidence.stored),
    _attack("write 40 files", evidence.stored),
    _attack("kill the judge", evidence.killed),
    _attack("read the judge's memory", evidence.printed_secret),
    _attack("read the judge's environment", evidence.printed_secret),
    _attack("copy the judge's memory (process_vm_readv)", evidence.printed_secret),
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
            limits=ResourceLimits(cpu_s=1), patience_s=4.0),  # RLIMIT_CPU, before the judge
    _attack("sleep for ever, ignoring signals", after=evidence.outlived, patience_s=BRIEFLY_S),
    _attack("print for ever", after=evidence.flooded, patience_s=BRIEFLY_S),
    _attack("raise its own limits", evidence.raised),
)
