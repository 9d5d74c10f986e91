"""The process side: answers come through, hostile children do not, and nothing stays behind."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from grader import Sandbox
from grader.gpu import detect
from grader.recording.arena import pack
from grader.sandbox import (
    Child,
    ChildError,
    Isolation,
    ResourceLimits,
    SandboxBroken,
    child_client,
    processes,
    protocol,
)
from grader.sandbox.child_client import Output, line_in
from grader.sandbox.errors import ChildDied, ChildOutOfMemory, ChildTimedOut, MalformedReply
from grader.sandbox.zygote import PAUSE_S, SPARES
from grader.worker import graphs
from tests.support.waiting import wait_until

pytestmark = pytest.mark.course

MIB = 1 << 20
ALL_MEASURES = ("user", "landlock", "seccomp")


@pytest.fixture(scope="module")
def open_sandbox() -> Iterator[Sandbox]:
    """One on a machine where nothing keeps a child from starting processes and writing files."""
    with Sandbox(without=ALL_MEASURES) as made:
        yield made


@pytest.fixture
def load(sandbox: Sandbox, tmp_path: Path) -> Iterator[Callable[..., tuple[Child, dict]]]:
    """Fork a worker and let it load a file; what happens then happens while it is imported."""
    children: list[Child] = []

    def run(source: str, timeout_s: float = 20.0, within: Sandbox = sandbox,
            **limits: int) -> tuple[Child, dict]:
        path = tmp_path / "kernel.py"
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        child = within.fork("worker", ResourceLimits(**limits))
        children.append(child)
        request = {"op": "load", "path": str(path)}
        return child, child.ask(request, timeout_s=timeout_s)

    yield run
    for child in children:
        child.kill()


def processes_with(word: str) -> list[int]:
    """Other processes whose working directory or command line holds ``word``."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                where = str((entry / "cwd").readlink())
                where += (entry / "cmdline").read_text(errors="replace")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if word in where and state != "Z":
                found.append(int(entry.name))
    return found


