"""Draws the page of a submission's trace beside its exercise."""

from pathlib import Path
from typing import Any

from grader.trace import TracedCase
from tritonlab.grading import kernels
from tritonlab.trace.page import page
from tritonlab.workspace import output_files
from tritonlab.workspace.submission import Submission

PAGE = "trace.html"


def page_beside(submission: Submission, **options: Any) -> Path:
    """Traces a submission, with options of ``kernels.trace``. Returns the file of the page.

    Raises:
        TritonlabError: as of ``kernels.trace``; or the page cannot be written.
    """
    return write(submission, kernels.trace(submission, **options))


def write(submission: Submission, traced: TracedCase, file: Path | None = None) -> Path:
    """Writes the page of a trace. Returns its file; by default it lies beside the exercise."""
    file = file or submission.kernel.with_name(PAGE)
    output_files.write(page(traced.to_dict(), submission.module.title), file)
    return file
