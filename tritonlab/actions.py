"""Actions: what each key makes `watch` do."""

from __future__ import annotations

import shlex
import sys

from tritonlab.watch import Action, Watch


def read(watch: Watch) -> None:
    _run(watch, f"tritonlab read {watch.module.id}")


def bench(watch: Watch) -> None:
    _run(watch, watch.submission.typed("bench"))


def _run(watch: Watch, typed: str) -> None:
    """Run another verb as it would be typed: it looks the same, and what it needs goes with it."""
    code = watch.run_aside([sys.executable, "-m", *shlex.split(typed)])
    if code is None or code > 3:
        watch.view.notice(f"It did not end well. Repeat it in another terminal: {typed}")


ACTIONS = (
    Action("r", "read", "shows the lesson.", read),
    Action("b", "bench", "shows how fast your kernels are beside PyTorch and the solution.", bench),
    Action("q", "quit", "ends; so do Ctrl-C and Ctrl-D.", Watch.quit),
    Action("?", "keys", "lists the keys.", lambda watch: watch.view.keys(watch.actions)),
)
