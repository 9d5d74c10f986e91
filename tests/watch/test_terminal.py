"""`tritonlab watch` in a terminal, as it is typed: scripted sessions, and every way out."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from grader.sandbox import processes
from tests.fidelity.chaos import module

pytestmark = pytest.mark.course

ROOT = Path(__file__).parents[2]
WAIT_S = 120.0  # until something is shown that has to be; starting takes 2 s
LIMITS = {"grader.processes.pool.LOAD_S": 3.0, "grader.processes.session.CALL_S": 3.0,
          "grader.processes.session.RUN_S": 3.0}
HOOKED = [sys.executable, "-c", "from tests.fidelity.chaos.hooks import main; main()",
          json.dumps({"limits": LIMITS})]
TYPED = [sys.executable, "-m", "tritonlab"]
TRIPLED = module.WRONG
HALVED = module.HEALTHY.replace("x + x", "x * 0.5")
KERNEL = Path("tritonlab-workspace") / module.PLACE


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a workspace, in which the exercise of a small course was started."""
    course = tmp_path / "course"
    module.write(course)
    (course / "tracks" / "missing-elements" / "03-softmax" / "kernel.py").write_text(TRIPLED)
    folder = tmp_path / "home"
    folder.mkdir()
    for name, value in (("TRITONLAB_COURSE", str(course)), ("CUDA_VISIBLE_DEVICES", ""),
                        ("TERM", "xterm-256color"), ("NO_COLOR", "1"), ("PYTHONPATH", str(ROOT))):
        monkeypatch.setenv(name, value)
    for name in ("TRITONLAB_WORKSPACE", "TRITONLAB_PLAIN", "FORCE_COLOR", "COLUMNS", "LINES",
                 "VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    subprocess.run([*TYPED, "start", "softmax"], cwd=folder, check=True, capture_output=True)
    return folder


class Terminal:
    """A pseudo-terminal with a program in it."""

    def __init__(self, folder: Path, command: list[str], columns: int = 120) -> None:
        self.folder = folder
        self.program = pexpect.spawn(command[0], command[1:], cwd=str(folder), encoding="utf-8",
                                     dimensions=(40, columns), timeout=WAIT_S,
                                     env=dict(os.environ))  # not what readline adds to it
        self.program.delaybeforesend = None

    def shows(self, *texts: str) -> None:
        """Wait until these texts are printed, one after the other."""
        for text in texts:
            assert self.program.expect_exact(text) == 0

    def save(self, text: str, kernel: Path = KERNEL) -> None:
        (self.folder / kernel).write_text(text)

    def press(self, keys: str) -> None:
        self.program.send(keys)

    @property
    def shows_what_is_typed(self) -> bool:
        flags = termios.tcgetattr(self.program.child_fd)[3]
        return bool(flags & termios.ECHO and flags & termios.ICANON)

    def ends(self) -> int:
        """Wait for the end: the exit code, or minus the signal."""
        self.program.expect(pexpect.EOF)
        assert self.shows_what_is_typed
        self.program.close()
        return self.program.exitstatus if self.program.exitstatus is not None \
            else -self.program.signalstatus

    def kill(self) -> None:
        """End it, if it has not ended by itself."""
        if not self.program.closed and self.program.isalive():
            self.program.kill(signal.SIGKILL)
            self.program.wait()
        self.program.close()


@contextmanager
def watching(place: Path, *options: str, command: list[str] = HOOKED) -> Iterator[Terminal]:
    terminal = Terminal(place, [*command, "watch", *options])
    try:
        yield terminal
    finally:
        terminal.kill()


def test_a_session_from_start_to_quit(place):
    with watching(place) as terminal:
        terminal.shows("Every save of", "(wrong-values)", "Seen", "h shows a hint")
        terminal.save(HALVED)
        terminal.shows("Saved", "(wrong-values)", "Seen", "h shows a hint")
        terminal.press("h")
        terminal.shows("Hint 1 of 3", "What is missing?")
        terminal.save(module.HEALTHY)
        terminal.shows("Saved", "right so far", "PASSED", "Press n for the next module")
        terminal.press("n")
        terminal.shows("The exercise is in tritonlab-workspace/track1/copy", "Every save of",
                       "FAILED")
        copy = Path("tritonlab-workspace/track1/copy/kernel.py")
        terminal.save("x = 1\n", copy)
        terminal.shows("FAILED")
        terminal.press("x")
        terminal.shows("Replace your work on track1/copy with a fresh exercise?", "y or n")
        terminal.press("y")
        terminal.shows("The exercise is fresh again", "FAILED")
        assert "TODO 1" in (place / copy).read_text()
        terminal.press("u")
        terminal.shows("Your work is back in tritonlab-workspace/track1/copy", "FAILED")
        assert (place / copy).read_text() == "x = 1\n"
        terminal.press("q")

        assert terminal.ends() == 1
    assert "\x1b[3" not in terminal.program.before  # NO_COLOR


FLOOD = "import sys\nfor _ in range(3_000_000): print('\\x1b[2Jflood' * 20)"
KERNELS = {
    "hangs": (module.spoiled("in the call", "while True: pass"), "time-limit"),
    "hangs in the kernel": (module.spoiled("in the kernel", "while n > 0:\n    n += 1"),
                             "time-limit"),
    "crashes": (module.spoiled("in the call", "import ctypes\nctypes.string_at(0)"), "crash"),
    "exits": (module.spoiled("at import", "import os\nos._exit(0)"), "crash"),
    "allocates": (module.spoiled("in the call", "x = bytearray(1 << 40)"), ""),
    "allocates slowly": (module.spoiled(  # where memory is slow, the time is over first
        "in the call", "kept = []\nwhile True: kept.append(bytearray(1 << 24))"),
        "time-limit|memory-limit"),
    "floods": (module.spoiled("in the call", FLOOD), "flood"),
}


def test_a_session_of_kernels_that_misbehave(place):
    with watching(place) as terminal:
        terminal.shows("FAILED")
        for text, says in KERNELS.values():
            terminal.save(text)
            terminal.shows("Saved")
            terminal.program.expect(r"Edit tritonlab-workspace|Press n for")
            said = terminal.program.before
            assert re.search(says, said)
            assert "\x1b[2J" not in said  # what a learner's code prints cannot clear the screen
            assert len(said) < 20_000
        terminal.save(module.HEALTHY)
        terminal.shows("PASSED")
        terminal.press("q")

        assert terminal.ends() == 0


def test_the_warm_process_is_replaced_when_it_dies(place):
    with watching(place) as terminal:
        terminal.shows("FAILED")
        [zygote] = processes.children(terminal.program.pid)
        os.kill(zygote, signal.SIGKILL)
        terminal.save(module.HEALTHY)
        terminal.shows("a new one was started")

        terminal.shows("PASSED")


def test_an_exercise_that_becomes_something_else_is_said(place):
    kernel = place / KERNEL
    with watching(place) as terminal:
        terminal.shows("FAILED")
        kernel.unlink()
        terminal.shows("There is no file at")
        kernel.mkdir()
        terminal.shows("is a folder")
        kernel.rmdir()
        os.mkfifo(kernel)
        terminal.shows("is not a regular file")
        kernel.unlink()
        terminal.save(module.HEALTHY)

        terminal.shows("PASSED")


EDITOR = """
import pathlib, signal, sys, termios
signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own may come before it reads, and then wait
flags = termios.tcgetattr(0)[3]
print("typing is", "shown" if flags & termios.ECHO else "hidden")
input("Enter to save: ")
path = pathlib.Path(sys.argv[1])
path.write_text(path.read_text().replace("x + x + x", "x + x"))
"""


def test_other_programs_get_the_terminal_and_give_it_back(place, monkeypatch):
    (place / "edits.py").write_text(EDITOR)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {place / 'edits.py'}")
    monkeypatch.setenv("PAGER", "cat")
    with watching(place) as terminal:
        terminal.shows("FAILED", "q quit")
        terminal.press("r")
        terminal.shows("Stable softmax", "tritonlab grade track1/softmax", "q quit")
        assert not terminal.shows_what_is_typed
        terminal.press("e")
        terminal.shows("typing is shown", "Enter to save: ")
        terminal.press("\x03")  # ends the editor alone
        terminal.shows("failed. Open", "q quit")
        terminal.press("e")
        terminal.shows("Enter to save: ")
        terminal.press("\n")

        terminal.shows("PASSED")


LENDS = """
import sys
from tritonlab.watch.terminal import Keyboard
with Keyboard() as keyboard:
    put = keyboard.inbox.put
    keyboard.inbox.put = lambda event: (put(event), print("kept", flush=True))
    code = keyboard.run([sys.executable, "-c", sys.argv[1]], lambda: False, reads=False)
    print("ended with", code, "and typed were", keyboard.inbox.take())
"""
PRINTS = """
import sys, time
from pathlib import Path
print("begun", flush=True)
try:
    assert sys.stdin.read() == ""
    time.sleep(600)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_keys_typed_while_a_program_prints_are_kept_unseen_and_q_ends_it(place):
    terminal = Terminal(place, [sys.executable, "-c", LENDS, PRINTS])
    try:
        terminal.shows("begun")
        terminal.press("h?")
        terminal.shows("kept")
        shown = terminal.program.before
        terminal.press("q")
        terminal.program.expect("ended with 130 and typed were .*\n")

        assert "TypedKeys(keys='h?')" in terminal.program.after
        assert (shown + terminal.program.before).strip() == ""  # nothing was echoed
        assert terminal.ends() == 0
    finally:
        terminal.kill()


def test_keys_typed_while_a_program_prints_come_when_it_has_ended(place):
    prints = PRINTS.replace("time.sleep(600)", "while not Path('over').exists(): time.sleep(0.05)")
    terminal = Terminal(place, [sys.executable, "-c", LENDS, prints])
    try:
        terminal.shows("begun")
        terminal.press("h")
        terminal.shows("kept")
        (place / "over").touch()
        terminal.program.expect("ended with 0 and typed were .*\n")

        assert "TypedKeys(keys='h')" in terminal.program.after
    finally:
        terminal.kill()


def test_a_second_watch_says_so_on_the_terminal_too(place):
    with watching(place) as first:
        first.shows("FAILED", "q quit")
        second = subprocess.run([*TYPED, "watch", "--plain"], cwd=place, capture_output=True,
                                text=True)

        assert (second.returncode, second.stdout) == (2, "")
        assert f"Another watch, process {first.program.pid}, since" in second.stderr


def test_ctrl_c_in_mid_grade_says_that_nothing_is_recorded(place):
    journal = place / "tritonlab-workspace/.tritonlab/journal.jsonl"
    with watching(place) as terminal:
        terminal.shows("FAILED", "q quit")
        before = journal.read_text()
        terminal.save(KERNELS["hangs"][0])
        terminal.shows("Saved", "grading")
        terminal.press("\x03")
        terminal.shows("The grade that was running was ended; nothing of it is recorded.")

        assert terminal.ends() == 1
    assert journal.read_text() == before


# ---------------------------------------------------------------------------------------------
# Ways out


@pytest.mark.parametrize(("way", "code"), [
    ("q", 0), ("\x03", 0), ("\x04", 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["q", "Ctrl-C", "Ctrl-D", "SIGTERM", "SIGHUP"])
def test_every_way_out_puts_the_terminal_back(place, way, code):
    with watching(place) as terminal:
        terminal.shows("q quit")
        assert not terminal.shows_what_is_typed
        if isinstance(way, str):
            terminal.press(way)
        else:
            terminal.program.kill(way)

        assert terminal.ends() == code


def test_a_mistake_of_ours_puts_the_terminal_back(place):
    broken = ("from tritonlab.watch import watcher; watcher.Watch._look_at = None; "
              "from tritonlab.__main__ import main; main()")
    with watching(place, command=[sys.executable, "-c", broken]) as terminal:
        terminal.shows("tritonlab itself failed (TypeError)")

        assert terminal.ends() == 3


def test_the_job_can_be_stopped_and_continued(place):
    terminal = Terminal(place, ["bash", "--norc", "--noprofile", "-i"])
    try:
        terminal.program.sendline(f"PS1='ready> '; stty -a | tail -1; {' '.join(TYPED)} watch")
        terminal.shows("FAILED", "q quit")
        terminal.press("\x1a")
        terminal.shows("Stopped", "ready> ")
        terminal.program.sendline("stty -a")
        terminal.program.expect(r"\bicanon\b")
        terminal.program.expect(r"(?<!-)\becho\b")
        terminal.program.sendline("fg")
        terminal.shows("q quit")
        terminal.press("?")
        terminal.shows("begins the next module")
        terminal.press("q")
        terminal.shows("ready> ")
    finally:
        terminal.kill()


def test_another_width_redraws_the_last_line_and_loses_nothing(place):
    with watching(place) as terminal:
        terminal.shows("q quit · ? keys")
        terminal.program.setwinsize(40, 30)
        terminal.program.expect(r"\r\x1b\[J  h hint · q quit · \? keys\r")
        terminal.program.setwinsize(40, 120)
        terminal.shows("q quit · ? keys")


# ---------------------------------------------------------------------------------------------
# Without a terminal


@contextmanager
def piped(place: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    program = subprocess.Popen([*TYPED, "watch", *options], cwd=place, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def test_programs_read_one_object_a_line(place):
    with piped(place, "--json") as program:
        events = []
        for line in program.stdout:
            events.append(json.loads(line))
            if events[-1]["event"] == "graded":
                program.send_signal(signal.SIGINT)
        _, errors = program.communicate()

    assert errors == ""
    assert program.returncode == 1
    assert {event["schema"] for event in events} == {1}
    names = [event["event"] for event in events]
    assert names[:2] == ["watching", "began"]
    assert names[-2:] == ["graded", "ended"]
    assert events[-2]["report"]["verdict"] == "FAILED"
    assert events[-1]["exit_code"] == 1


def test_plain_output_has_one_fact_a_line_and_says_that_keys_are_off(place):
    with piped(place, "--plain") as program:
        lines = []
        for line in program.stdout:
            lines.append(line)
            if line.startswith("Edit "):
                program.send_signal(signal.SIGTERM)
        program.wait()

    assert program.returncode == 143
    assert "Keys are off: there is no terminal to read them from.\n" in lines
    assert any(re.match(r"FAILED track1/softmax graded in", line) for line in lines)
    assert not any("\x1b" in line or line.startswith(" ") for line in lines)


@pytest.mark.parametrize(("variables", "said"), [
    ({}, "needs a terminal, and there is none here. Open a terminal; or add --plain"),
    ({"JPY_PARENT_PID": "1"}, "in a cell of a notebook no key can be typed"),
], ids=["a pipe", "a notebook"])
def test_without_a_terminal_it_says_so_and_ends(place, variables, said):
    ended = subprocess.run([*TYPED, "watch"], cwd=place, env=os.environ | variables, text=True,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=WAIT_S)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr


NOTEBOOKS = {"Jupyter": {"JPY_PARENT_PID": "1"},
             "a kernel without it": {"GIT_PAGER": "cat", "CLICOLOR_FORCE": "1"}}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_in_the_terminal_of_a_notebook_it_ends_and_no_line_is_redrawn(place, monkeypatch, name):
    for variable, value in NOTEBOOKS[name].items():
        monkeypatch.setenv(variable, value)

    said = [pexpect.run(" ".join([*TYPED, verb]), cwd=str(place), timeout=WAIT_S, encoding="utf-8",
                        withexitstatus=True) for verb in ("watch", "grade")]

    assert [code for _, code in said] == [2, 1]
    assert "in a cell of a notebook no key can be typed" in said[0][0]
    assert "FAILED" in said[1][0]
    assert "\x1b[2K" not in said[1][0]


def test_forced_colour_makes_no_terminal(place, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")

    graded = subprocess.run([*TYPED, "grade"], cwd=place, capture_output=True, text=True)

    assert (graded.returncode, graded.stderr) == (1, "")


def test_a_reader_that_leaves_ends_it_quietly(place):
    with piped(place, "--plain") as program:
        assert program.stdout is not None
        program.stdout.readline()
        program.stdout.close()
        assert program.stderr is not None
        errors = program.stderr.read()

        assert program.wait(WAIT_S) == 0
        assert errors == ""


# ---------------------------------------------------------------------------------------------
# Idle


def _used_s(pids: list[int]) -> float:
    """Processor time that these processes have used so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _bytes(pid: int) -> int:
    """Memory of a process; of a page that n processes share, the n-th part."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except PermissionError:
        pytest.skip("the grader's processes hide their memory from all but root")
    return sum(int(kib) * 1024 for kib in re.findall(r"^Pss: +(\d+)", rollup, re.MULTILINE))


def test_it_takes_little_while_nothing_happens(place):
    with watching(place) as terminal:
        terminal.shows("FAILED", "q quit")
        shares, taken = [], []
        for _ in range(6):  # at first children are forked ahead, and memory is given back
            time.sleep(3.0)
            pids = [terminal.program.pid, *processes.descendants(terminal.program.pid)]
            before, started = _used_s(pids), time.monotonic()
            time.sleep(3.0)
            shares.append((_used_s(pids) - before) / (time.monotonic() - started))
            taken.append(sum(map(_bytes, pids)))
            if shares[-1] < 0.01 and taken[-1] < 500e6:
                break

        assert any(share < 0.01 and held < 500e6
                   for share, held in zip(shares, taken, strict=True))
