"""The stage: a course of two modules, an empty folder, and what a command says there."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

import grader
from grader.gpu import detect
from grader.judge import draws
from tests.messages import hands
from tests.support import authored
from tritonlab.cli import app
from tritonlab.course import course
from tritonlab.progress import journal

MODULES = ("track1/doubling", "track1/softmax")  # both double; the tour asks for the second
WIDTH = "100"
SEED = "00ff" * 8
UNSET = ("TRITONLAB_WORKSPACE", "TRITONLAB_PLAIN", "NO_COLOR", "FORCE_COLOR", "VISUAL", "EDITOR",
         "XDG_CACHE_HOME")

Step = Callable[["Stage"], Any]


@dataclass(frozen=True)
class Situation:
    """A command, and what is done before it. ``during`` holds while it runs."""

    title: str
    command: str
    before: tuple[Step, ...] = ()
    during: tuple[Callable[[], AbstractContextManager[Any]], ...] = ()
    ends: bool = True  # with what to do next; not so where nothing is to be done
    script: tuple[hands.Deed, ...] = ()  # what is done while it runs
    keys: bool = True  # are there while it runs
    figures: bool = True  # are the same everywhere; not so what a compiler or a model gives


@dataclass(frozen=True)
class Said:
    """What a command answered. ``code`` is its exit code."""

    code: int
    out: str
    err: str


@dataclass
class Stage:
    """One situation's folder. ``root`` is the course, ``home`` where the user is."""

    root: Path
    home: Path
    words: dict[str, str] = field(default_factory=dict)  # later commands may name what was seen

    @property
    def kernel(self) -> Path:
        return self.home / "tritonlab-workspace/track1/doubling/kernel.py"

    @property
    def mark(self) -> Path:
        return self.home / "tritonlab-workspace/.tritonlab"

    @property
    def solution(self) -> str:
        found = course.load(course.roots_in(self.root)).find(MODULES[0])
        return found.solution.read_text()

    def type(self, command: str, encoding: str = "utf-8") -> Said:
        """Type a command in this process."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
        with (mock.patch.object(sys, "argv", shlex.split(command)), contextlib.redirect_stdout(out),
              contextlib.redirect_stderr(err), mock.patch.object(sys, "stdin", io.StringIO())):
            try:
                app.main()
                code = 0
            except SystemExit as ended:
                code = int(ended.code or 0)
        return Said(code, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


@contextlib.contextmanager
def stage(root: Path, box: Any, **environment: str) -> Iterator[Stage]:
    """An empty folder with the course in ``root`` to learn from, on a machine without a GPU.

    All records have the same minute, so that equal records of two workspaces merge into one.
    """
    now = datetime.now()
    with tempfile.TemporaryDirectory(prefix="messages-") as folder, ExitStack() as held:
        home = Path(folder) / "home"
        home.mkdir()
        variables = {key: value for key, value in os.environ.items() if key not in UNSET}
        variables |= {"TRITONLAB_COURSE": str(root), "COLUMNS": WIDTH, "CUDA_VISIBLE_DEVICES": "",
                      "PATH": "/nowhere", "TRITONLAB_PLAIN": "1", **environment}
        held.enter_context(mock.patch.dict(os.environ, variables, clear=True))
        held.enter_context(mock.patch.object(detect, "names", tuple))
        held.enter_context(mock.patch.object(detect, "without_driver", lambda: False))
        held.enter_context(mock.patch.dict(vars(grader), {
            "Sandbox": lambda: contextlib.nullcontext(box)}))
        held.enter_context(mock.patch.object(journal, "date", mock.Mock(today=lambda: now.date())))
        held.enter_context(mock.patch.object(journal, "time", mock.Mock(strftime=now.strftime)))
        held.enter_context(mock.patch.object(draws.secrets, "token_hex",
                                             lambda count: SEED[:2 * count]))
        held.enter_context(contextlib.chdir(home))
        yield Stage(root, home)


@contextlib.contextmanager
def small_course() -> Iterator[Path]:
    """A course of two modules, as an author's first ones."""
    with tempfile.TemporaryDirectory(prefix="course-") as folder:
        for module in MODULES:
            made = authored.make(Path(folder), module)
            made.edit("suites/suite.py", "import EXACT, Cost", "import EXACT, Bench, Cost").edit(
                "suites/suite.py", "    peer=", '    bench=Bench("elements", (1_024, 65_536), '
                                                "lambda n: (rand(n),)),\n    peer=")
        made.edit("tracks/module.toml", "prerequisites = []", f'prerequisites = ["{MODULES[0]}"]')
        yield Path(folder)