def below(pid: int) -> list[int]:
    """All processes with ``pid`` among their ancestors, zombies included."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    found = [pid]
    for member in found:
        found += [child for child, parent in parents.items() if parent == member]
    return found[1:]


def spares(box: Sandbox, without: int = 0) -> set[int]:
    """All children that a sandbox forks ahead, once they are there and ``without`` is gone."""
    def ready() -> set[int]:
        found = set(box.spares)
        return found if len(found) == SPARES and without not in found else set()

    return wait_until(ready, every_s=0.5)  # each question keeps the zygote from its leisure


def left_in(sandbox: Sandbox) -> list[int]:
    """All processes of a sandbox but the zygote and the children that it keeps ready."""
    there = below(sandbox.pid)
    return sorted(set(there) - set(sandbox.spares))


# ---------------------------------------------------------------------------------------------
# What comes through


def test_a_child_answers_and_what_it_printed_is_kept(load) -> None:
    child, reply = load("print('from the learner')\ndef entry(): ...")

    assert reply == {"status": "ready"}
    child.kill()
    assert child.output() == "from the learner\n"


def test_packages_are_found_though_something_was_installed_since(load) -> None:
    with Sandbox() as within:
        spares(within)  # until then it imports in its leisure, and lists that folder itself
        os.utime(Path(torch.__file__).parents[1])  # as an installation leaves it

        _, reply = load("import mpmath\ndef entry(): ...", within=within)

    assert reply == {"status": "ready"}


CALL = {"op": "call", "entry": "entry", "arguments": [], "layout": []}


@pytest.mark.parametrize(("runnable", "most_s", "ends"), [
    (True, 2.0, False), (False, 2.0, True), (True, 9.0, True),
], ids=["it waits for a processor", "it sleeps", "for ever"])
def test_a_child_is_granted_the_time_in_which_no_processor_was_free(
        load, monkeypatch, runnable, most_s, ends) -> None:
    child, _ = load(f"import time\ndef entry(): time.sleep({600 if ends else 1})")
    begun, ticks = time.monotonic(), itertools.count(step=0.02)
    monkeypatch.setattr(child_client, "time", SimpleNamespace(  # it stands still in the end
        monotonic=lambda: begun + min(next(ticks), most_s)))
    monkeypatch.setattr(processes, "work", lambda pid: (0.0, runnable))

    if ends:
        with pytest.raises(ChildTimedOut):
            child.ask(CALL, timeout_s=1.0)
    else:
        assert child.ask(CALL, timeout_s=1.0)["type"] == "NoneType"


def test_a_pause_of_the_whole_machine_is_no_time_of_the_child(load, monkeypatch) -> None:
    child, _ = load("import time\ndef entry(): time.sleep(1)")
    poll, begun, pauses = child._wait, time.monotonic(), [0.0]

    def paused(seconds: float, sending: bool) -> int:
        pauses[0] += 30.0 if pauses == [0.0] else 0.0  # a virtual machine may stand still so long
        return poll(seconds, sending)

    monkeypatch.setattr(child, "_wait", paused)
    monkeypatch.setattr(child_client, "time", SimpleNamespace(
        monotonic=lambda: begun + pauses[0]))

    assert child.ask(CALL, timeout_s=10.0)["type"] == "NoneType"


def test_the_work_of_a_process_is_what_it_and_its_children_took() -> None:
    before, _ = processes.work(os.getpid())
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    child = subprocess.Popen(["sleep", "600"])
    wait_until(lambda: not processes.work(child.pid)[1])

    after, runnable = processes.work(os.getpid())
    idle_s, _ = processes.work(child.pid)
    child.kill()
    child.wait()

    assert (after - before >= 0.05, runnable) == (True, True)
    assert idle_s < 0.05
    assert processes.work(child.pid) == (0.0, False)


def test_what_later_grades_need_is_warmed_once_the_first_has_ended() -> None:
    with Sandbox() as box:
        with box.fork("worker"):
            before, _ = processes.work(box.pid)
            time.sleep(3 * PAUSE_S)
            during, _ = processes.work(box.pid)
        wait_until(lambda: processes.work(box.pid)[0] > during + 0.05)

    assert during - before < 0.05


def test_a_request_goes_on_while_the_judge_does_something_else(load, monkeypatch) -> None:
    child, _ = load("import time\ndef entry(): ...\ndef hangs(): time.sleep(600)")
    now_s = 0.0

    with monkeypatch.context() as patch:
        patch.setattr(child_client, "time", SimpleNamespace(monotonic=lambda: now_s))
        first, second = child.begin(CALL, timeout_s=0.6), child.begin(CALL, timeout_s=0.6)
        now_s = 9.0  # the answers are read late
        assert second()["type"] == "NoneType"
        assert first()["type"] == "NoneType"

    with pytest.raises(ChildTimedOut):
        child.begin({**CALL, "entry": "hangs"}, timeout_s=0.1)()
    with pytest.raises(ChildDied, match="before"):
        child.begin(CALL)


def test_requests_queue_up_though_the_time_of_the_first_passed_meanwhile(load, monkeypatch) -> None:
    child, _ = load("import time\ndef entry(text): time.sleep(0.1)")
    call = {**CALL, "arguments": [{"value": "x" * 150_000}]}
    now_s, answers = 0.0, []

    monkeypatch.setattr(child_client, "time", SimpleNamespace(monotonic=lambda: now_s))
    for _ in range(4):  # together more than the channel holds
        answers.append(child.begin(call, timeout_s=1.0))
        now_s += 9.0

    assert [answer()["status"] for answer in answers] == ["value"] * 4


def test_requests_that_the_channel_does_not_hold_keep_nobody_waiting(load, tmp_path) -> None:
    go = tmp_path / "go"
    child, _ = load("import os, time\ndef entry(text):\n"
                    f"    while not os.path.exists({str(go)!r}): time.sleep(0.01)")
    call = {**CALL, "arguments": [{"value": "x" * 150_000}]}

    answers = [child.begin(call, timeout_s=60.0) for _ in range(4)]  # the first still waits
    go.touch()

    assert [answer()["status"] for answer in answers] == ["value"] * 4


def test_requests_queue_up_and_keep_their_descriptors(load) -> None:
    child, _ = load("import os, time\ntime.sleep(0.3)\n"
                    "def entry(text, number): time.sleep(0.1); print(number, len(text))")
    long = {"value": "x" * 150_000}

    answers = []
    for number in range(4):  # together more than the channel holds
        with pack([torch.zeros(1)]) as arena:
            arguments = [long, {"value": {"int": str(number)}}]
            call = {**CALL, "arguments": arguments, "layout": arena.layout()}
            answers.append(child.begin(call, [arena.fd]))

    assert [answer()["status"] for answer in answers] == ["value"] * 4
    assert child.output().split() == [word for n in range(4) for word in (str(n), "150000")]


DRIBBLE = """
import os, time
def entry():
    os.write(3, b"\\0\\0\\xff\\xff")
    while True:
        os.write(3, b" ")
        time.sleep(0.1)
