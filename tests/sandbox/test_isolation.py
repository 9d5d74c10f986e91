"""Isolation: what a filter says to every call, what files are in view, and 26 attacks that fail."""

from __future__ import annotations

import errno
import functools
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from grader import Sandbox
from grader.attacks import attacks
from grader.sandbox import (
    Isolation,
    ResourceLimits,
    confinement,
    landlock,
    readable_paths,
    seccomp,
)
from grader.sandbox.limits import Role
from grader.sandbox.linux import prctl
from grader.sandbox.seccomp import ARCHITECTURES, LAST, NUMBERS, X32
from tests.support.plain import Plain

pytestmark = pytest.mark.course

ROOT = Path(__file__).parents[2]
PID = 4711
ALLOWED, KILLED = seccomp.ALLOW, seccomp.KILL_PROCESS
ABI, FILTERS = landlock.abi(), seccomp.architecture() is not None
AS_ROOT = os.geteuid() == 0
needs_landlock = pytest.mark.skipif(not ABI, reason="this kernel has no landlock")
needs_filters = pytest.mark.skipif(not FILTERS, reason="this kernel takes no filters")
needs_root = pytest.mark.skipif(not AS_ROOT, reason="only root can become another user")


def refused(number: int) -> int:
    return 0x00050000 | number


def verdict(steps, audit: int, number: int, arguments=()) -> int:
    """What a filter returns for a call: the kernel's machine for it, as far as it is used."""
    words = [int(argument) & (1 << 64) - 1 for argument in arguments]
    data = struct.pack("<IIQ6Q", number, audit, 0, *words, *[0] * (6 - len(words)))
    accumulator = position = 0
    while True:
        step = steps[position]
        position += 1
        match step.code:
            case seccomp.LOAD:
                (accumulator,) = struct.unpack_from("<I", data, step.value)
            case seccomp.RETURN:
                return step.value
            case seccomp.JUMP_ALWAYS:
                position += step.value
            case seccomp.JUMP_EQUAL:
                position += step.if_true if accumulator == step.value else step.if_false
            case seccomp.JUMP_AT_LEAST:
                position += step.if_true if accumulator >= step.value else step.if_false
            case seccomp.JUMP_ANY_BIT:
                position += step.if_true if accumulator & step.value else step.if_false
            case other:
                raise AssertionError(f"an instruction that is never made: {other:#x}")


@pytest.fixture(params=ARCHITECTURES.values(), ids=lambda a: a.name)
def machine(request: pytest.FixtureRequest):
    """Asks a filter of one architecture about a call by its name or number."""
    here = request.param

    def ask(call: str | int, *arguments: int, role: Role = "worker", read_only: bool = False,
            audit: int = here.audit) -> int | None:
        number = NUMBERS[call][here.column] if isinstance(call, str) else call
        if number is None:
            return None
        steps = seccomp.assemble(here, seccomp.rules(PID, role=role, read_only=read_only))
        return verdict(steps, audit, number, arguments)

    ask.here = here
    return ask


# ---------------------------------------------------------------------------------------------
# The filter, on both architectures

CONDITIONAL = {"clone", "clone3", "kill", "tkill", "tgkill", "prlimit64", "prctl", "fcntl", "ioctl",
               "open", "openat", "openat2"}
OF_A_COMPILER = {"execve", "fork", "vfork", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat",
                 "rename", "renameat", "renameat2", "chmod", "fchmod", "fchmodat"}
ALWAYS_NEEDED = {  # (x86-64, aarch64) of some calls that Python, torch and the channel live on
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "mmap": (9, 222), "mprotect": (10, 226),
    "munmap": (11, 215), "brk": (12, 214), "rt_sigaction": (13, 134), "sendto": (44, 206),
    "recvfrom": (45, 207), "recvmsg": (47, 212), "exit_group": (231, 94), "futex": (202, 98),
    "getpid": (39, 172), "lseek": (8, 62), "fstat": (5, 80), "getrandom": (318, 278),
    "pread64": (17, 67), "pwrite64": (18, 68), "ftruncate": (77, 46), "sched_yield": (24, 124),
    "clock_nanosleep": (230, 115), "madvise": (28, 233), "statx": (332, 291), "rseq": (334, 293),
}


