"""Entry point of `python -m tritonlab` and the command `tritonlab`."""

import atexit
import os
import signal
import sys

from tritonlab import interrupts


def main() -> None:
    """Handles interrupts and closed streams, then runs the command `tritonlab`."""
    try:
        interrupts.install()
        _open_closed_streams()
        if sys.argv[1:2] == ["grade"] and "--help" not in sys.argv:
            from tritonlab.grading import ahead

            ahead.start()
        from tritonlab.cli import app

        app.main()
    except KeyboardInterrupt:  # during an import
        print(interrupts.STOPPED, file=sys.stderr)
        interrupts.leave()
    except SystemExit as leaving:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all output is written
        if leaving.code == interrupts.EXIT_STOPPED:
            interrupts.leave()
        if "torch" in sys.modules and isinstance(leaving.code, int):
            _leave_at_once(leaving.code)
        raise


def _leave_at_once(code: int) -> None:
    """Ends without Python's teardown, which takes 0.3 s once torch is loaded."""
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # Python's own exit reports it
        return
    os._exit(code)


def _open_closed_streams() -> None:
    """Opens closed standard streams on /dev/null, so that no file gets their descriptor."""
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
