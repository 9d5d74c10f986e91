"""Peers: torch's own way of a job, timed in a process of the grader's own, without any learner.

``python -m grader.bench.torch_baselines SUITE`` answers requests, a line of JSON each: what is
asked for is a size of one function of that suite, run by torch as it is or compiled.
"""

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from grader.engine.gpu.measurement import Measurement
from grader.text import sentence

PEER_S = 180.0  # torch.compile may take a minute for the first
_WARM_UPS = 3
_LONGEST = 300  # characters of a reason


class Peers(AbstractContextManager["Peers"]):
    """The process, started with the first question; after one that it did not answer, a new one."""

    def __init__(self, suite: Path) -> None:
        self._suite = suite
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as this is

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._stderr.close()

    def _stop(self) -> None:
        if self._process is not None:
            with self._process:
                self._process.kill()
        self._process = None

    def measure(self, function: str, size: int, *, compiled: bool) -> Measurement | str:
        """Times torch; a string is the reason where that fails."""
        request = {"function": function, "size": size, "compiled": compiled}
        try:
            reply = json.loads(self._ask(json.dumps(request).encode() + b"\n"))
            return sentence(str(reply["why"])) if "why" in reply else \
                Measurement.from_dict(reply["measurement"])
        except TimeoutError:
            self._stop()
            return f"It did not finish within {PEER_S:.0f} s."
        except (OSError, ValueError, KeyError, TypeError):
            self._stop()
            return sentence(f"The process that times torch ended unexpectedly: {self._last()}")

    def _last(self) -> str:
        """The last line that the process wrote to stderr."""
        self._stderr.seek(0)
        lines = self._stderr.read()[-4 * _LONGEST:].decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:_LONGEST] if lines else "it said nothing"

    def _ask(self, line: bytes) -> bytes:
        """Sends a line and waits for one, which is empty if the process has ended.

        Raises:
            TimeoutError: none came.
            OSError: the process has ended.
        """
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "grader.bench.torch_baselines", str(self._suite)],
                bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr)
        requests, replies = self._process.stdin, self._process.stdout
        assert requests is not None and replies is not None
        requests.write(line)
        if not select.select([replies], [], [], PEER_S)[0]:
            raise TimeoutError
        return replies.readline()  # the process writes a whole line at once


# The other side


class Answers:
    """Replies to requests; the inputs of the last one are kept for the next."""

    def __init__(self, suite: Any, time_calls: Callable[..., Measurement], device: str) -> None:
        """``time_calls`` times calls that do the same work, in turn; ``device``: of the inputs."""
        self._suite, self._time, self._device = suite, time_calls, device
        self._sets: tuple[Any, list[list[Any]]] = (None, [])

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        import torch

        part = next(part for part in self._suite.parts if part.entry == request["function"])
        peer = part.bench.peer or part.peer
        if peer is None:
            return {"why": "the suite names no equivalent in torch"}
        try:
            if request["compiled"]:
                torch.compiler.reset()
                peer = torch.compile(peer, dynamic=False)
            sets = self._inputs(part, request["size"])
            for inputs in sets:
                for _ in range(_WARM_UPS):
                    peer(*inputs)
            calls = [lambda inputs=inputs: peer(*inputs) for inputs in sets]
            return {"measurement": self._time(calls).to_dict()}
        except Exception as error:
            first = (str(error).strip().splitlines() or [""])[0]
            return {"why": f"torch raised {type(error).__name__}: {first}"[:_LONGEST]}

    def _inputs(self, part: Any, size: int) -> list[list[Any]]:
        """Two sets, at addresses of their own."""
        from grader.judge.draws import Draws, rolled

        key = (part.entry, size)
        if self._sets[0] != key:
            self._sets = None, []
            first = Draws(self._suite.name).draw("", part.bench.inputs(size), device=self._device)
            self._sets = key, [first, rolled(first)]
        return self._sets[1]


def main(suite: Path) -> None:
    """Answers requests until the input ends; output of torch goes to stderr."""
    import torch

    from grader.engine.gpu.clock import Cuda, TimingJob, measure
    from grader.suite import load

    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    device = Cuda()

    def time_calls(calls: list[Callable[[], object]]) -> Measurement:
        return measure([TimingJob(call) for call in calls], device)

    answers = Answers(load(suite), time_calls, "cuda")
    for line in sys.stdin:
        reply = answers.reply(json.loads(line))
        torch.cuda.empty_cache()
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