"""


def test_a_reply_that_comes_byte_by_byte_has_to_be_whole_in_time(load) -> None:
    child, _ = load(DRIBBLE)

    with pytest.raises(ChildTimedOut):  # it would take hours
        child.ask(CALL, timeout_s=1.0)


def test_children_are_forked_ahead_and_a_lost_one_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text("def entry(): ...")
    with Sandbox() as box:
        first = spares(box)
        os.kill(min(first), signal.SIGKILL)
        second = spares(box, without=min(first))

        with box.fork("worker") as child:
            reply = child.ask({"op": "load", "path": str(path)})

        assert child.pid in second
        assert reply == {"status": "ready"}
    assert not [pid for pid in first | second if Path(f"/proc/{pid}").exists()]


def test_no_child_is_forked_ahead_while_another_one_works(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("def entry(): ...")
    with Sandbox() as box:
        spares(box)
        with box.fork("worker") as child:
            child.ask({"op": "load", "path": str(tmp_path / "kernel.py")})
            time.sleep(1.0)  # nothing happens; on a busy machine, it would be noticed less surely
            meanwhile = len(box.spares)

        assert (meanwhile, len(spares(box))) == (SPARES - 1, SPARES)


def test_who_expects_tests_gets_workers_that_have_imported_what_they_need(tmp_path: Path) -> None:
    """Others are spared it: of all modules, few have the learner's own tests run."""
    (tmp_path / "kernel.py").write_text("def entry(): ...\n")
    drivers = "import sys\n\ndef loaded(module):\n    return '_pytest.python' in sys.modules\n"

    def loaded(box: Sandbox) -> object:
        with box.fork("worker") as child:
            child.ask({"op": "load", "path": str(tmp_path / "kernel.py")})
            return child.ask({"op": "ask", "of": "loaded", "drivers": drivers, "arguments": [],
                              "layout": []})["answer"]

    with Sandbox() as box:
        before = loaded(box)
        box.expect("tests")
        box.expect("tests")

        assert (before, loaded(box)) == (False, True)


def test_who_expects_graphs_gets_workers_that_can_make_them(tmp_path: Path) -> None:
    """Torch's compiler wants files while it is imported, and workers may make none."""
    (tmp_path / "kernel.py").write_text("def entry(): ...\n")
    drivers = """\
import sys

import torch

def loaded(module):
    return "torch._dynamo" in sys.modules

def made(module):
    graphs = []
    compiled = torch.compile(lambda x: (x + 1).relu(),
                             backend=lambda graph, inputs: graphs.append(graph) or graph.forward)
    return compiled(torch.ones(4)).tolist() == [2.0] * 4 and len(graphs) == 1
"""

    def asked(box: Sandbox, of: str) -> object:
        with box.fork("worker") as child:
            child.ask({"op": "load", "path": str(tmp_path / "kernel.py")})
            return child.ask({"op": "ask", "of": of, "drivers": drivers, "arguments": [],
                              "layout": []})["answer"]

    with Sandbox() as box:
        before = asked(box, "loaded")
        box.expect("graphs")

        assert (before, asked(box, "made")) == (False, True)


@pytest.mark.parametrize(("gpus", "traced"), [((), 1), (("NVIDIA H200",), 0)])
def test_nothing_is_traced_before_forks_that_are_to_see_a_gpu(gpus, traced, monkeypatch):
    """Tracing starts CUDA, and then no fork finds a GPU: "No CUDA GPUs are available"."""
    calls = []
    monkeypatch.setattr(detect, "names", lambda: gpus)
    monkeypatch.setattr(torch, "compile", lambda function, **options: calls.append(options)
                        or function)

    graphs.warm()

    assert len(calls) == traced


