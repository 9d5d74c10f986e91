"""`%load_ext tritonlab`: notebooks are run, and show what a learner is meant to see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support import browsing, toy
from tritonlab import notebook
from tritonlab.course import course

ROOT = Path(__file__).parent.parent
MODULE = course.load().find("track1/softmax")
SOLUTION = MODULE.solution.read_text()
WRONG = SOLUTION.replace('other=-float("inf")', "other=0.0").replace(
    "    x = x.to(tl.float32)", '    tl.device_print("x", x)\n    x = x.to(tl.float32)')
EXERCISE = (MODULE.folder / "kernel.py").read_text()


@pytest.fixture
def executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[dict]]]:
    """Runs a notebook of cells; returns the outputs of each cell."""
    for name, value in {"HOME": tmp_path, "IPYTHONDIR": tmp_path / "ipython",
                        "JUPYTER_RUNTIME_DIR": tmp_path / "run", "PYTHONPATH": ROOT,
                        "CUDA_VISIBLE_DEVICES": ""}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("TRITONLAB_WORKSPACE", raising=False)
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (tmp_path / "ipython").mkdir()

    def execute(*cells: str) -> list[list[dict]]:
        book = nbformat.v4.new_notebook(cells=[
            nbformat.v4.new_code_cell(cell) for cell in ("%load_ext tritonlab", *cells)])
        NotebookClient(book, timeout=300, kernel_name="python3",
                       resources={"metadata": {"path": str(folder)}}).execute()
        return [cell["outputs"] for cell in book.cells[1:]]

    return execute


def text(outputs: list[dict], kind: str = "text/plain") -> str:
    """The words of a cell's outputs; every one has HTML too."""
    assert all({"text/plain", "text/html"} <= output["data"].keys() for output in outputs), outputs
    return " ".join(" ".join(output["data"][kind].split()) for output in outputs)


@pytest.mark.course
def test_a_notebook_grades_helps_and_grades_again(executed, tmp_path):
    wrong, hinted, traced, right, hinted_again = executed(
        f"%%kernel track1/softmax\n{WRONG}", "%hint --todo 7", "%trace --program 1",
        f"%%kernel softmax\n{SOLUTION}", "%hint softmax")

    line = 1 + WRONG[:WRONG.index("x = tl.load")].count("\n") + 1
    assert "FAILED track1/softmax" in text(wrong)
    assert "Your work is kept in tritonlab-workspace." in text(wrong)
    assert f"Where Line {line}" in text(wrong)
    assert "`%hint track1/softmax --todo" in text(wrong)
    assert "Picture `%trace track1/softmax`" in text(wrong)
    assert "(0, 0, 0) x: [" in text(wrong)
    assert '<span class="fail">FAILED</span>' in text(wrong, "text/html")
    assert "<b>Seen</b>" in text(wrong, "text/html")
    assert "Hint 1 of" in text(hinted)
    assert "Traced 4 programs of case" in text(traced)
    assert '<iframe srcdoc="&lt;!doctype html&gt;' in text(traced, "text/html")
    with browsing.browser() as browser:
        cell = escape(f"<!doctype html>{traced[0]['data']['text/html']}")
        (tmp_path / "cell.html").write_text(  # Colab shows outputs in a frame of another origin
            f'<!doctype html><iframe sandbox="allow-scripts" srcdoc="{cell}" '
            'style="width: 1000px; height: 800px"></iframe>')
        with browsing.opened(browser, tmp_path / "cell.html") as seen:
            trace = seen.page.frame_locator("iframe").frame_locator("iframe")
            store = 1 + WRONG[:WRONG.index("tl.store(")].count("\n") + 1
            trace.get_by_text(f"Line {store}, program").first.wait_for()
            first = trace.locator("#here").inner_text()
            trace.get_by_text("◀ Line").click()
            seen.page.keyboard.press("ArrowRight")
            seen.page.wait_for_timeout(200)
            assert trace.locator("#here").inner_text() == first
            seen.page.keyboard.press("ArrowLeft")
            seen.page.wait_for_timeout(200)
            assert trace.locator("#here").inner_text() != first
            assert {frame.evaluate("self.origin") for frame in seen.page.frames[1:]} == {"null"}
    assert [one for one in seen.requests if one != "about:srcdoc"] == []
    assert seen.complaints == []
    assert "PASSED track1/softmax" in text(right)
    assert "`%kernel track1/" in text(right)
    kernel = tmp_path / "notebooks/tritonlab-workspace/track1/softmax/kernel.py"
    assert kernel.read_text() == f"# %%kernel track1/softmax\n{SOLUTION}"
    assert "Hint" in text(hinted_again)


