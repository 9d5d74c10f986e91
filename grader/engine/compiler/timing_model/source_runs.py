"""Executions of source blocks, as the interpreter counted them, for machine instructions."""

from collections.abc import Sequence

from grader.engine.compiler.sass import SassInstruction
from grader.recording.launch_stats import BlockRuns

Place = tuple[tuple[int, ...], int]
"""Lines of the statements through which an instruction is called, and its own line."""


class SourceRuns:
    """The blocks of a kernel's source, found by the line and the callers of an instruction."""

    def __init__(self, blocks: Sequence[BlockRuns]) -> None:
        # of blocks that contain each other, the outer one first
        self._blocks = sorted(blocks, key=lambda one: (one.first, -one.last))
        self._around: dict[Place, tuple[BlockRuns, ...]] = {}

    def around(self, calls: tuple[int, ...], line: int | None) -> tuple[BlockRuns, ...]:
        """All blocks that contain a line, those of its callers included, the innermost first."""
        if line is None:
            return ()
        if (calls, line) not in self._around:
            own = [one for one in self._blocks
                   if one.first <= line <= one.last and _matches(one.calls, calls)]
            outer = self.around(calls[:-1], calls[-1]) if calls and own else ()
            self._around[calls, line] = (*reversed(own), *outer)
        return self._around[calls, line]

    def runs(self, calls: tuple[int, ...], line: int | None) -> float | None:
        """Executions of a line per program; None where they were not counted."""
        around = self.around(calls, line)
        return around[0].runs if around else None

    def loop(self, step: SassInstruction) -> BlockRuns | None:
        """The innermost loop around an instruction."""
        return next((one for one in self.around(step.calls, step.line) if one.header), None)

    def entries(self, loop: BlockRuns) -> float:
        """The number of times that a loop is entered, per program."""
        for one in reversed(self._blocks):
            if one is not loop and one.calls == loop.calls and (
                    one.first <= loop.header <= one.last) and one.last >= loop.last:
                return one.runs
        return 1.0

    def headed(self, step: SassInstruction) -> BlockRuns | None:
        """The loop whose ``for`` or ``while`` an instruction belongs to."""
        return next((one for one in self._blocks if one.header and one.header == step.line
                     and _matches(one.calls, step.calls)), None)


def _matches(statements: tuple[int, ...], calls: tuple[int, ...]) -> bool:
    return len(statements) == 2 * len(calls) and all(
        first <= line <= last
        for first, last, line in zip(statements[::2], statements[1::2], calls, strict=True))
