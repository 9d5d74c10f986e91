"""What one launch did, in numbers: what it moved at which line, what it computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

SECTOR = 32  # bytes; what an NVIDIA GPU's L2 moves at least


@dataclass(frozen=True)
class Traffic:
    """All accesses of one kind at one line to one tensor in one launch.

    ``sectors``: distinct sectors of 32 bytes of each access of each program, summed.
    ``ideal_sectors``: as few as would hold its bytes. ``unique_sectors``: distinct ones of the
    whole launch.
    """

    line: int | None
    kind: str  # "load", "store" or "atomic"
    tensor: str
    lanes: int
    bytes: int
    sectors: int
    ideal_sectors: int
    unique_sectors: int

    @property
    def coalescing(self) -> float:
        """The useful share of what is moved, 1 at best."""
        return min(1.0, self.ideal_sectors / self.sectors) if self.sectors else 1.0

    @property
    def redundancy(self) -> float:
        """How often each sector is moved."""
        return self.sectors / self.unique_sectors if self.unique_sectors else 1.0


@dataclass(frozen=True)
class Footprint:
    """Distinct sectors of one tensor that a launch read and wrote."""

    read_sectors: int
    written_sectors: int


@dataclass(frozen=True)
class LaunchFacts:
    """One launch. ``traffic`` holds its 64 heaviest places, and ``footprint`` as many tensors."""

    kernel: str
    programs: int
    idle_programs: int
    bytes_loaded: int
    bytes_stored: int
    block: int | None  # the first constexpr parameter that is called BLOCK…
    flops: int  # of tl.dot, two for each multiplication
    sectors_loaded: int
    sectors_stored: int
    traffic: tuple[Traffic, ...] = ()
    footprint: Mapping[str, Footprint] = field(default_factory=dict)  # by parameter

    @property
    def issued(self) -> int:
        """Bytes of every active lane of every access."""
        return self.bytes_loaded + self.bytes_stored

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read what the executor answers.

        Raises:
            ValueError: it has another form.
        """
        if not isinstance(data, dict) or data.keys() != {f.name for f in fields(cls)}:
            raise ValueError("the facts of a launch are an object with certain names")
        known = dict(data)
        traffic, footprint = known.pop("traffic"), known.pop("footprint")
        kernel, block = known.pop("kernel"), known.pop("block")
        if not isinstance(kernel, str) or not isinstance(traffic, list) or not isinstance(
                footprint, dict):
            raise ValueError("the facts of a launch name a kernel, its traffic and its footprint")
        _check_counts([*known.values(), *([] if block is None else [block])])
        return cls(
            kernel, block=block, **known, traffic=tuple(map(_traffic, traffic)),
            footprint={str(name): _footprint(pair) for name, pair in footprint.items()})


def _traffic(row: Any) -> Traffic:
    match row:
        case [int() | None as line, "load" | "store" | "atomic" as kind, str(tensor), *counts] if (
                len(counts) == 5):
            _check_counts(counts)
            return Traffic(line, kind, tensor, *counts)
    raise ValueError("traffic of an unknown form")


def _footprint(pair: Any) -> Footprint:
    match pair:
        case [read, written]:
            _check_counts([read, written])
            return Footprint(read, written)
    raise ValueError("a footprint of an unknown form")


def _check_counts(values: Sequence[Any]) -> None:
    for value in values:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ValueError(f"no count: {value!r:.40}")


@dataclass(frozen=True)
class Interval:
    """Bytes, at least and at most."""

    low: int
    high: int


