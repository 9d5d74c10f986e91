"""Attacks on the grader, run as a learner's code is, against decoys; success is judged outside.

Ordinary permissions leave all decoys open, so that only the sandbox stands before them. The output
of an attack counts only if it contains a secret that it was not given.
"""

import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from grader.sandbox import processes, tempdirs
from grader.sandbox.client import Sandbox
from grader.sandbox.errors import ChildError
from grader.sandbox.limits import KIB, MIB, ResourceLimits

BOMB, MANY_FILES = 100, 40  # processes and files that an attack makes, when it is let
BIG_FILE, MEMORY = 80_000_000, 1 << 30  # bytes that it takes
NAP_S = 60.0  # of what it leaves running
MOST_OUTPUT = 256 * KIB  # characters; a judge that keeps more can be drowned
REFUSED = "refused: "  # before the reason why an attack failed, in its output
BRIEFLY_S = 0.5  # for an attack that never comes to its end
SETTLE_S = 0.05  # for what an attack started to show
_LIMITS = ResourceLimits(address_space=512 * MIB, resident=512 * MIB)


class Scene:
    """Files, a process with a secret, a listening socket and an open descriptor."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.secret, self.mark = folder, secrets.token_hex(16), secrets.token_hex(8)
        self.hidden = self.folder / "hidden" / f"test_{self.mark}.py"
        self.certificate = self.folder / "certificate.json"
        self.work = self.folder / "home" / "kernel.py"
        self.writable = self.folder / "open"
        self.package = Path(sysconfig.get_path("purelib")) / f"tritonlab_decoy_{self.mark}.py"
        self.temporary = Path(tempfile.gettempdir()) / f"tritonlab-decoy-{self.mark}"
        self.shared = Path("/dev/shm") / f"tritonlab-decoy-{self.mark}"
        for path in (self.hidden, self.certificate, self.work, self.writable / "x"):
            path.parent.mkdir(mode=0o777, exist_ok=True)
            path.parent.chmod(0o777)
        self.folder.chmod(0o777)
        for path in (self.hidden, self.certificate, self.work):
            path.write_text(f"# {self.secret}\n", encoding="utf-8")
            path.chmod(0o666)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.verdict, self.verdict_end = os.pipe2(os.O_NONBLOCK)
        os.set_inheritable(self.verdict_end, True)  # left open, as a careless grader might
        self.last_judge: subprocess.Popen[str] | None = None
        self.judge_address = 0

    @property
    def judge(self) -> subprocess.Popen[str]:
        """A process with the secret in its environment and memory; replaced if it died."""
        if self.last_judge is None or self.last_judge.poll() is not None:
            self._drop_judge()
            self.last_judge = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _JUDGE], stdin=subprocess.PIPE, text=True,
                stdout=subprocess.PIPE, env={"SECRET": self.secret, "LANG": "C.UTF-8"})
            assert self.last_judge.stdout is not None
            self.judge_address = int(self.last_judge.stdout.readline())
        return self.last_judge

    def words(self) -> dict[str, object]:
        """The names that an attack gets: where everything lies, but no secret."""
        judge = self.judge
        return {
            "HIDDEN": str(self.hidden), "TESTS": str(self.hidden.parent),
            "CERTIFICATE": str(self.certificate), "WORK": str(self.work),
            "PACKAGE": str(self.package), "WRITABLE": str(self.writable),
            "TEMPORARY": str(self.temporary), "SHARED": str(self.shared), "MARK": self.mark,
            "JUDGE": judge.pid, "ADDRESS": self.judge_address, "LENGTH": len(self.secret),
            "PORT": self.listener.getsockname()[1], "BOMB": BOMB, "FILES": MANY_FILES,
            "BIG": BIG_FILE, "MEMORY": MEMORY, "NAP": NAP_S,
        }

    def close(self) -> None:
        self._drop_judge()
        self.listener.close()
        os.close(self.verdict)
        os.close(self.verdict_end)
        for path in (self.package, self.temporary, self.shared):
            path.unlink(missing_ok=True)
        tempdirs.remove(self.folder)

    def _drop_judge(self) -> None:
        if self.last_judge is not None:
            self.last_judge.kill()
            self.last_judge.communicate()


_JUDGE = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)
kept = ctypes.create_string_buffer(os.environ["SECRET"].encode())
print(ctypes.addressof(kept), flush=True)
sys.stdin.read()
"""


