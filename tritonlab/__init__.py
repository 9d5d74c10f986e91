"""The course for learners, authors and teachers: commands, progress, pages."""

from tritonlab.version import __version__

# Not from typing: Ctrl-C during its import would come before `interrupts.install`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

__all__ = ["__version__", "load_ipython_extension", "run_public_cases"]


def run_public_cases(path: str) -> "NoReturn":
    """Grades the public cases of the exercise at ``path``, prints the report and exits.

    The last lines of every exercise call it, for ``python kernel.py``. Nothing is recorded;
    ``tritonlab grade`` runs the hidden cases too.
    """
    from tritonlab.cli.grade import run_exercise  # lazy: importing tritonlab stays cheap

    raise SystemExit(run_exercise(path))


def load_ipython_extension(ipython: "Any") -> None:
    """Registers the magics of ``%load_ext tritonlab``: ``%%kernel``, ``%hint`` and ``%trace``."""
    from tritonlab import notebook

    notebook.load(ipython)