@pytest.mark.course
def test_a_cell_that_cannot_be_graded_gets_sentences(executed):
    unknown, nameless, blanks, broken, option, files, place, traced = executed(
        "%%kernel track1/softmx\npass", "%%kernel\npass", f"%%kernel softmax\n{EXERCISE}",
        "%%kernel softmax\ndef softmax(x:\n    return x", "%hint softmax --todo seven",
        "%%kernel production-ready\npass", "%trace softmax --program one", "%trace softmax")

    assert text(unknown) == ("No module is called 'track1/softmx'. Did you mean track1/softmax? "
                             "`!tritonlab list` shows all.")
    assert text(nameless) == "Name the module of the cell. Such as `%%kernel track1/vector-add`."
    assert "nothing was run" in text(blanks)
    assert "19 of 19 blanks are left" in text(blanks)
    assert "nothing was run" in text(broken)
    assert "Line 2" in text(broken)
    assert text(option).startswith("`%hint`: argument --todo: invalid int value: 'seven'.")
    assert "several files to edit" in text(files)
    assert text(place).startswith("'one' is not a place in a grid.")
    assert text(traced).startswith("Python cannot parse line 2, column 12")
    assert "Traceback" not in str((unknown, nameless, blanks, broken, option, files, place, traced))


class Shell:
    """An IPython shell that keeps what is shown."""

    def __init__(self) -> None:
        self.shown: list[Mapping[str, str]] = []
        self.magics = notebook.Magics(self, self.display)
        self.next_cell = ""

    def display(self, outputs: Mapping[str, str], *, raw: bool,
                display_id: bool = False) -> Shell:
        self.shown.append(outputs)
        return self

    def set_next_input(self, cell: str) -> None:
        self.next_cell = cell

    @property
    def words(self) -> str:
        return " ".join(" ".join(one["text/plain"].split()) for one in self.shown)


def test_the_exercise_comes_into_the_next_cell_and_back(judge, home):
    judge(toy.FAILING)
    shell = Shell()

    shell.magics.kernel("softmax")
    first, _, cell = shell.next_cell.partition("\n")
    shell.magics.kernel(first.removeprefix("%%kernel "), f"{cell}\n")
    shell.magics.kernel("softmax")

    assert first == "%%kernel track1/softmax"
    assert shell.next_cell == f"{first}\n{cell}"
    assert "FAILED" in shell.words


def test_work_that_no_cell_wrote_is_kept_once(judge, home):
    judge(toy.PASSING)
    shell = Shell()
    shell.magics.kernel("softmax", "first = 1\n")
    kernel = home / "tritonlab-workspace/track1/softmax/kernel.py"

    shell.magics.kernel("softmax", "second = 2\n")
    kernel.write_text("in_an_editor = 3\n")
    shell.magics.kernel("softmax", "third = 4\n")

    backups = [*(home / "tritonlab-workspace/.tritonlab/backups").rglob("kernel.py")]
    assert [path.read_text() for path in backups] == ["in_an_editor = 3\n"]
    assert shell.words.count("The kernel.py that was there is now in") == 1
    assert kernel.read_text() == "# %%kernel track1/softmax\nthird = 4\n"


@pytest.mark.parametrize(("failure", "words"), [
    (KeyboardInterrupt(), "Stopped. Nothing was recorded."),
    (ZeroDivisionError(), "tritonlab itself failed (ZeroDivisionError); your work is untouched."),
], ids=["interrupted", "internal"])
def test_an_error_is_a_sentence(judge, home, failure, words):
    judge(failure)
    shell = Shell()

    shell.magics.kernel("softmax", "x = 1\n")

    assert words in shell.words


def test_words_of_the_learner_are_escaped(judge, home):
    judge(toy.PASSING, output="<script>alert(1)</script>")
    shell = Shell()

    shell.magics.kernel("softmax", "x = 1\n")

    assert "&lt;script&gt;" in shell.shown[-1]["text/html"]
    assert "<script>" not in shell.shown[-1]["text/html"]
