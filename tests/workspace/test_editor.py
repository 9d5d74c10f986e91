"""The learner's editor: which one is found, when it may be started, and what is said of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.waiting import wait_until
from tritonlab.workspace import editor

RECORDS = '#!/bin/sh\nprintf "%s\\n" "$@" > "$0.opened"\n'


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put a program in the only folder of PATH that has editors; it records what it opens."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    for name in editor.VARIABLES:
        monkeypatch.delenv(name, raising=False)

    def put(name: str, script: str = RECORDS) -> Path:
        program = folder / name
        program.write_text(script)
        program.chmod(0o755)
        return program

    return put


def opened(program: Path) -> list[str]:
    """What a program was asked to open; it may still be writing this down."""
    record = Path(f"{program}.opened")
    wait_until(lambda: record.exists() and record.read_text().endswith("kernel.py\n"))
    return record.read_text().splitlines()


@pytest.mark.parametrize(("variables", "words"), [
    ({"VISUAL": "vim", "EDITOR": "nano"}, ["vim"]),
    ({"VISUAL": " ", "EDITOR": "nano -w"}, ["nano", "-w"]),
    ({"VISUAL": "emacs", "EDITOR": "nano"}, ["nano"]),
    ({"VISUAL": "vim 'half", "EDITOR": ""}, ["code"]),
    ({"EDITOR": "'my vim' --fast"}, ["my vim", "--fast"]),
    ({}, ["code"]),
], ids=str)
def test_the_first_editor_that_is_named_and_installed_is_taken(install, monkeypatch, variables,
                                                               words) -> None:
    for name in ("vim", "nano", "code", "my vim"):
        install(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert editor.find().opening(Path("kernel.py")) == [*words, str(Path.cwd() / "kernel.py")]


@pytest.mark.parametrize(("installed", "taken"), [
    (("vi", "vim", "nano", "sensible-editor", "editor", "code"), "code"),
    (("vi", "vim", "nano", "sensible-editor", "editor"), "editor"),
    (("vi", "vim", "nano", "sensible-editor"), "sensible-editor"),
    (("vi", "vim", "nano"), "nano"), (("vi", "vim"), "vim"), (("vi",), "vi"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_without_a_variable_a_usual_editor_is_taken_and_named(install, home, installed,
                                                              taken) -> None:
    for name in installed:
        install(name, "#!/bin/sh\nexit 0\n")

    said = editor.open_in_editor(home / "kernel.py")

    assert said.startswith(f"VISUAL and EDITOR name no editor that is installed, so {taken} is "
                           "used. ")


def test_no_editor_at_all_is_said_with_what_to_do(install) -> None:
    assert editor.find() is None
    assert "export EDITOR=nano" in editor.open_in_editor(Path("kernel.py"))


def test_a_variable_that_names_nothing_is_told(install, monkeypatch) -> None:
    install("code")
    monkeypatch.setenv("VISUAL", "kode -w")
    monkeypatch.setenv("EDITOR", "code")

    assert editor.unusable() == ["VISUAL is set to 'kode -w', which cannot be started."]


def test_an_editor_with_a_window_is_started_and_left_alone(install, home, monkeypatch) -> None:
    closed = home / "closed"
    program = install("code", f'{RECORDS}while [ ! -e "{closed}" ]; do /bin/sleep 0.1; done\n')
    monkeypatch.setenv("EDITOR", "code --reuse-window")

    said = editor.open_in_editor(home / "a folder" / "kernel.py")  # and does not wait for its end
    closed.touch()

    assert said == "a folder/kernel.py was opened in code."
    assert opened(program) == ["--reuse-window", str(home / "a folder" / "kernel.py")]


def test_an_editor_of_the_terminal_leaves_a_held_terminal_alone(install, home, monkeypatch) -> None:
    program = install("vim")
    monkeypatch.setenv("EDITOR", "vim -n")

    said = editor.open_in_editor(home / "kernel.py")

    assert said == "vim needs a terminal of its own. Type in another one: vim -n kernel.py"
    assert not Path(f"{program}.opened").exists()


def test_an_editor_of_the_terminal_is_not_started_without_one(install, home, monkeypatch) -> None:
    install("vim")
    monkeypatch.setenv("EDITOR", "vim")

    said = editor.open_in_editor(home / "kernel.py", terminal_is_free=True)

    assert said == "vim was not started: there is no terminal for it here. Type: vim kernel.py"


def test_an_editor_of_the_terminal_is_waited_for(install, home, monkeypatch) -> None:
    program = install("vim")
    monkeypatch.setenv("EDITOR", "vim")
    script = ("from pathlib import Path; from tritonlab.workspace.editor import open_in_editor\n"
              "print(open_in_editor(Path('kernel.py'), terminal_is_free=True))")

    ours, theirs = os.openpty()
    subprocess.run([sys.executable, "-c", script], stdin=theirs, stdout=theirs, check=True)
    said = os.read(ours, 1000).decode()
    os.close(ours)
    os.close(theirs)

    assert said.strip() == "kernel.py was opened in vim."
    assert opened(program) == [str(home / "kernel.py")]


@pytest.mark.parametrize(("script", "says"), [
    ("#!/bin/sh\nexit 7\n", "code ended with status 7. Open kernel.py yourself."),
    ("#!/nowhere/sh\n",
     "code could not be started: no such file or directory. Open kernel.py yourself."),
], ids=["it fails", "it cannot be run"])
def test_an_editor_that_does_not_open_is_told(install, home, monkeypatch, script, says) -> None:
    install("code", script)
    monkeypatch.setenv("EDITOR", "code")

    assert editor.open_in_editor(home / "kernel.py") == says


@pytest.mark.parametrize("words", [("start", "softmax"), ("next",)], ids=" ".join)
def test_a_module_that_is_begun_can_be_opened_at_once(install, run, home, words) -> None:
    program = install("code")

    shown = run(*words, "--edit")

    [path] = opened(program)
    assert path.endswith("kernel.py")
    assert shown.out.startswith("VISUAL and EDITOR name no editor that is installed, so code is "
                                "used.")
    assert f"{Path(path).relative_to(home)} was opened in code." in " ".join(shown.out.split())
    assert shown.out.endswith("then type: tritonlab grade\n")


def test_a_module_is_begun_even_if_nothing_opens_it(install, run) -> None:
    said = json.loads(run("start", "softmax", "--edit", "--json").out)

    assert said["editor"].startswith("No editor was found")
    assert Path(said["kernel"]).is_file()