def scene() -> contextlib.closing[Scene]:
    """Makes the decoys in a folder that every user can reach. Enter it before a sandbox starts."""
    return contextlib.closing(Scene(Path(tempfile.mkdtemp(prefix="tritonlab-decoys-"))))


@dataclass
class RunningAttack:
    """An attack under way: its process, and the output that was kept of it."""

    pid: int
    ended: str  # how its process ended; empty if that waits at the end of the attack
    printed: Callable[[], str]


Judgement = Callable[[Scene, RunningAttack], str]  # the evidence of success; empty without


def when(evidence: Callable[[Scene, RunningAttack], object], text: str) -> Judgement:
    """A judgement that finds ``text`` where there is evidence, which has a place in it or not."""
    return lambda target, attempt: \
        text.format(proof) if (proof := evidence(target, attempt)) else ""


printed_secret = when(lambda target, attempt: target.secret in attempt.printed(),
                      "the secret came back")
forged = when(lambda target, _: target.certificate.read_text(encoding="utf-8") !=
              f"# {target.secret}\n", "the certificate was changed")
deleted = when(lambda target, _: not target.work.exists(), "the learner's file is gone")
killed = when(lambda target, _: target.last_judge is not None and
              target.last_judge.poll() is not None, "the judge was killed")
traced = when(lambda target, _: "TracerPid:\t0" not in _proc(target.judge.pid, "status"),
              "the judge was being traced")
raised = when(lambda _, attempt: any(
    line.startswith("Max core file size") and line.split()[4] != "0"
    for line in _proc(attempt.pid, "limits")), "a limit was raised")
outlived = when(lambda _, attempt: _killed(attempt.pid), "the process was still running")
listed = when(lambda target, attempt: any(
    target.hidden.name in line for line in attempt.printed().splitlines()
    if not line.startswith(REFUSED)),  # whose reasons repeat names that it was given
    "the name of a hidden file came back")
bombed = when(lambda _, attempt: (count := len([*processes.descendants(attempt.pid)])) >= BOMB
              and count, "{} processes were running")
survived = when(lambda _, attempt: next(
    (pid for pid in re.findall(r"\bdaemon=(\d+)", attempt.printed()) if _killed(int(pid))), ""),
    "process {} was still running")
held = when(lambda _, attempt: (kib := _status(attempt.pid, "VmHWM")) * 1024 >= MEMORY
            and kib / 1e6, "{:.1f} GB were held")
flooded = when(lambda _, attempt: (kept := len(attempt.printed())) > MOST_OUTPUT and kept / 1e6,
               "{:.0f} MB of output were kept")
threaded = when(lambda _, attempt: (count := _status(attempt.pid, "Threads")) > 1 and count,
                "{} threads were running")


def exists(name: str) -> Judgement:
    return when(lambda target, _: (path := getattr(target, name)).exists() and path.parent,
                "{} was written to")


def connected(target: Scene, attempt: RunningAttack) -> str:
    with contextlib.suppress(BlockingIOError):
        target.listener.accept()[0].close()
        return "a connection to this machine came in"
    return ""


def executed(target: Scene, attempt: RunningAttack) -> str:
    if attempt.ended == "closed its channel and went on":
        return "it became another program"  # which is when its end of the channel closes
    running = any(_proc(pid, "comm") == ["sleep"]
                  for pid in (attempt.pid, *processes.descendants(attempt.pid)))
    return "another program was running" if running else ""