@pytest.mark.parametrize("call", sorted(set(NUMBERS) - CONDITIONAL))
def test_a_named_call_is_refused_whatever_its_arguments(machine, call: str) -> None:
    for role in ("worker", "executor"):
        assert machine(call, 1, 2, 3, role=role) in (refused(errno.EPERM), None)
        assert machine(call, role=role) in (refused(errno.EPERM), None)


@pytest.mark.parametrize("call", sorted(set(NUMBERS) - CONDITIONAL))
def test_a_compiler_may_start_programs_and_keep_files_and_no_more(machine, call: str) -> None:
    answer = ALLOWED if call in OF_A_COMPILER else refused(errno.EPERM)

    assert machine(call, 1, 2, 3, role="compiler") in (answer, None)


def test_before_a_gpu_there_are_sockets_within_the_machine_and_no_way_to_another(machine) -> None:
    ask = functools.partial(machine, role="gpu")

    assert ask("socket", socket.AF_UNIX) == ask("bind") == ask("listen") == ALLOWED
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
        assert ask("socket", family) == refused(errno.EPERM)
    for call in ("connect", "accept", "accept4", "ptrace", "mount", "setuid", "execveat"):
        assert ask(call, 1, 2, 3) in (refused(errno.EPERM), None)


@pytest.mark.parametrize("call", sorted(set(NUMBERS) - CONDITIONAL - {
    "kill", "tkill", "tgkill", "socket"}))
def test_the_process_before_a_gpu_may_do_so_too_and_what_its_driver_needs(machine, call) -> None:
    allowed = call in OF_A_COMPILER or call in seccomp._OF_A_GPU

    assert machine(call, 1, 2, 3, role="gpu") in (
        ALLOWED if allowed else refused(errno.EPERM), None)
    for other in ("ptrace", "connect", "process_vm_readv", "bpf", "mount", "unshare"):
        assert machine(other, 1, 2, 3, role="gpu") == refused(errno.EPERM)


def test_what_python_lives_on_is_allowed(machine) -> None:
    for numbers in ALWAYS_NEEDED.values():
        number = numbers[machine.here.column]
        assert machine(number, 1, 2, 3, read_only=True) == ALLOWED


def test_every_call_that_is_not_named_is_allowed_up_to_the_last_known(machine) -> None:
    named = {numbers[machine.here.column] for numbers in NUMBERS.values()}

    for number in set(range(LAST + 1)) - named:
        assert machine(number) == ALLOWED
    for number in (LAST + 1, 500, 1000, X32 - 1):
        assert machine(number) == refused(errno.ENOSYS)


def test_another_numbering_ends_the_process(machine) -> None:
    for audit in (0x40000003, 0x40000028, 0xC00000F3, 0):  # i386, 32-bit ARM, RISC-V, none
        assert machine(39, audit=audit) == KILLED
    for other in ARCHITECTURES.values():
        if other is not machine.here:
            assert machine(39, audit=other.audit) == KILLED
    for number in (X32, X32 | 59, X32 | 1, 0xFFFFFFFF):
        assert machine(number) == KILLED


