"""The pager for long text."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys

_LESS = "FRSX"  # leave where all fits, keep colours, never wrap a line, leave the text on screen


def show(text: str) -> bool:
    """Shows text in ``$PAGER`` or less; returns False if neither starts."""
    try:
        command = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return False
    if not command or shutil.which(command[0]) is None or os.environ.get("TERM") == "dumb":
        return False
    environment = {"LESS": _LESS, "LESSCHARSET": "utf-8", **os.environ}
    sys.stdout.flush()
    before = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is the pager's to answer
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment,
                              encoding="utf-8", errors="replace") as reader:
            reader.communicate(text)
    except OSError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return True