def _killed(pid: int) -> bool:
    """Kills a process; returns whether it lived."""
    alive = processes.state(pid) not in ("", "Z", "X")
    if alive:
        processes.send(pid, signal.SIGKILL)
    return alive


def verdict(target: Scene, attempt: RunningAttack) -> str:
    with contextlib.suppress(BlockingIOError):
        return "a verdict came in" if target.mark.encode() in os.read(target.verdict, 4096) else ""
    return ""


def stored(target: Scene, attempt: RunningAttack) -> str:
    sizes = [path.stat().st_size for path in target.writable.iterdir()]
    for path in target.writable.iterdir():
        path.unlink()
    if max(sizes, default=0) >= BIG_FILE:
        return f"a file of {max(sizes) / 1e6:.0f} MB was written"
    return f"{len(sizes)} files were written" if len(sizes) >= MANY_FILES else ""


def _status(pid: int, name: str) -> int:
    """A number in the status of a process, sizes in KiB; 0 if that has ended."""
    return sum(int(line.split()[1]) for line in _proc(pid, "status")
               if line.startswith(f"{name}:"))


def _proc(pid: int, name: str) -> list[str]:
    """Lines of a file about a process; none if that has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


# Runs the source of an attack under limits, waits so many seconds for it to come to its end, and
# kills it on exit.
Runner = Callable[[str, ResourceLimits, float], AbstractContextManager[RunningAttack]]


def confined(sandbox: Sandbox) -> Runner:
    """Returns a function that runs attacks in a worker, as a learner's file is run."""
    @contextlib.contextmanager
    def start(source: str, limits: ResourceLimits, patience_s: float) -> Iterator[RunningAttack]:
        folder = Path(tempfile.mkdtemp(prefix="submission-", dir=sandbox.folder))
        path = folder / "kernel.py"
        path.write_text(source + "\ndef entry(): ...\n", encoding="utf-8")
        ended = ""
        with sandbox.fork("worker", limits) as child:
            try:
                child.ask({"op": "load", "path": str(path)}, timeout_s=patience_s)
            except ChildError as error:
                ended = str(error)
            yield RunningAttack(child.pid, ended, child.output)
        tempdirs.remove(folder)

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

    The names in capitals in its source are those of ``Scene.words``.
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
    source = f"{words}\n{_TRY}\n{attack.source}"
    proof = ""
    with runner(source, attack.limits, attack.patience_s) as attempt:
        if attack.alive is not None:
            time.sleep(SETTLE_S)
            proof = attack.alive(target, attempt)
    if attack.after is not None and not proof:
        proof = attack.after(target, attempt)
    refusals = [line.removeprefix(REFUSED) for line in attempt.printed().splitlines()
                if line.startswith(REFUSED)]
    how = proof or attempt.ended or "".join(refusals[:1])[:100] or "it had no effect"
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
""", printed_secret),
    Attack("list the hidden tests", """
attempt(lambda: os.listdir(TESTS),
        lambda: [entry.name for entry in os.scandir(TESTS)],
        lambda: os.listdir("/proc/self/root" + TESTS),
        lambda: list(os.walk(os.path.dirname(TESTS))))
""", listed),
    Attack("forge the certificate", _WRITE + """
def replace():
    other = CERTIFICATE + ".new"
    write(other)
    os.replace(other, CERTIFICATE)
def append():
    file = os.open(CERTIFICATE, os.O_WRONLY | os.O_APPEND)
    return os.write(file, b"passed")
attempt(append, lambda: write(CERTIFICATE), replace, lambda: os.truncate(CERTIFICATE, 0))
""", forged),
    Attack("delete the learner's files", """
attempt(lambda: os.unlink(WORK), lambda: os.rename(WORK, WORK + ".old"),
        lambda: __import__("shutil").rmtree(os.path.dirname(WORK)))
""", deleted),
    Attack("write into site-packages", _WRITE + "\nattempt(lambda: write(PACKAGE))\n",
           exists("package")),
    Attack("write into /tmp", _WRITE + """
