"""`python -m tritonlab` and the command `tritonlab`: what has to be in order before the rest."""

from __future__ import annotations

import os
import signal
import sys

from tritonlab import interrupts


def main() -> None:
    """The command `tritonlab`."""
    try:
        interrupts.install()
        _open_closed_streams()
        from tritonlab import cli

        cli.main()
    except KeyboardInterrupt:  # importing takes long enough to be interrupted
        print(interrupts.STOPPED, file=sys.stderr)
        interrupts.leave()
    except SystemExit as leaving:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # everything is shown and recorded
        if leaving.code == interrupts.EXIT_STOPPED:
            interrupts.leave()
        raise


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
