"""Attacks on the grader, run as a learner's code is, against decoys; success is judged outside.

``evidence`` holds their targets and the proofs of success.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grader.attacks import evidence
from grader.attacks.evidence import Judgement, RunningAttack, Scene, scene
from grader.sandbox import tempdirs
from grader.sandbox.client import Sandbox
from grader.sandbox.errors import ChildError
from grader.sandbox.limits import MIB, ResourceLimits

__all__ = ["ATTACKS", "Attack", "AttackResult", "Scene", "confined", "run", "scene"]

BRIEFLY_S = 0.5  # for an attack that never comes to its end
SETTLE_S = 0.05  # for what an attack started to show
_LIMITS = ResourceLimits(address_space=512 * MIB, resident=512 * MIB)

# Runs the source of an attack under limits, and waits so many seconds for it to come to its end.
Runner = Callable[[str, ResourceLimits, float], RunningAttack]


def confined(sandbox: Sandbox) -> Runner:
    """Returns a function that runs attacks in a worker, as a learner's file is run."""
    def start(source: str, limits: ResourceLimits, patience_s: float) -> RunningAttack:
        folder = Path(tempfile.mkdtemp(prefix="submission-", dir=sandbox.folder))
        path = folder / "kernel.py"
        path.write_text(source + "\ndef entry(): ...\n", encoding="utf-8")
        child = sandbox.fork("worker", limits)
        ended = ""
        try:
            child.ask({"op": "load", "path": str(path)}, timeout_s=patience_s)
        except ChildError as error:
            ended = str(error)

        def stop() -> None:
            child.kill()
            tempdirs.remove(folder)

        return RunningAttack(child.pid, ended, child.output, stop)

    return start


@dataclass(frozen=True)
class AttackResult:
    """The outcome of one attack. ``how`` is the evidence of success, or what stopped it."""

    name: str
    succeeded: bool
    how: str


@dataclass(frozen=True)
class Attack:
    """A hostile file. ``alive`` looks for evidence while it runs, ``after`` once it has ended.

    The names in capitals in its source are ``Scene.words``: places of the decoys, and amounts to
    take.
    """

    name: str
    source: str
    alive: Judgement | None = None
    after: Judgement | None = None
    limits: ResourceLimits = _LIMITS
    patience_s: float = 8.0