def test_several_children_live_side_by_side(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("def entry(): ...")
    request = {"op": "load", "path": str(tmp_path / "kernel.py")}

    with sandbox.fork("worker") as first, sandbox.fork("worker") as second:
        assert first.pid != second.pid
        assert second.ask(request) == first.ask(request) == {"status": "ready"}


def test_an_exception_of_ours_comes_back_as_broken(sandbox: Sandbox) -> None:
    with sandbox.fork("worker") as child:
        reply = child.ask({"op": "no such request"})

    assert reply["status"] == "broken"
    assert "no such request" in reply["traceback"]


def test_the_zygote_has_one_thread_and_a_bare_environment(open_sandbox: Sandbox, load) -> None:
    child, _ = load("print(open('/proc/self/environ').read())", within=open_sandbox)  # as its own
    environ = child.output().rstrip("\0\n").split("\0")
    status = Path(f"/proc/{open_sandbox.pid}/status").read_text()

    assert "Threads:\t1\n" in status
    assert {pair.partition("=")[0] for pair in environ} == {
        "PATH", "LANG", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TRITON_CACHE_DIR",
        "TORCHINDUCTOR_CACHE_DIR", "HOME",
        "TMPDIR", "PYTHONDONTWRITEBYTECODE", "CUDA_VISIBLE_DEVICES",
        "PYTORCH_NVML_BASED_CUDA_CHECK",
    } | {"LD_LIBRARY_PATH", "TRITON_LIBCUDA_PATH", "CC"} & os.environ.keys()


# ---------------------------------------------------------------------------------------------
# Hostile code: (source, limits, the exception or None, words of its message)

FORKER = """
    import os, time
    for _ in range(20):
        if os.fork() == 0:
            time.sleep(600)
    def entry(): ...
"""
DAEMON = """
    import os, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()
    def entry(): ...
"""
SUBREAPER_OFF = """
    import ctypes, os, time
    ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()
    def entry(): ...
"""
DIES_WITH_DAEMON = DAEMON.replace("def entry(): ...", "os._exit(3)")
STUBBORN = """
    import signal, time
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass
"""
SHARED_MEMORY = """
    import mmap
    kept = [mmap.mmap(-1, 1 << 30) for _ in range(100)]
"""
RESIDENT = """
    import os, time
    if os.fork() == 0:
        held = b"x" * (700 << 20)
        time.sleep(600)
    time.sleep(600)
"""


STARTS_PROCESSES = (FORKER, DAEMON, SUBREAPER_OFF, DIES_WITH_DAEMON, RESIDENT)


def forged(reply: bytes) -> str:
    """A module that sends a reply of its own, and keeps the true one from being sent."""
    return f"import os, time\nos.write(3, {reply!r})\ntime.sleep(9)"


ENDINGS = [
    ("a segmentation fault", "import ctypes\nctypes.string_at(0)", {}, ChildDied, "SIGSEGV"),
    ("abort", "import os\nos.abort()", {}, ChildDied, "SIGABRT"),
    ("os._exit(0)", "import os\nos._exit(0)", {}, ChildDied, "exited with status 0"),
    ("os._exit(3) with a daemon", DIES_WITH_DAEMON, {}, ChildDied, "exited with status 3"),
    ("an endless loop", "while True: pass", {"timeout_s": 0.5}, ChildTimedOut, "0.5 s"),
    ("an endless loop in C", "sum(iter(int, 1))", {"timeout_s": 0.5}, ChildTimedOut, "0.5 s"),
    ("sleep that ignores signals", STUBBORN, {"timeout_s": 0.5}, ChildTimedOut, "0.5 s"),
    ("endless printing", "while True: print('x' * 100)", {"timeout_s": 0.5}, ChildTimedOut,
     "0.5 s"),
    ("closing all descriptors", "import os, time\nos.closerange(0, 99)\ntime.sleep(60)", {},
     ChildDied, "closed its channel"),
    ("a reply that is no JSON", forged(b"\0\0\0\2no"), {}, MalformedReply, "not JSON"),
    ("a reply that is a list", forged(b"\0\0\0\2[]"), {}, MalformedReply, "list"),
    ("a reply that is too large", forged(b"\x7f\0\0\0"), {}, MalformedReply, "at most"),
    ("deep JSON", forged(b"\0\3\0\0" + b"[" * (3 << 16)), {}, MalformedReply, "not JSON"),
    ("two replies", forged(b"\0\0\0\2{}" * 2), {}, MalformedReply, "more than one"),
    ("a child that eats memory", RESIDENT, {"resident": 600 * MIB}, ChildOutOfMemory, "0.6 GB"),
]
SURVIVED = [
    ("a tensor of 100 GB", "import torch\ntorch.empty(100 << 30, dtype=torch.int8)", "raised",
     "MemoryError"),
    ("an array of 100 GB", "import numpy\nnumpy.ones(100 << 30, dtype='int8')", "raised",
     "MemoryError"),
    ("100 GB of shared memory", SHARED_MEMORY, "raised", "OSError"),
    ("deep recursion", "def f(): f()\nf()", "raised", "RecursionError"),
    ("a file of 10 GB", "open('big', 'wb').truncate(10 << 30)", "raised", "OSError"),
    ("sys.exit(0)", "import sys\nsys.exit(0)", "raised", "SystemExit"),
    ("20 forked children", FORKER, "ready", ""),
    ("a daemon of a daemon", DAEMON, "ready", ""),
    ("a daemon past the child", SUBREAPER_OFF, "ready", ""),
    ("interrupting itself", "import os\nos.kill(os.getpid(), 2)\nimport time\ntime.sleep(9)",
     "died", "SIGINT"),
]


@pytest.mark.parametrize(("source", "how", "error", "words"), [case[1:] for case in ENDINGS],
                         ids=[case[0] for case in ENDINGS])
def test_a_child_that_does_not_answer_is_named_and_gone(
    sandbox: Sandbox, open_sandbox: Sandbox, load, source: str, how: dict[str, float],
    error: type[ChildError], words: str
) -> None:
    box = open_sandbox if source in STARTS_PROCESSES else sandbox

    with pytest.raises(error, match=re.escape(words)):
        load(source, within=box, **how)

    assert left_in(box) == []
    assert load("def entry(): ...")[1] == {"status": "ready"}


@pytest.mark.parametrize(("source", "status", "word"), [case[1:] for case in SURVIVED],
                         ids=[case[0] for case in SURVIVED])
def test_what_can_be_reported_is_reported_and_nothing_is_left(
    sandbox: Sandbox, open_sandbox: Sandbox, load, source: str, status: str, word: str
) -> None:
    box = open_sandbox if source in STARTS_PROCESSES else sandbox

    if status == "died":
        with pytest.raises(ChildDied, match=word):
            load(source, within=box)
    else:
        child, reply = load(source, within=box)
        assert reply["status"] == status
        assert word in reply.get("types", [""]) or not word
        child.kill()

    assert left_in(box) == []
    assert load("def entry(): ...")[1] == {"status": "ready"}


@pytest.mark.parametrize("source", STARTS_PROCESSES,
                         ids=["forker", "daemon", "no subreaper", "dies", "memory"])
def test_a_confined_child_starts_no_process(load, source: str) -> None:
    _, reply = load(source)

    assert reply["types"][0] == "PermissionError"


def test_limits_cannot_be_raised(load) -> None:
    source = "import resource as r\nr.setrlimit(r.RLIMIT_FSIZE, (1 << 40, 1 << 40))"
    _, reply = load(source)

    assert reply["types"][0] in ("ValueError", "PermissionError", "OSError")


def test_a_growing_list_ends_at_the_limit(load) -> None:
    _, reply = load("kept = []\nwhile True: kept.append(bytearray(1 << 20))",
                    address_space=512 * MIB)

    assert (reply["status"], reply["types"][0], reply["line"]) == ("raised", "MemoryError", 2)


def test_a_million_lines_do_not_stall_the_child_and_head_and_tail_are_kept(load) -> None:
    child, reply = load("for i in range(1_000_000): print('line', i)\ndef entry(): ...")
    child.kill()
    text = child.output()

    assert reply == {"status": "ready"}
    assert text.startswith("line 0\n")
    assert text.endswith("line 999999\n")
    assert re.search(r"\[… \d+ bytes were left out …\]", text)
    assert len(text) < 70_000


@pytest.mark.parametrize(
    ("source", "limits", "line"),
    [
        ("import ctypes\n\ndef f():\n    ctypes.string_at(0)\nf()", {}, 4),
        ("def f():\n\n    while True: pass\n\nf()", {"timeout_s": 0.5}, 3),
        ("import time\ntime.sleep(99)", {"timeout_s": 0.5}, 2),
        ("\n\nx = [0] * (700 << 17); import time; time.sleep(9)", {"resident": 300 * MIB}, 3),
    ],
    ids=["crash", "loop", "sleep", "memory"],
)
def test_blame_is_the_innermost_line_of_the_learners_file(load, source, limits, line) -> None:
    with pytest.raises(ChildError) as caught:
        load(source, **limits)

    assert caught.value.line == line


def test_blame_reads_the_last_dump_and_paths_with_other_letters() -> None:
    dump = 'Stack (most recent call first):\n  File "/a/k.py", line 1 in f\n' \
           'Stack (most recent call first):\n  File "/b.py", line 9 in g\n' \
           '  File "/\\xfc/k.py", line 7 in f\n  File "/\\xfc/k.py", line 2 in <module>\n'

    assert line_in("/ü/k.py", dump) == 7
    assert line_in("/a/k.py", dump) is None
    assert line_in("", dump) is None


# ---------------------------------------------------------------------------------------------
# Nothing stays behind


def test_closing_leaves_no_process_folder_or_descriptor(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(textwrap.dedent(DAEMON) + textwrap.dedent(
        """
        import os, tempfile
        print(os.getcwd())
        os.makedirs("deep/er")
        open("deep/er/file", "w").close()
        tempfile.mkstemp()
        os.chmod("deep", 0)
        """
    ))
    before = set(map(str, Path("/proc/self/fd").iterdir()))

    sandbox = Sandbox(without=ALL_MEASURES)
    child = sandbox.fork("worker")
    child.ask({"op": "load", "path": str(tmp_path / "kernel.py")})
    folder = Path(child.output().strip()).parent
    assert folder.is_dir()
    sandbox.close()

    assert not folder.exists()
    assert processes_with(str(folder)) == []
    child.kill()
    assert set(map(str, Path("/proc/self/fd").iterdir())) == before


def test_a_judge_that_is_killed_takes_everything_with_it(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text(textwrap.dedent(DAEMON) + "import os\nprint(os.getcwd())\n")
    judge = tmp_path / "judge.py"
    judge.write_text(textwrap.dedent(
        f"""
        import time
        from grader import Sandbox
        child = Sandbox({ALL_MEASURES!r}).fork("worker")
        child.ask({{"op": "load", "path": {str(kernel)!r}}})
        print(child.output().strip(), flush=True)
        time.sleep(600)
        """
    ))
    process = subprocess.Popen([sys.executable, str(judge)], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip()).parent
        assert processes_with(str(folder))
        process.kill()

    wait_until(lambda: not (folder.exists() or processes_with(str(folder))))


def test_signals_of_a_terminal_do_not_end_the_zygote(sandbox: Sandbox, load) -> None:
    load("def entry(): ...")
    os.kill(sandbox.pid, signal.SIGTERM)
    os.kill(sandbox.pid, signal.SIGINT)

    assert load("def entry(): ...")[1] == {"status": "ready"}
    assert os.getsid(sandbox.pid) != os.getsid(0)


def test_a_lost_zygote_is_said_and_replaced(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("import time\ntime.sleep(600)")
    request = {"op": "load", "path": str(tmp_path / "kernel.py")}

    with Sandbox() as sandbox:
        child = sandbox.fork("worker")
        os.kill(sandbox.pid, signal.SIGKILL)
        with pytest.raises(SandboxBroken, match="helper process ended"):
            child.ask(request)

        with sandbox.fork("worker") as another, pytest.raises(ChildTimedOut):
            another.ask(request, timeout_s=0.2)


def test_what_a_lost_zygote_leaves_is_found_and_killed(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(textwrap.dedent(DAEMON) + "print(os.getcwd())")
    request = {"op": "load", "path": str(tmp_path / "kernel.py")}

    with Sandbox(without=ALL_MEASURES) as sandbox:
        child = sandbox.fork("worker")
        child.ask(request)
        folder = child.output().strip()
        os.kill(sandbox.pid, signal.SIGKILL)
        assert processes_with(folder)

    wait_until(lambda: not processes_with(folder))  # the system takes down what was killed


def test_a_sandbox_made_in_a_thread_that_has_ended_still_works(tmp_path: Path) -> None:
    import threading

    made: list[Sandbox] = []
    thread = threading.Thread(target=lambda: made.append(Sandbox()))
    thread.start()
    thread.join()

    with made[0] as sandbox:
        first = sandbox.pid
        sandbox.fork("worker").kill()
        assert sandbox.pid == first


def test_a_python_that_cannot_be_started_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    with pytest.raises(SandboxBroken, match=r"cannot start.*nowhere"):
        Sandbox()


def test_a_closed_sandbox_forks_no_more() -> None:
    sandbox = Sandbox()
    sandbox.close()
    sandbox.close()

    with pytest.raises(SandboxBroken, match="closed"):
        sandbox.fork("worker")


# ---------------------------------------------------------------------------------------------
# Small parts


def test_output_is_whole_up_to_the_limit() -> None:
    output = Output(10)
    for part in (b"abc", b"defg", b"hij"):
        output.add(part)

    assert output.text() == "abcdefghij"
    output.add(b"k" * 100)
    assert output.text() == "abcde\n[… 100 bytes were left out …]\nkkkkk"


@pytest.mark.parametrize("body", [b"", b"3", b"NaN", b'{"a": Infinity}', b"{", b"\xff",
                                  b"1" * 5000])
def test_what_is_no_object_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedReply):
        protocol.decode(body)


def test_an_object_is_read() -> None:
    assert protocol.decode(b'{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}


# ---------------------------------------------------------------------------------------------
# A judge that is killed while it starts


@pytest.mark.parametrize("place", ["Popen", "started"])
def test_a_judge_that_is_killed_while_it_starts_leaves_no_folder(tmp_path, place):
    code = f"""
import os, signal
from grader import Sandbox
from grader.sandbox import client
real = client.subprocess.Popen
def popen(*words, **how):
    process = real(*words, **how) if {place!r} == "started" else None
    os.kill(os.getpid(), signal.SIGKILL)
client.subprocess.Popen = popen
Sandbox()
"""
    ended = subprocess.run([sys.executable, "-c", code], env=os.environ | {"TMPDIR": str(tmp_path)})

    assert ended.returncode == -signal.SIGKILL
    wait_until(lambda: not list(tmp_path.iterdir()))


def test_a_folder_that_nobody_can_make_is_said_and_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    before = set(processes.children(os.getpid()))

    with pytest.raises(OSError, match="No such file"):
        Sandbox()

    assert set(processes.children(os.getpid())) <= before


# ---------------------------------------------------------------------------------------------
# A user who loses patience twice


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    """One that is interrupted again and again, and has to be as good as before."""
    with Sandbox() as made:
        yield made


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_the_answer_to_an_interrupted_request_is_not_taken_for_the_next_one(box, monkeypatch):
    expected = box.isolation
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(box, "_receive", interrupted)
        box.request({"op": "spares"})

    answer = box.request({"op": "isolation"})

    assert Isolation.from_dict(answer["isolation"]) == expected


def test_a_fork_that_was_interrupted_leaves_neither_process_nor_folder(box, monkeypatch):
    with box.fork("worker") as child:
        assert child.alive
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(box, "_receive", interrupted)
        box.fork("worker")

    wait_until(lambda: not list(box.folder.glob("child-*")))
    # no child that nobody knows; the zygote may be at work on its own
    wait_until(lambda: set(processes.children(box.pid)) <= set(box.spares))


def test_a_child_is_ended_though_ending_it_was_interrupted(box, monkeypatch):
    child = box.fork("worker")
    asked = []

    def once(request):
        asked.append(request["op"])
        if len(asked) == 1:
            raise KeyboardInterrupt
        return box.request(request)

    monkeypatch.setattr(child, "_zygote", once)
    with pytest.raises(KeyboardInterrupt):
        child.kill(wait=False)

    assert asked == ["dismiss", "dismiss"]
    wait_until(lambda: child.pid not in processes.children(box.pid))
