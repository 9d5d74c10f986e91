"""The learner's editor: its choice, and opening a file in it."""

import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonlab.errors import reason_of, shown

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
    """A command that opens a file, and the variable that names it ('' for none)."""

    words: tuple[str, ...]
    variable: str = ""

    @property
    def name(self) -> str:
        return Path(self.words[0]).name

    @property
    def why(self) -> str:
        """A sentence about the choice; empty if a variable names the editor."""
        return "" if self.variable else \
            f"VISUAL and EDITOR name no editor that is installed, so {self.name} is used."

    @property
    def has_window(self) -> bool:
        """Whether it opens a window and leaves the terminal free."""
        return self.name in _WINDOWS

    def opening(self, path: Path) -> list[str]:
        """Returns the command that opens ``path``."""
        return [*self.words, str(path.absolute())]


def find() -> Editor | None:
    """Returns the first installed editor of $VISUAL, $EDITOR and the usual ones."""
    return next((Editor(tuple(words), variable) for variable, words in _candidates()
                 if words and shutil.which(words[0])), None)


def unusable() -> list[str]:
    """Returns a sentence for each variable whose editor cannot be started."""
    return [f"{variable} is set to '{os.environ[variable]}', which cannot be started."
            for variable, words in _candidates()
            if variable and not (words and shutil.which(words[0]))]


def open_in_editor(path: Path, *, terminal_is_free: bool = False) -> str:
    """Opens ``path``; returns a sentence about the outcome.

    An editor with a window is started and left running. Any other needs the terminal: it is
    started, and waited for, only where ``terminal_is_free``.
    """
    editor = find()
    if editor is None:
        return f"{NONE} {NAME_ONE}"
    return f"{editor.why} {_opened(editor, path, terminal_is_free)}".strip()


def _opened(editor: Editor, path: Path, terminal_is_free: bool) -> str:
    words = editor.opening(path)
    typed = shlex.join([*editor.words, shown(path.absolute())])
    if not editor.has_window and not terminal_is_free:
        return f"{editor.name} needs a terminal of its own. Type in another one: {typed}"
    if not editor.has_window and not (sys.stdin.isatty() and sys.stdout.isatty()):
        return f"{editor.name} was not started: there is no terminal for it here. Type: {typed}"
    try:
        status = _start(words) if editor.has_window else subprocess.call(words)
    except OSError as error:
        return (f"{editor.name} could not be started: {reason_of(error)}. Open {shown(path)} "
                "yourself.")
    if status:
        return f"{editor.name} ended with status {status}. Open {shown(path)} yourself."
    return f"{shown(path)} was opened in {editor.name}."


def _candidates() -> Iterator[tuple[str, list[str]]]:
    """Yields each variable that is set with its words, then the usual editors.

    A variable whose quotes do not match has no words.
    """
    for variable in VARIABLES:
        if text := os.environ.get(variable, "").strip():
            try:
                yield variable, shlex.split(text)
            except ValueError:
                yield variable, []
    for name in USUAL:
        yield "", [name]


def _start(words: list[str]) -> int:
    """Starts a program in its own session, apart from Ctrl-C; returns 0 while it runs."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        return process.wait(_HAND_OVER_S)
    except subprocess.TimeoutExpired:
        threading.Thread(target=process.wait, daemon=True).start()  # otherwise it stays a zombie
        return 0