def run(attack: Attack, target: Scene, runner: Runner) -> AttackResult:
    """Runs one attack and looks for evidence of success."""
    words = "\n".join(f"{name} = {value!r}" for name, value in target.words().items())
    attempt = runner(f"{words}\n{_TRY}\n{attack.source}", attack.limits, attack.patience_s)
    proof = ""
    try:
        if attack.alive is not None:
            time.sleep(SETTLE_S)
            proof = attack.alive(target, attempt)
    finally:
        attempt.stop()
    if attack.after is not None and not proof:
        proof = attack.after(target, attempt)
    refusals = [line.removeprefix(evidence.REFUSED) for line in attempt.printed().splitlines()
                if line.startswith(evidence.REFUSED)]
    how = proof or attempt.ended or "".join(refusals[:1])[:100] or "nothing came of it"
    return AttackResult(attack.name, bool(proof), how)


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
_IGNORING = """
import signal
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU, signal.SIGUSR1):
    signal.signal(number, signal.SIG_IGN)
"""
_WRITE = """
def write(path, size=4096):
    with open(path, "wb") as file:
        left = size
        while left > 0:
            left -= file.write(bytes(min(left, 1 << 20)))
    return os.path.getsize(path)
"""
_NATIVE = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(function, *arguments):
    result = function(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
"""

ATTACKS = (  # most harmful first
    Attack("read a hidden test", """
def by_name():
    return open(HIDDEN).read()
def by_folder():
    folder = os.open(TESTS, os.O_PATH)
    return os.read(os.open(os.path.basename(HIDDEN), os.O_RDONLY, dir_fd=folder), 4096).decode()
def by_root():
    return open("/proc/self/root" + HIDDEN).read()
def by_import():
    sys.path.insert(0, TESTS)
    import importlib.util
    spec = importlib.util.spec_from_file_location("hidden", HIDDEN)
    return spec.loader.get_data(HIDDEN).decode()
attempt(by_name, by_folder, by_root, by_import)
""", evidence.printed_secret),
    Attack("list the hidden tests", """
attempt(lambda: os.listdir(TESTS),
        lambda: [entry.name for entry in os.scandir(TESTS)],
        lambda: os.listdir("/proc/self/root" + TESTS),
        lambda: list(os.walk(os.path.dirname(TESTS))))
""", evidence.listed),
    Attack("forge the certificate", _WRITE + """
def replace():
    other = CERTIFICATE + ".new"
    write(other)
    os.replace(other, CERTIFICATE)
def append():
    file = os.open(CERTIFICATE, os.O_WRONLY | os.O_APPEND)
    return os.write(file, b"passed")
attempt(append, lambda: write(CERTIFICATE), replace, lambda: os.truncate(CERTIFICATE, 0))
""", evidence.forged),
    Attack("delete the learner's files", """
attempt(lambda: os.unlink(WORK), lambda: os.rename(WORK, WORK + ".old"),
        lambda: __import__("shutil").rmtree(os.path.dirname(WORK)))
""", evidence.deleted),
    Attack("write into site-packages", _WRITE + "\nattempt(lambda: write(PACKAGE))\n",
           evidence.exists("package")),
    Attack("write into /tmp", _WRITE + """
attempt(lambda: write(TEMPORARY), lambda: os.mkdir(TEMPORARY),
        lambda: os.symlink("/", TEMPORARY), lambda: os.mkfifo(TEMPORARY))
""", evidence.exists("temporary")),
    Attack("fill /dev/shm", _WRITE + """
def posix():
    from multiprocessing import shared_memory
    return shared_memory.SharedMemory(os.path.basename(SHARED), create=True, size=1 << 20)
attempt(lambda: write(SHARED, 64 << 20), posix)
""", evidence.exists("shared")),
    Attack("write a file of 80 MB", _WRITE + """
attempt(lambda: write(WRITABLE + "/big", BIG), lambda: write("big", BIG))
""", evidence.stored),
    Attack("write 40 files", _WRITE + """
attempt(*[lambda path=f"{WRITABLE}/{number}": write(path, 1 << 20) for number in range(FILES)])
""", evidence.stored),
    Attack("kill the judge", _NATIVE + """
import fcntl, signal
def by_owner():
    # Not by a call that sends signals: the kernel is told whom to signal when a pipe can be read.
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, JUDGE)
    fcntl.fcntl(reading, 10, signal.SIGKILL)
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
    os.write(writing, b"x")
def by_descriptor():
    signal.pidfd_send_signal(os.pidfd_open(JUDGE), signal.SIGKILL)
attempt(by_owner, by_descriptor, lambda: os.kill(JUDGE, signal.SIGKILL),
        lambda: call(libc.tgkill, JUDGE, JUDGE, int(signal.SIGKILL)),
        lambda: call(libc.sigqueue, JUDGE, int(signal.SIGKILL), ctypes.c_void_p(0)))
""", evidence.killed),
    Attack("read the judge's memory", """
def read():
    with open(f"/proc/{JUDGE}/mem", "rb", 0) as memory:
        memory.seek(ADDRESS)
        return memory.read(LENGTH)
attempt(read)
""", evidence.printed_secret),
    Attack("read the judge's environment", """
attempt(lambda: open(f"/proc/{JUDGE}/environ").read(),
        lambda: open(f"/proc/self/root/proc/{JUDGE}/environ").read())