@pytest.mark.parametrize(
    ("call", "arguments", "options", "answer"),
    [
        ("kill", (PID, 9), {}, ALLOWED),
        ("kill", (PID + 1, 9), {}, refused(errno.EPERM)),
        ("kill", (0, 9), {}, refused(errno.EPERM)),
        ("kill", (-1, 9), {}, refused(errno.EPERM)),
        ("kill", (-PID, 9), {}, refused(errno.EPERM)),
        ("tgkill", (PID, PID, 6), {}, ALLOWED),
        ("tgkill", (PID + 1, PID, 6), {}, refused(errno.EPERM)),
        ("tkill", (PID + 1, 6), {}, refused(errno.EPERM)),
        ("clone", (0x3D0F00,), {}, refused(errno.EPERM)),  # a thread, as the C library asks for it
        ("clone", (0x3D0F00,), {"role": "executor"}, ALLOWED),
        ("clone", (0x1200011,), {"role": "executor"}, refused(errno.EPERM)),  # a process
        ("clone", (0x10000000,), {"role": "executor"}, refused(errno.EPERM)),  # a user namespace
        ("clone", (0x1200011,), {"role": "compiler"}, ALLOWED),
        ("clone", (0x4111,), {"role": "compiler"}, ALLOWED),  # as vfork
        ("clone", (0x10000011,), {"role": "compiler"}, refused(errno.EPERM)),
        ("openat", (-100, 0, os.O_WRONLY), {"role": "compiler", "read_only": True}, ALLOWED),
        ("clone", (0x3D0F00,), {"role": "gpu"}, ALLOWED),
        ("clone", (0x1200011,), {"role": "gpu"}, ALLOWED),
        ("clone", (0x10000011,), {"role": "gpu"}, refused(errno.EPERM)),
        ("kill", (PID + 1, 9), {"role": "gpu"}, refused(errno.EPERM)),
        ("prctl", (4,), {"role": "gpu"}, refused(errno.EPERM)),
        ("clone3", (), {"role": "executor"}, refused(errno.ENOSYS)),
        ("prlimit64", (0, 7, 0, 1 << 40), {}, ALLOWED),
        ("prlimit64", (0, 7, 1 << 40, 0), {}, refused(errno.EPERM)),  # only its upper half is set
        ("prlimit64", (0, 7, 4096, 0), {}, refused(errno.EPERM)),
        ("prctl", (15,), {}, ALLOWED),  # a thread's name
        ("prctl", (0x53564D41,), {}, ALLOWED),  # the name of a piece of memory
        ("prctl", (1,), {}, refused(errno.EPERM)),  # the signal at the parent's death
        ("prctl", (4,), {}, refused(errno.EPERM)),
        ("prctl", (36,), {}, refused(errno.EPERM)),
        ("fcntl", (3, 4), {}, ALLOWED),
        ("fcntl", (3, 8), {}, refused(errno.EPERM)),
        ("fcntl", (3, 10), {}, refused(errno.EPERM)),
        ("fcntl", (3, 15), {}, refused(errno.EPERM)),
        ("ioctl", (0, 0x5401), {}, ALLOWED),
        ("ioctl", (0, 0x5412), {}, refused(errno.EPERM)),
        ("openat", (-100, 0, os.O_RDONLY | os.O_CLOEXEC), {"read_only": True}, ALLOWED),
        ("openat", (-100, 0, os.O_WRONLY), {}, ALLOWED),
        ("openat", (-100, 0, os.O_WRONLY), {"read_only": True}, refused(errno.EPERM)),
        ("openat", (-100, 0, os.O_RDWR), {"read_only": True}, refused(errno.EPERM)),
        ("openat", (-100, 0, os.O_CREAT), {"read_only": True}, refused(errno.EPERM)),
        ("openat2", (-100, 0, 4096), {}, refused(errno.ENOSYS)),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_some_calls_depend_on_their_arguments(machine, call, arguments, options, answer) -> None:
    assert machine(call, *arguments, **options) == answer


def test_open_is_looked_at_where_it_exists(machine) -> None:
    expected = {"x86_64": refused(errno.EPERM), "aarch64": None}

    assert machine("open", 0, os.O_RDWR, read_only=True) == expected[machine.here.name]
    assert machine("open", 0, os.O_RDONLY, read_only=True) in (ALLOWED, None)


def test_the_packed_filter_is_the_assembled_one_and_holds_no_process_yet(machine) -> None:
    for role in get_args(Role):
        packed = seccomp.template(machine.here, role, read_only=False)
        steps = [seccomp.FilterStep(code, value, yes, no)
                 for code, yes, no, value in struct.iter_unpack("=HBBI", packed)]

        assert steps == seccomp.assemble(
            machine.here, seccomp.rules(seccomp.ITSELF, role=role, read_only=False))
        assert len(steps) < 4096  # BPF_MAXINSNS
        assert packed.count(struct.pack("=I", seccomp.ITSELF)) in (1, 3)  # kill, tkill, tgkill


def test_a_jump_too_far_for_its_byte_is_a_mistake(machine, monkeypatch) -> None:
    monkeypatch.setattr(seccomp, "assemble", lambda *_: [
        seccomp.FilterStep(seccomp.JUMP_EQUAL, 1, 256, 0)])

    with pytest.raises(struct.error):
        seccomp.template.__wrapped__(machine.here, "worker", read_only=False)


@pytest.mark.parametrize(
    ("column", "header", "words"),
    [(0, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", ("__NR_",)),
     (1, "/usr/include/asm-generic/unistd.h", ("__NR_", "__NR3264_"))],
    ids=["x86_64", "aarch64"])
def test_the_numbers_are_those_of_the_kernels_headers(column, header, words) -> None:
    if not Path(header).is_file():
        pytest.skip(f"{header} is not installed")
    text = Path(header).read_text()
    known = {name: int(number) for word in words
             for name, number in re.findall(rf"#define {word}(\w+)\s+(\d+)\b", text)}

    ours = {name: numbers[column] for name, numbers in NUMBERS.items() if name in known}

    assert len(ours) > 100
    assert ours == {name: known[name] for name in ours}


# ---------------------------------------------------------------------------------------------
# Landlock, and what is in view


@pytest.mark.parametrize(
    ("version", "files", "tcp", "scoped"),
    [(1, 0x1FFF, None, None), (2, 0x3FFF, None, None), (3, 0x7FFF, None, None),
     (4, 0x7FFF, 3, None), (5, 0xFFFF, 3, None), (6, 0xFFFF, 3, 3), (7, 0xFFFF, 3, 3)])
def test_a_kernel_is_asked_only_for_what_its_abi_knows(version, files, tcp, scoped) -> None:
    made = landlock.attributes(version)
    words = struct.unpack(f"={len(made) // 8}Q", made)

    assert words == tuple(word for word in (files, tcp, scoped) if word is not None)


def test_nothing_hidden_lies_in_what_is_readable() -> None:
    given = readable_paths.readable()

    assert {ROOT / "grader" / "suites", ROOT / "tritonlab"} <= set(readable_paths.hidden())
    for hidden in readable_paths.hidden():
        assert not [path for path in given
                    if hidden.is_relative_to(path) or path.is_relative_to(hidden)]
    for name in ("tests", "solutions", "tracks"):
        assert not [path for path in given if (ROOT / name).is_relative_to(path)]


def test_of_an_installed_package_all_is_given_but_the_hidden_parts(tmp_path: Path) -> None:
    for name in ("torch/nn", "grader/worker", "grader/suites/t/01", "tritonlab/solutions/t",
                 "cs149_course/solutions/t"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file.py").touch()
    (tmp_path / "cs149_course" / "course.toml").touch()
    (tmp_path / "link").symlink_to(tmp_path / "tritonlab")
    hidden = readable_paths.hidden_in(tmp_path)

    given = {str(path.relative_to(tmp_path)) for path in readable_paths.without(tmp_path, hidden)}

    assert given == {"torch", "grader/worker"}
    assert {path.name for path in hidden} == {"suites", "tritonlab", "cs149_course"}


# ---------------------------------------------------------------------------------------------
# Tiers


@pytest.mark.parametrize(
    ("isolation", "tier", "words"),
    [
        (Isolation(7, True), 2, "tier 2: landlock ABI 7, seccomp, unprivileged user"),
        (Isolation(1, True, True), 1, "tier 1: landlock ABI 1, seccomp, as root"),
        (Isolation(0, True), 1, "tier 1: seccomp, unprivileged user; without landlock"),
        (Isolation(5, False), 1, "tier 1: landlock ABI 5, unprivileged user; without seccomp"),
        (Isolation(), 0, "tier 0: separate processes with limits only"),
        (Isolation(privileged=True), 0, "tier 0: separate processes with limits only, as root"),
    ])
def test_a_tier_is_named_in_words(isolation: Isolation, tier: int, words: str) -> None:
    assert (isolation.tier, isolation.describe()) == (tier, words)
    assert Isolation.from_dict(json.loads(json.dumps(isolation.to_dict()))) == isolation


WITHOUT = {  # measures left out: the tier, and attacks that then succeed
    ("landlock",): (1, {"read a hidden test", "list the hidden tests"}),
    ("seccomp",): (1, {"start a thread"}),
    ("landlock", "seccomp"): (0, {
        "read a hidden test", "forge the certificate", "delete the learner's files",
        "write into /tmp", "start a thread", "connect to a port of this machine"}),
}
STOPPED_WITHOUT = {
    ("landlock",): {"forge the certificate", "write into /tmp", "fork without end",
                    "kill the judge", "connect to a port of this machine"},
    ("seccomp",): {"read a hidden test", "forge the certificate", "read the judge's memory",
                   "start another program"},
    ("landlock", "seccomp"): {"leave a process behind", "take 1 GiB of memory",
                              "write a verdict to an open descriptor"},
}


@needs_landlock
@needs_filters
@pytest.mark.parametrize("without", WITHOUT, ids=" and ".join)
def test_a_machine_that_lacks_a_measure_is_a_lower_tier_and_it_shows(without) -> None:
    tier, open_to = WITHOUT[without]
    chosen = [one for one in attacks.ATTACKS if one.name in open_to | STOPPED_WITHOUT[without]]

    with attacks.scene() as target, Sandbox(without) as box:
        isolation = box.isolation
        confined = attacks.confined(box)
        results = [attacks.run(one, target, confined) for one in chosen]

    assert isolation.tier == tier
    assert {what for what, _ in isolation.missing} >= set(without)
    assert all(remedy for _, remedy in isolation.missing)
    assert {result.name for result in results if result.succeeded} == open_to


@needs_root
def test_a_root_that_stays_root_is_said() -> None:
    with Sandbox(without=("user",)) as box:
        assert box.isolation.privileged
        assert box.isolation.tier < 2
        assert "as root" in box.isolation.describe()


# ---------------------------------------------------------------------------------------------
# The attacks


@pytest.fixture(scope="module")
def target() -> Iterator[attacks.Scene]:
    with attacks.scene() as made:
        yield made


@pytest.fixture
def confined(sandbox: Sandbox) -> Sandbox:
    if sandbox.isolation.tier < 2:
        pytest.skip(f"this machine does not confine: {sandbox.isolation.describe()}")
    return sandbox


def test_there_are_26_attacks() -> None:
    assert len({one.name for one in attacks.ATTACKS}) == len(attacks.ATTACKS) == 26


@pytest.mark.parametrize("attack", attacks.ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_is_stopped_in_the_sandbox(attack, target, confined) -> None:
    judge = target.judge.pid

    result = attacks.run(attack, target, attacks.confined(confined))

    assert not result.succeeded, result.how
    for path in (target.hidden, target.certificate, target.work):
        assert path.read_text() == f"# {target.secret}\n"
    assert target.judge.pid == judge


@pytest.mark.parametrize("attack", attacks.ATTACKS, ids=lambda attack: attack.name)
def test_the_same_attack_succeeds_without_it(attack, target, tmp_path: Path) -> None:
    if "site-packages" in attack.name and not os.access(sysconfig.get_path("purelib"), os.W_OK):
        pytest.skip("this user may not write there anyway")
    plain = Plain(tmp_path, target.verdict_end)
    try:
        result = attacks.run(attack, target, plain.run)
    finally:
        plain.clean_up()
        for path in (target.package, target.temporary, target.shared):
            path.unlink(missing_ok=True)
        for path in (target.hidden, target.certificate, target.work):
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"# {target.secret}\n")
            path.chmod(0o666)

    assert result.succeeded, result.how


AS_USER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def done(result):
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
if os.geteuid() == 0:
    # An ordinary user, but one who may read what this interpreter needs, wherever it lies.
    done(libc.prctl(8, 1, 0, 0, 0))
    os.setgroups([])
    os.setresgid(1234, 1234, 1234)
    os.setresuid(1234, 1234, 1234)
    number = {"x86_64": 126, "aarch64": 91}[os.uname().machine]
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)(4, 4, 4, 0, 0, 0)
    done(libc.syscall(number, header, sets))
    done(libc.prctl(47, 2, 2, 0, 0))
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
ALL_ATTACKS = """
import json, os
from grader import Sandbox
from grader.attacks import attacks
with attacks.scene() as target, Sandbox() as box:
    confined = attacks.confined(box)
    found = [attacks.run(one, target, confined) for one in attacks.ATTACKS]
    print(json.dumps({"user": os.geteuid(), "isolation": box.isolation.to_dict(),
                      "zygote": os.stat(f"/proc/{box.pid}/environ").st_uid,
                      "succeeded": {one.name: one.how for one in found if one.succeeded},
                      "count": len(found)}))
"""


@needs_landlock
@needs_filters
def test_every_attack_of_an_ordinary_user_is_stopped() -> None:
    environment = {"LANG": "C.UTF-8", "PATH": os.defpath, "PYTHONPATH": str(ROOT),
                   "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", AS_USER, ALL_ATTACKS]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)

    assert found["user"] != 0
    assert found["count"] == 26
    assert found["succeeded"] == {}
    assert Isolation.from_dict(found["isolation"]).tier == 2
    assert found["zygote"] != found["user"]  # its memory is closed to its own user


# ---------------------------------------------------------------------------------------------
# What still works


HONEST = """
    import inspect, os, random, signal, sqlite3, time, faulthandler
    import numpy, torch, triton
    import triton.language as tl
    import torch.nn.functional as F

    @triton.jit
    def kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
        pass

    assert torch.allclose(torch.eye(300) @ torch.ones(300, 300), torch.ones(300, 300))
    assert F.softmax(torch.randn(64, 64), -1).sum().item() > 0
    assert numpy.linalg.svd(numpy.eye(8))[1].sum() == 8
    assert "BLOCK_SIZE" in inspect.getsource(kernel.fn)
    assert "def softmax" in inspect.getsource(F.softmax)
    assert random.SystemRandom().random() < 1
    open(os.devnull, "w").write("nothing")
    signal.raise_signal(signal.SIGUSR1)
    os.kill(os.getpid(), 0)
    import resource
    resource.getrlimit(resource.RLIMIT_AS)
    time.sleep(0.01)
    torch.set_num_threads(1)
    import calendar, decimal, wave  # from files, now
    def entry(): ...
"""


def test_honest_code_notices_nothing(confined: Sandbox, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(textwrap.dedent(HONEST))

    with confined.fork("worker") as child:
        reply = child.ask({"op": "load", "path": str(path)}, timeout_s=20)

    assert reply == {"status": "ready"}


def test_a_submission_sees_its_own_file_and_no_other(confined: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("secret = 1")
    path = tmp_path / "kernel.py"
    path.write_text("import os\nassert 'assert' in open(__file__).read()\n"
                    "open(os.path.join(os.path.dirname(__file__), 'neighbour.py'))\n")

    with confined.fork("worker") as child:
        reply = child.ask({"op": "load", "path": str(path)})

    assert (reply["types"][0], reply["line"]) == ("PermissionError", 3)


def test_the_executor_may_start_threads_and_no_process(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import os, sys, threading
        from pathlib import Path
        from grader.sandbox.confinement import confine
        from grader.sandbox.limits import ResourceLimits
        confine(sys.argv[1], ResourceLimits(), Path(os.devnull), Path.cwd(), os.getppid())
        for start in (threading.Thread(target=int).start, os.fork):
            try:
                start()
                print("started")
            except (RuntimeError, PermissionError):
                print("refused")
        sys.stdout.flush()
        os._exit(0)
    """)
    if not FILTERS:
        pytest.skip("this kernel takes no filters")

    def said(role: str) -> list[str]:
        ran = subprocess.run([sys.executable, "-c", script, role], capture_output=True, text=True,
                             env={"PYTHONPATH": str(ROOT)}, check=True)
        return ran.stdout.split()

    assert said("worker") == ["refused", "refused"]
    assert said("executor") == ["started", "refused"]


def test_a_compiler_runs_the_assembler_writes_at_home_and_does_nothing_else(target) -> None:
    """What runs there is the grader's own code and Triton's, on kernels that passed its checks."""
    script = textwrap.dedent("""
        import os, socket, subprocess, sys
        from pathlib import Path
        import triton
        from grader.sandbox.confinement import confine
        from grader.sandbox.limits import ResourceLimits
        home, secret, certificate = map(Path, sys.argv[1:])
        os.chdir(home)
        tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
        print(confine("compiler", ResourceLimits(), Path(os.devnull), home, os.getppid()).tier)
        def run(*command):
            return subprocess.run(command, check=True, capture_output=True)
        def replaced():
            (home / "a").write_text("a")
            (home / "a").replace(home / "b")
            (home / "b").unlink()
        for attempt in (
            lambda: run(tools / "ptxas", "--version"), replaced,
            lambda: run("/bin/true"), lambda: run(sys.executable, "-c", ""),
            lambda: secret.read_text(), lambda: certificate.write_text(""),
            lambda: (home.parent / "c").write_text(""), lambda: os.kill(os.getppid(), 0),
            socket.socket,
        ):
            try:
                attempt()
                print("done")
            except PermissionError:
                print("refused")
    """)
    home = Path(tempfile.mkdtemp(dir=target.work.parent))
    if not FILTERS or landlock.abi() == 0:
        pytest.skip("this kernel does not confine")

    ran = subprocess.run([sys.executable, "-c", script, home, target.hidden, target.certificate],
                         capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}, check=True)

    assert ran.stdout.split() == ["2", "done", "done", *["refused"] * 7]


def test_the_process_before_a_gpu_compiles_a_launcher_and_does_little_else(target) -> None:
    """It runs a C compiler, as Triton does, starts threads, and names them."""
    script = textwrap.dedent("""
        import os, socket, subprocess, sys, sysconfig, threading
        from pathlib import Path
        import torch, triton
        from grader.sandbox.confinement import confine
        from grader.sandbox.limits import OF_A_GPU
        home, secret, certificate = map(Path, sys.argv[1:])
        os.chdir(home)
        os.environ["TMPDIR"] = str(home)
        (home / "a.c").write_text("#include <stdio.h>\\nint f(void) { return 7; }\\n")
        print(confine("gpu", OF_A_GPU, Path(os.devnull), home, os.getppid()).tier)
        for attempt in (
            lambda: subprocess.run(["gcc", "-shared", "-fPIC", "-o", "a.so", "a.c"], check=True),
            lambda: __import__("ctypes").CDLL(str(home / "a.so")).f(),
            lambda: threading.Thread(target=int).start(),
            lambda: Path(f"/proc/self/task/{os.getpid()}/comm").write_text("named"),
            lambda: secret.read_text(), lambda: certificate.write_text(""),
            lambda: (home.parent / "c").write_text(""), lambda: os.kill(os.getppid(), 0),
            socket.socket,
        ):
            try:
                attempt()
                print("done")
            except PermissionError:
                print("refused")
    """)
    home = Path(tempfile.mkdtemp(dir=target.work.parent))
    if not FILTERS or landlock.abi() == 0:
        pytest.skip("this kernel does not confine")
    if shutil.which("gcc") is None:
        pytest.skip("there is no C compiler")

    ran = subprocess.run([sys.executable, "-c", script, home, target.hidden, target.certificate],
                         capture_output=True, text=True, check=True,
                         env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]})

    assert ran.stdout.split() == ["2", *["done"] * 4, *["refused"] * 5]


def test_the_judge_keeps_its_memory_to_itself() -> None:
    with Sandbox():
        assert prctl(3) == 0  # PR_GET_DUMPABLE


def test_a_child_that_is_not_confined_as_promised_runs_nothing(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import json, os, socket, sys
        from pathlib import Path
        from grader.processes.sandbox import HANDLERS
        from grader.sandbox import Isolation, ResourceLimits, protocol
        from grader.sandbox.child_main import run
        ours, theirs = socket.socketpair()
        output, blame = os.memfd_create("a"), os.memfd_create("b")
        orders, birth = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        zygote = os.getpid()
        if os.fork() == 0:
            run(birth, Path(sys.argv[1]), zygote, (), Isolation(99, True), HANDLERS)
        given = {"role": "worker", "limits": ResourceLimits().to_dict(), "name": "child"}
        socket.send_fds(orders, [json.dumps(given).encode()], [theirs.fileno(), output, blame])
        ours.sendall(protocol.encode({"op": "load", "path": sys.argv[2]}))
        theirs.close()
        print(ours.recv(9000)[4:].decode())
    """)
    (tmp_path / "kernel.py").write_text("raise SystemExit('the learner ran')")
    command = [sys.executable, "-c", script, str(tmp_path), str(tmp_path / "kernel.py")]

    ran = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)})

    assert json.loads(ran.stdout)["status"] == "broken"
    assert "landlock ABI 99" in json.loads(ran.stdout)["traceback"]
    assert "the learner ran" not in ran.stdout


def test_limits_count_in_the_units_that_they_say() -> None:
    assert ResourceLimits.from_dict(ResourceLimits(cpu_s=7).to_dict()).cpu_s == 7


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives its files to another user")
def test_another_user_may_pass_to_a_folder_of_its_own_with_a_submission_and_without(tmp_path):
    folder = tmp_path / "sandbox"
    folder.mkdir(mode=0o700)
    kernel = folder / "submission" / "kernel.py"

    confinement.admit(kernel, folder)  # there is none

    assert folder.stat().st_mode & 0o777 == 0o711
    kernel.parent.mkdir(mode=0o700)
    kernel.write_text("x = 1")
    kernel.chmod(0o600)
    confinement.admit(kernel, folder)
    assert [path.stat().st_mode & 0o777 for path in (kernel, kernel.parent)] == [0o644, 0o711]
