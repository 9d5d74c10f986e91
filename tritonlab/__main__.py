"""`python -m tritonlab` and the command `tritonlab`: what has to be in order before the rest."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """The command `tritonlab`."""
    _open_closed_streams()
    try:
        from tritonlab import cli
    except KeyboardInterrupt:  # importing takes long enough to be interrupted
        print("Stopped. Nothing was recorded.", file=sys.stderr)
        sys.exit(130)
    cli.main()


def _open_closed_streams() -> None:
    """Let standard streams that are closed lead nowhere, before a file gets one's number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


if __name__ == "__main__":
    main()