""", evidence.printed_secret),
    Attack("copy the judge's memory (process_vm_readv)", _NATIVE + """
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
def copy():
    taken = ctypes.create_string_buffer(LENGTH)
    here, there = Part(ctypes.addressof(taken), LENGTH), Part(ADDRESS, LENGTH)
    call(libc.process_vm_readv, JUDGE, ctypes.byref(here), ctypes.c_ulong(1), ctypes.byref(there),
         ctypes.c_ulong(1), ctypes.c_ulong(0))
    return taken.raw
attempt(copy)
""", evidence.printed_secret),
    Attack("trace the judge (ptrace)", _NATIVE + """
SEIZE, ATTACH = 0x4206, 16
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
attempt(lambda: call(libc.ptrace, SEIZE, JUDGE, None, None),
        lambda: call(libc.ptrace, ATTACH, JUDGE, None, None))
""", evidence.traced),
    Attack("connect to a port of this machine", """
import socket
attempt(lambda: socket.create_connection(("127.0.0.1", PORT), 1.0).send(b"hello"))
""", evidence.connected),
    Attack("start another program", """
def spawn():
    return os.posix_spawn("/bin/sleep", ["sleep", str(NAP)], {})
def popen():
    import subprocess
    return subprocess.Popen(["/bin/sleep", str(NAP)]).pid
def become():
    os.execv("/bin/sleep", ["sleep", str(NAP)])
attempt(spawn, popen, become)
""", evidence.executed, patience_s=2.0),
    Attack("fork without end", """
def bomb():
    for number in range(BOMB):
        if os.fork() == 0:
            time.sleep(NAP)
            os._exit(0)
attempt(bomb)
""", evidence.bombed),
    Attack("start a thread", """
import threading, _thread
attempt(lambda: threading.Thread(target=time.sleep, args=(NAP,), daemon=True).start(),
        lambda: _thread.start_new_thread(time.sleep, (NAP,)))
""", evidence.threaded),
    Attack("leave a process behind", _NATIVE + """
def leave():
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for option in (1, 36):  # neither die with the parent nor adopt anybody
                libc.prctl(option, 0, 0, 0, 0)
            os.write(writing, str(os.getpid()).encode())
            os.closerange(0, 64)
            time.sleep(NAP)
        os._exit(0)
    os.wait()
    return f"daemon={os.read(reading, 32).decode()}"
attempt(leave)
""", after=evidence.survived),
    Attack("write a verdict to an open descriptor", """
def everywhere():
    for number in range(5, 1024):
        try:
            os.write(number, MARK.encode())
        except OSError:
            pass
attempt(everywhere)
""", evidence.verdict),
    Attack("take 1 GiB of memory", """
kept = []
def take():
    for _ in range(MEMORY >> 24):
        kept.append(b"x" * (1 << 24))
attempt(take)
""", evidence.held),
    Attack("take 1 GiB of shared memory", """
import mmap
kept = []
def take():
    for _ in range(MEMORY >> 24):
        kept.append(mmap.mmap(-1, 1 << 24))
        kept[-1].write(b"x" * (1 << 24))
attempt(take)
""", evidence.held),
    Attack("compute for ever, ignoring signals", _IGNORING + "\nwhile True: pass\n",
           after=evidence.outlived,
           limits=ResourceLimits(cpu_s=1), patience_s=4.0),  # RLIMIT_CPU, before the judge
    Attack("sleep for ever, ignoring signals", _IGNORING + "\nwhile True: time.sleep(NAP)\n",
           after=evidence.outlived, patience_s=BRIEFLY_S),
    Attack("print for ever", "\nwhile True: print('x' * 1000)\n",
           after=evidence.flooded, patience_s=BRIEFLY_S),
    Attack("raise its own limits", """
import resource
def raise_one(which):
    hard = resource.getrlimit(which)[1]
    most = resource.RLIM_INFINITY
    for limit in ((most, most), (hard, hard)):
        try:
            resource.setrlimit(which, limit)
            return
        except (OSError, ValueError) as error:
            last = error
    raise last
attempt(lambda: raise_one(resource.RLIMIT_CORE), lambda: raise_one(resource.RLIMIT_FSIZE))
""", evidence.raised),
)