attempt(lambda: write(TEMPORARY), lambda: os.mkdir(TEMPORARY),
        lambda: os.symlink("/", TEMPORARY), lambda: os.mkfifo(TEMPORARY))
""", exists("temporary")),
    Attack("fill /dev/shm", _WRITE + """
def posix():
    from multiprocessing import shared_memory
    return shared_memory.SharedMemory(os.path.basename(SHARED), create=True, size=1 << 20)
attempt(lambda: write(SHARED, 64 << 20), posix)
""", exists("shared")),
    Attack("write a file of 80 MB", _WRITE + """
attempt(lambda: write(WRITABLE + "/big", BIG), lambda: write("big", BIG))
""", stored),
    Attack("write 40 files", _WRITE + """
attempt(*[lambda path=f"{WRITABLE}/{number}": write(path, 1 << 20) for number in range(FILES)])
""", stored),
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
""", killed),
    Attack("read the judge's memory", """
def read():
    with open(f"/proc/{JUDGE}/mem", "rb", 0) as memory:
        memory.seek(ADDRESS)
        return memory.read(LENGTH)
attempt(read)
""", printed_secret),
    Attack("read the judge's environment", """
attempt(lambda: open(f"/proc/{JUDGE}/environ").read(),
        lambda: open(f"/proc/self/root/proc/{JUDGE}/environ").read())
""", printed_secret),
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
""", printed_secret),
    Attack("trace the judge (ptrace)", _NATIVE + """
SEIZE, ATTACH = 0x4206, 16
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
attempt(lambda: call(libc.ptrace, SEIZE, JUDGE, None, None),
        lambda: call(libc.ptrace, ATTACH, JUDGE, None, None))
""", traced),
    Attack("connect to a port of this machine", """
import socket
attempt(lambda: socket.create_connection(("127.0.0.1", PORT), 1.0).send(b"hello"))
""", connected),
    Attack("start another program", """
def spawn():
    return os.posix_spawn("/bin/sleep", ["sleep", str(NAP)], {})
def popen():
    import subprocess
    return subprocess.Popen(["/bin/sleep", str(NAP)]).pid
def become():
    os.execv("/bin/sleep", ["sleep", str(NAP)])
attempt(spawn, popen, become)
""", executed, patience_s=2.0),
    Attack("fork without end", """
def bomb():
    for number in range(BOMB):
        if os.fork() == 0:
            time.sleep(NAP)
            os._exit(0)
attempt(bomb)
""", bombed),
    Attack("start a thread", """
import threading, _thread
attempt(lambda: threading.Thread(target=time.sleep, args=(NAP,), daemon=True).start(),
        lambda: _thread.start_new_thread(time.sleep, (NAP,)))
""", threaded),
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
""", after=survived),
    Attack("write a verdict to an open descriptor", """
def everywhere():
    for number in range(5, 1024):
        try:
            os.write(number, MARK.encode())
        except OSError:
            pass
attempt(everywhere)
""", verdict),
    Attack("take 1 GiB of memory", """
kept = []
def take():
    for _ in range(MEMORY >> 24):
        kept.append(b"x" * (1 << 24))
attempt(take)
""", held),
    Attack("take 1 GiB of shared memory", """
import mmap
kept = []
def take():
    for _ in range(MEMORY >> 24):
        kept.append(mmap.mmap(-1, 1 << 24))
        kept[-1].write(b"x" * (1 << 24))
attempt(take)
""", held),
    Attack("compute for ever, ignoring signals", _IGNORING + "\nwhile True: pass\n",
           after=outlived,
           limits=ResourceLimits(cpu_s=1), patience_s=4.0),  # RLIMIT_CPU, before the judge
    Attack("sleep for ever, ignoring signals", _IGNORING + "\nwhile True: time.sleep(NAP)\n",
           after=outlived, patience_s=BRIEFLY_S),
    Attack("print for ever", "\nwhile True: print('x' * 1000)\n",
           after=flooded, patience_s=BRIEFLY_S),
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
""", raised),
)
