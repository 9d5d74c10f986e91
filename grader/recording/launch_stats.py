"""Statistics of one launch: bytes moved by line, operations, predicted time."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from grader.recording.codec import Count, JsonArray, JsonObject

Finite = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
SECTOR = 32  # bytes; what an NVIDIA GPU's L2 moves at least


class Traffic(JsonArray, frozen=True):
    """The accesses of one kind at one line to one tensor in one launch.

    ``sectors``: distinct sectors of 32 bytes of each access of each program, summed.
    ``ideal_sectors``: as few as would hold its bytes. ``unique_sectors``: distinct ones of the
    whole launch. ``requests``: instructions of warps, where the layout of threads is known, else
    0; ``request_sectors`` and ``request_lines``: distinct sectors, and lines of 128 bytes, of each
    of them, summed. What a request has in common with another one of its program may hit L1.
    """

    line: int | None
    kind: Annotated[str, Meta(pattern=r"\A(load|store|atomic)\Z")]
    tensor: str
    lanes: Count
    bytes: Count
    sectors: Count
    ideal_sectors: Count
    unique_sectors: Count
    requests: Count = 0
    request_sectors: Count = 0
    request_lines: Count = 0
    request_bytes: Count = 0

    @property
    def sectors_per_request(self) -> float | None:
        """Sectors of a warp's instruction; None where the layout of threads is unknown."""
        return self.request_sectors / self.requests if self.requests else None

    @property
    def request_use(self) -> float:
        """The useful share of the sectors of each request, 1 at best or where it is unknown."""
        return min(1.0, self.request_bytes / (self.request_sectors * SECTOR)) \
            if self.request_sectors else 1.0

    @property
    def l1_hits(self) -> float:
        """Share of the requested sectors that an earlier request of the program brought to L1."""
        return max(0.0, 1 - self.sectors / self.request_sectors) if self.request_sectors else 0.0

    @property
    def coalescing(self) -> float:
        """The useful share of the sectors moved, 1 at best."""
        return min(1.0, self.ideal_sectors / self.sectors) if self.sectors else 1.0

    @property
    def redundancy(self) -> float:
        """The average number of times that each sector is moved."""
        return self.sectors / self.unique_sectors if self.unique_sectors else 1.0


class BlockRuns(JsonArray, frozen=True):
    """Executions of one block of the source: the body of a function, a loop or a branch.

    ``calls``: first and last line of each statement through which it is called, the outermost
    first. ``header``: the line of the loop's ``for`` or ``while``; 0 for every other block.
    ``runs``: per program, on average; ``most``: of the program with the most.
    """

    calls: tuple[Count, ...]
    first: Count
    last: Count
    header: Count
    runs: Finite
    most: Finite


class Footprint(JsonArray, frozen=True):
    """Distinct sectors of one tensor that a launch read and wrote."""

    read_sectors: Count
    written_sectors: Count


@dataclass(frozen=True)
class LaunchFacts(JsonObject):
    """Counts of one launch; the 64 places and tensors with the most sectors are listed."""

    kernel: str
    programs: Count
    idle_programs: Count
    bytes_loaded: Count
    bytes_stored: Count
    block: Count | None  # the first constexpr parameter that is called BLOCK…
    flops: Count  # of tl.dot, two for each multiplication
    sectors_loaded: Count
    sectors_stored: Count
    traffic: tuple[Traffic, ...] = ()
    footprint: Mapping[str, Footprint] = field(default_factory=dict)  # by parameter

    @property
    def issued(self) -> int:
        """Bytes of every active lane of every access."""
        return self.bytes_loaded + self.bytes_stored


class Interval(JsonArray, frozen=True):
    """Bytes, at least and at most."""

    low: Count
    high: Count

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("an interval begins before it ends")


@dataclass(frozen=True)
class Survey(JsonObject):
    """Estimates of one launch at its real size, scaled from ``sampled`` of its programs.

    ``traffic`` is scaled too; ``executions`` says how often a program comes past each line that
    reaches memory, on average. ``loaded`` and ``stored`` are what moves between DRAM and L2: an
    interval where it depends on what L2 keeps. ``atomics`` counts lanes, and ``hottest`` is how
    many of them meet on the element that gets the most. ``flops`` are those of tl.dot. ``apart``
    are pairs of a kind and a tensor: each program loads or stores one run of bytes of its own.
    ``surely`` is as much of ``loaded`` as does not hang on a guess, where it is known. ``blocks``
    are those of the kernel and of its helpers in the same file. ``guessed``: the line of a loop
    whose iterations depend on values that are unknown at this size, or 0.
    """

    kernel: str
    grid: tuple[Count, Count, Count]
    programs: Count
    sampled: Count
    traffic: tuple[Traffic, ...]
    executions: Mapping[Count, Finite]
    loaded: Interval
    stored: Interval
    atomics: Count
    hottest: Count
    flops: Count
    apart: tuple[tuple[Annotated[str, Meta(pattern=r"\A(load|store)\Z")], str], ...] = ()
    surely: Count | None = None
    blocks: tuple[BlockRuns, ...] = ()
    guessed: Count = 0

    @property
    def issued(self) -> int:
        """Bytes of every active lane of every access."""
        return sum(row.bytes for row in self.traffic)

    @property
    def idle_programs(self) -> int:
        """Always 0: the sampled programs are too few to count them."""
        return 0


@dataclass(frozen=True)
class Prediction(JsonObject):
    """A predicted time in seconds, its bound and the runner-up; ``parts`` in seconds.

    The names are dram, l2, compute, latency, launch, programs and atomics. The parts overlap: they
    do not add up to the whole. ``pipes`` are those of "compute", which overlap too: tensor, fma,
    alu, fp64, xu, lsu and issue.
    """

    seconds: float
    bound: str
    runner_up: str
    parts: Mapping[str, float]
    pipes: Mapping[str, float] = field(default_factory=dict)

    def unit(self, part: str) -> str:
        """The busiest pipe of "compute"; every other part is a unit itself."""
        return max(self.pipes, key=lambda pipe: self.pipes[pipe]) \
            if part == "compute" and self.pipes else part


@dataclass(frozen=True)
class Unsurveyable(JsonObject):
    """A launch that cannot be estimated from a few programs; ``why`` is a sentence."""

    kernel: str
    why: str