@dataclass(frozen=True)
class Survey:
    """One launch at its real size, told from ``sampled`` of its programs and scaled to all.

    ``traffic`` is scaled too; ``executions`` says how often a program comes past each line that
    reaches memory, on average. ``loaded`` and ``stored`` are what moves between DRAM and L2: an
    interval where it depends on what L2 keeps. ``atomics`` counts lanes, and ``hottest`` is how
    many of them meet on the element that gets the most. ``flops`` are those of tl.dot. ``apart``
    are pairs of a kind and a tensor: each program loads or stores one run of bytes of its own.
    ``surely`` is as much of ``loaded`` as does not hang on a guess, where it is known.
    """

    kernel: str
    grid: tuple[int, int, int]
    programs: int
    sampled: int
    traffic: tuple[Traffic, ...]
    executions: Mapping[int, float]
    loaded: Interval
    stored: Interval
    atomics: int
    hottest: int
    flops: int
    apart: tuple[tuple[str, str], ...] = ()
    surely: int | None = None

    @property
    def issued(self) -> int:
        """Bytes of every active lane of every access."""
        return sum(row.bytes for row in self.traffic)

    @property
    def idle_programs(self) -> int:
        """None is known: the programs that were run are too few to say."""
        return 0

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read what the executor answers.

        Raises:
            ValueError: it has another form.
        """
        match data:
            case {"kernel": str(kernel), "grid": [_, _, _] as grid, "traffic": list(traffic),
                  "executions": list(executions), "loaded": [_, _] as loaded,
                  "stored": [_, _] as stored, "apart": list(apart),
                  "surely": surely} if data.keys() == {f.name for f in fields(cls)}:
                counts = {name: data[name] for name in (
                    "programs", "sampled", "atomics", "hottest", "flops")}
                _check_counts([*grid, *counts.values(), *loaded, *stored,
                               *([] if surely is None else [surely])])
                if loaded[0] > loaded[1] or stored[0] > stored[1]:
                    raise ValueError("an interval begins before it ends")
                return cls(
                    kernel, (grid[0], grid[1], grid[2]), **counts,
                    traffic=tuple(map(_traffic, traffic)),
                    executions=dict(map(_execution, executions)),
                    loaded=Interval(*loaded), stored=Interval(*stored),
                    apart=tuple(map(_pair, apart)), surely=surely)
        raise ValueError("the survey of a launch is an object with certain names")

    def to_dict(self) -> dict[str, Any]:
        """What ``from_dict`` reads, fit for JSON."""
        return {
            "kernel": self.kernel, "grid": list(self.grid), "programs": self.programs,
            "sampled": self.sampled,
            "traffic": [[t.line, t.kind, t.tensor, t.lanes, t.bytes, t.sectors, t.ideal_sectors,
                         t.unique_sectors] for t in self.traffic],
            "executions": [[line, count] for line, count in self.executions.items()],
            "loaded": [self.loaded.low, self.loaded.high],
            "stored": [self.stored.low, self.stored.high],
            "atomics": self.atomics, "hottest": self.hottest, "flops": self.flops,
            "apart": [list(pair) for pair in self.apart], "surely": self.surely,
        }


@dataclass(frozen=True)
class Prediction:
    """Seconds, what bounds them and what comes next; ``parts`` by name, in seconds.

    The names are dram, l2, compute, latency, launch, programs and atomics. The parts overlap: they
    do not add up to the whole.
    """

    seconds: float
    bound: str
    runner_up: str
    parts: Mapping[str, float]

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read what the compiler answers.

        Raises:
            ValueError: it has another form.
        """
        match data:
            case {"seconds": float() as seconds, "bound": str(bound), "runner_up": str(runner_up),
                  "parts": dict(parts), **rest} if not rest and all(
                      isinstance(value, int | float) for value in parts.values()):
                return cls(seconds, bound, runner_up,
                           {str(name): float(value) for name, value in parts.items()})
        raise ValueError("a predicted time has seconds, a bound and its parts")


@dataclass(frozen=True)
class Unsurveyable:
    """A launch that a few programs cannot tell of; ``why`` is a sentence."""

    kernel: str
    why: str

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read what the executor answers.

        Raises:
            ValueError: it has another form.
        """
        match data:
            case {"kernel": str(kernel), "why": str(why), **rest} if not rest:
                return cls(kernel, why)
        raise ValueError("a launch that was not surveyed has a kernel and a reason")

    def to_dict(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "why": self.why}


def _pair(pair: Any) -> tuple[str, str]:
    match pair:
        case ["load" | "store" as kind, str(tensor)]:
            return kind, tensor
    raise ValueError("what programs reach apart is a kind and a tensor")


def _execution(pair: Any) -> tuple[int, float]:
    match pair:
        case [int(line), int() | float() as count] if not isinstance(count, bool):
            _check_counts([line])
            if 0 <= count < float("inf"):
                return line, float(count)
    raise ValueError("executions of an unknown form")
