"""The face of the course: what learners, authors and teachers type and see."""

from __future__ import annotations

# Not from typing: Ctrl-C during its import would come before `interrupts.install`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["__version__", "run_public_cases"]
__version__ = "0.1.0"


def run_public_cases(path: str) -> NoReturn:
    """Grade the public cases of the exercise at ``path``, print the report, and end the program.

    The last lines of every exercise call it, so that ``python kernel.py`` answers at once. Nothing
    is recorded; ``tritonlab grade`` runs the hidden cases too.
    """
    from tritonlab.cli import run_exercise  # only now: importing tritonlab stays cheap

    raise SystemExit(run_exercise(path))
