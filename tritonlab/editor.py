"""The learner's editor: which one it is, and opening a file in it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonlab.errors import shown

VARIABLES = ("VISUAL", "EDITOR")
VS_CODE = "code"
# Where no variable names one. VS Code was installed by choice and leaves the terminal alone; the
# next two are what the system's owner has chosen; nano says on its screen how to leave it.
USUAL = (VS_CODE, "editor", "sensible-editor", "nano", "vim", "vi")
NONE = ("No editor was found: neither VISUAL nor EDITOR names one that is installed, and none of "
        f"{', '.join(USUAL)} is.")
NAME_ONE = "Name one, such as `export EDITOR=nano`."

# Programs that open a window of their own and leave the terminal alone. What is in neither list is
# taken for an editor of the terminal: to open two readers of one keyboard is the worse mistake.
_WINDOWS = frozenset((
    VS_CODE, "code-insiders", "code-oss", "codium", "vscodium", "cursor", "windsurf", "positron",
    "subl", "sublime_text", "zed", "zeditor", "atom", "pulsar", "lapce", "gvim", "gedit",
    "gnome-text-editor", "kate", "kwrite", "mousepad", "pluma", "xed", "geany", "bbedit", "mate",
    "pycharm", "charm", "idea", "fleet", "notepad.exe", "notepad++", "xdg-open"))
_HAND_OVER_S = 0.7  # a command that cannot open its window says so within this; `code` takes 0.3 s


@dataclass(frozen=True)
class Editor:
    """What to type to open a file, without the file, and which variable said so ('' for none)."""

    words: tuple[str, ...]
    variable: str = ""

    @property
    def name(self) -> str:
        return Path(self.words[0]).name

    @property
    def why(self) -> str:
        """A sentence about how it came to be taken; empty where a variable names it."""
        return "" if self.variable else \
            f"VISUAL and EDITOR name no editor that is installed, so {self.name} is taken."

    @property
    def has_window(self) -> bool:
        """Whether it opens a window of its own, so that the terminal stays free."""
        return self.name in _WINDOWS

    def opening(self, path: Path) -> list[str]:
        """What to run to open ``path``."""
        return [*self.words, str(path.absolute())]


def find() -> Editor | None:
    """The first of $VISUAL, $EDITOR and the usual ones that is installed."""
    return next((Editor(tuple(words), variable) for variable, words in _candidates()
                 if words and shutil.which(words[0])), None)


def unusable() -> list[str]:
    """A sentence for each variable that is set to something that cannot be started."""
    return [f"{variable} is set to '{os.environ[variable]}', which cannot be started."
            for variable, words in _candidates()
            if variable and not (words and shutil.which(words[0]))]


def command(path: Path) -> list[str] | None:
    """What to run to open ``path``; None where there is no editor."""
    found = find()
    return found.opening(path) if found else None


def open_in_editor(path: Path, *, terminal_is_free: bool = False) -> str:
    """Open ``path`` and say in a sentence what was done, or why nothing was.

    An editor with a window is started and left running. Any other needs the terminal: it is
    started, and waited for, only where ``terminal_is_free``.
    """
    found = find()
    if found is None:
        return f"{NONE} {NAME_ONE}"
    return f"{found.why} {_opened(found, path, terminal_is_free)}".strip()


def _opened(found: Editor, path: Path, terminal_is_free: bool) -> str:
    words = found.opening(path)
    typed = shlex.join([*found.words, shown(path.absolute())])
    if not found.has_window and not terminal_is_free:
        return f"{found.name} needs a terminal of its own. Type in another one: {typed}"
    if not found.has_window and not _has_terminal():
        return f"{found.name} was not started: there is no terminal for it here. Type: {typed}"
    try:
        status = _start(words) if found.has_window else subprocess.call(words)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return f"{found.name} could not be started: {reason}. Open {shown(path)} yourself."
    if status:
        return f"{found.name} ended with status {status}. Open {shown(path)} yourself."
    return f"{shown(path)} was opened in {found.name}."


def _candidates() -> Iterator[tuple[str, list[str]]]:
    """Each variable that is set, with its words (none where quotes do not match); then the usual.
    """
    for variable in VARIABLES:
        if text := os.environ.get(variable, "").strip():
            try:
                yield variable, shlex.split(text)
            except ValueError:
                yield variable, []
    for name in USUAL:
        yield "", [name]


def _has_terminal() -> bool:
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout))


def _start(words: list[str]) -> int:
    """Start a program apart from this one: Ctrl-C here does not end it. 0 while it runs."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        return process.wait(_HAND_OVER_S)
    except subprocess.TimeoutExpired:
        threading.Thread(target=process.wait, daemon=True).start()  # else it stays as a zombie
        return 0