def act(situation: Situation, set_up: Stage, **how: Any) -> Said:
    """Bring a situation about and type its command."""
    for step in situation.before:
        step(set_up)
    with ExitStack() as held:
        for context in situation.during:
            held.enter_context(context())
        if situation.script:
            held.enter_context(hands.on(set_up, situation.script, situation.keys))
        return set_up.type(situation.command.format(**set_up.words), **how)


def spoken(situations: Iterable[Situation], box: Any) -> str:
    """All that is said in these situations, as it is kept in a file."""
    told = []
    with small_course() as root:
        for situation in situations:
            with stage(root, box) as set_up:
                said = act(situation, set_up)
                told.append(transcript(situation, said, set_up))
    return "\n".join(told)


def transcript(situation: Situation, said: Said, set_up: Stage) -> str:
    """A situation as one reads it: what was typed, what came out, and where."""
    lines = [f"=== {situation.title}", f"$ {situation.command}"]
    for stream, text in (("out", said.out), ("err", said.err)):
        text = settled(text, set_up)
        text = text if situation.figures else _FIGURE.sub("N", text)
        lines += [f"{stream}| {line}".rstrip() for line in text.splitlines()]
    return "\n".join([*lines, f"exit code {said.code}", ""])


def settled(text: str, set_up: Stage) -> str:
    """A text without what differs from run to run and from machine to machine."""
    for path, name in ((set_up.home, "HOME"), (set_up.root, "COURSE"),
                       (Path(app.__file__).parents[1], "TRITONLAB")):
        text = text.replace(str(path.resolve()), name).replace(str(path), name)
    for pattern, name in _VARIES:
        text = pattern.sub(name, text)
    return text


_FIGURE = re.compile(r"\b\d[\d,]*(?:\.\d+)?")
_VERSIONS = "|".join(sorted({re.escape(metadata.version(name)) for name in (
    "torch", "triton", "numpy", "ml_dtypes", "tritonlab")} | {re.escape(
        sys.version.split()[0])}, key=len, reverse=True))
_VARIES = [(re.compile(pattern, re.MULTILINE), name) for pattern, name in (
    (rf"(?<![\d.])(?:{_VERSIONS})(?![\d.])", "VERSION"),
    (r"\b[0-9a-f]{12,64}\b", "HEX"),
    (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d[:.]?\d\d(?:[:.]?\d\d)?(?:\.\d+)?Z?)?", "DATE"),
    (r"traceback-DATE-\d+", "traceback-DATE-PID"),
    (r"(?<=\bprocess )\d+|(?<=\bkill )\d+", "PID"),
    (r"^\d\d:\d\d:\d\d(?= )", "TIME"),
    (r"(?<=/DATE)-\d", ""),  # a second backup within a second
    (r" \(\d+\.\d+ s\)$", ""),  # shown only of what took long
    (r"\b\d+(?:\.\d+)? s\b", "N s"),
    (r"(?<=got )\S+(?=, expected)|(?<=expected )-?[\d.e-]+\d", "N"),
    (r"\b\d+(?:\.\d+)? (?:GiB|MiB|KiB)\b(?= free)", "SIZE"),
    (r"(?<=free of )\d+(?:\.\d+)? GiB", "SIZE"),
    (r"(?<=free in )\S+", "FOLDER"),
    (r"\b\d+ cores of \w+", "N cores"),
    (r"(?<=tier )\d: [^\n]*", "N"),
    (r"/tmp/\S*?(?=/|\s|$)", "TEMPORARY"),
)]


def kept(verb: str) -> Path:
    """The file of a verb's messages."""
    return Path(__file__).with_name(f"{verb}.txt")
