"""The picture of the README: a failing grade of softmax.

    python -m tests.evidence.readme_picture    grades in a folder of its own, writes docs/grade.svg
"""

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from grader import load_suite
from tritonlab.course import course

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "grade.svg"
COLUMNS = 98


def main() -> None:
    """Grades the solution of softmax with one known mistake, and draws what was printed."""
    module = course.load().find("track1/softmax")
    mutant = next(one for one in load_suite(module.suite).mutants if one.id == "b")
    with tempfile.TemporaryDirectory() as folder:
        _tritonlab(folder, "start", module.id)
        [kernel] = Path(folder).glob("**/*softmax/kernel.py")
        kernel.write_text(mutant.apply(module.solution.read_text()))
        printed = _tritonlab(f"{kernel.parent}", "grade", "--no-gpu")
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text("$ tritonlab grade", style="bold"))
    console.print(Text.from_ansi(printed.rstrip()))
    svg = console.export_svg(title="tritonlab")
    PICTURE.write_text(re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL))


def _tritonlab(folder: str, *arguments: str) -> str:
    """The output of a command on a terminal in color."""
    return subprocess.run(
        [sys.executable, "-m", "tritonlab", *arguments], cwd=folder, stdout=subprocess.PIPE,
        text=True, env={**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS),
                        "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}).stdout


if __name__ == "__main__":
    main()
