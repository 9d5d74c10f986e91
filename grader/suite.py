"""The vocabulary of a hidden test suite: inputs, cases, cost, tolerance, mutants, the suite."""

from __future__ import annotations

import hashlib
import importlib.util
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from grader.inputs import (
    Input,
    Size,
    Sparse,
    equal_rows,
    extremes,
    families,
    full,
    integers,
    rand,
    row,
    row_with,
    rows,
    special,
    spike,
    wide,
)
from grader.report import Kind

if TYPE_CHECKING:  # a course is listed without loading torch
    import torch

__all__ = [
    "EXACT",
    "FLOAT32",
    "TENSOR_CORES",
    "Amplitude",
    "Case",
    "Cost",
    "Input",
    "Limits",
    "Mutant",
    "Property",
    "Size",
    "Sparse",
    "Suite",
    "Tolerance",
    "correctness",
    "digest",
    "edge",
    "equal_rows",
    "extremes",
    "families",
    "full",
    "integers",
    "load",
    "performance",
    "rand",
    "read_mutants",
    "refuses",
    "row",
    "row_with",
    "rows",
    "special",
    "spike",
    "wide",
]


# ---------------------------------------------------------------------------------------------
# How a result is compared, and what a job costs at least.


@dataclass(frozen=True)
class Amplitude:
    """What rounding may do to a result, element by element; the rule is in ``grader.compare``.

    ``pointwise`` is the amplitude of point-wise steps, ``reduced`` the formula with absolute values
    inside the reduction of ``length`` terms; float64 tensors of the result's shape. ``middle`` is
    the amplitude of an intermediate that may be rounded to the input's dtype.
    """

    pointwise: torch.Tensor | float = 0.0
    reduced: torch.Tensor | float = 0.0
    length: int = 1
    middle: torch.Tensor | float = 0.0


KAPPA = 4.0  # κ: how far an error may pass its amplitude
FLOAT32 = 2.0**-24  # unit roundoff of float32 arithmetic outside tensor cores
TENSOR_CORES = 2.0**-22  # of float32 sums in tensor cores, and of products in three TF32 parts


@dataclass(frozen=True)
class Tolerance:
    """How near to the exact result is near enough; the rule is in ``grader.compare``.

    ``amplitude`` maps the inputs to an ``Amplitude``, or to one for each result; None asks for the
    correctly rounded exact one. ``arithmetic`` is the unit roundoff of the arithmetic asked for.
    ``products`` are the positions of the inputs that are multiplied as matrices. With ``tf32``
    float32 ones may be rounded to TF32 there; without, a result that is right for rounded inputs
    only is told as such.
    """

    amplitude: Callable[..., Amplitude | Sequence[Amplitude | None]] | None = None
    arithmetic: float = FLOAT32
    products: tuple[int, ...] = ()
    tf32: bool = False


EXACT = Tolerance()


@dataclass(frozen=True)
class Cost:
    """The least that the job needs: ``bytes`` to read and write, ``flops`` to compute."""

    bytes: int
    flops: int = 0


# ---------------------------------------------------------------------------------------------
# Cases


@dataclass(frozen=True)
class Limits:
    """What a performance case allows. ``traffic`` is issued bytes over ``Cost.bytes``.

    ``sectors`` bounds the 32-byte sectors of any line that moves much over as few as would hold its
    bytes. ``programs`` bounds the programs of all launches together; a function gets the learner's
    block. Of the compiled code, ``vector`` is how many bits a thread has to load or store at once
    where much is moved, ``spills`` how many bytes a thread may spill, ``stages`` how deep the
    pipeline has to be; with ``tensor_cores`` they have to be used. ``pass_at`` and ``stretch`` are
    shares of the copy bandwidth at this very size: proved, expected or left open without a GPU.
    """

    traffic: float | None = None
    sectors: float | None = None
    launches: int | None = None
    programs: Size | None = None
    vector: int | None = None
    spills: int | None = None
    stages: int | None = None
    tensor_cores: bool = False
    pass_at: float | None = None
    stretch: float | None = None

    @property
    def of_code(self) -> bool:
        """Whether anything is asked of the compiled code."""
        return self.tensor_cores or not (self.vector is self.spills is self.stages is None)


@dataclass(frozen=True)
class Case:
    """One named run. ``name`` says in words what is tried.

    ``raises`` asks for an exception instead of a result; ``mentions`` are words that its message
    must hold. ``public`` cases are the ones that ``python kernel.py`` runs. ``advisory`` cases are
    shown and never decide.
    """

    name: str
    kind: Kind
    inputs: tuple[Any, ...] = ()
    limits: Limits | None = None
    raises: type[Exception] | None = None
    mentions: tuple[str, ...] = ()
    launches: int | None = None  # exactly so many, where the contract says so
    public: bool = False
    advisory: bool = False


def correctness(name: str, *inputs: Any, public: bool = False, launches: int | None = None) -> Case:
    return Case(name, Kind.CORRECTNESS, inputs, public=public, launches=launches)


def edge(name: str, *inputs: Any, public: bool = False, launches: int | None = None,
         advisory: bool = False) -> Case:
    return Case(name, Kind.EDGE, inputs, public=public, launches=launches, advisory=advisory)


def refuses(name: str, *inputs: Any, raises: type[Exception], mentions: Sequence[str] = (),
            public: bool = False) -> Case:
    """The function must raise ``raises`` (or a subclass) before anything is launched."""
    return Case(name, Kind.EDGE, inputs, raises=raises, mentions=tuple(mentions), public=public)


def performance(name: str, *inputs: Any, **limits: Any) -> Case:
    """Run whole and counted; with ``pass_at``, judged at its real size without being run whole.

    ``limits`` are the fields of ``Limits``.
    """
    return Case(name, Kind.PERFORMANCE, inputs, limits=Limits(**limits))


@dataclass(frozen=True)
class Property:
    """A ``test_*`` function of a suite: gets a ``submission``, asserts a law of the result."""

    name: str
    test: Callable[..., None]
    kind: Kind = Kind.PROPERTY
    advisory: bool = False


# ---------------------------------------------------------------------------------------------
# Mutants


@dataclass(frozen=True)
class Mutant:
    """A wrong version of the solution: each ``(find, replace)`` must occur exactly once.

    ``codes`` are the findings that it must get, the first of them first. ``meaning`` is what such a
    failure usually means, in the words of this module; ``todos`` are the blanks to look at.
    Three marks tell a learner's failure from others with the same code: a pattern (``sign``) in
    what was seen, cases that this mistake gets ``wrong``, and cases that it gets ``right``.
    """

    id: str
    title: str
    patches: tuple[tuple[str, str], ...]
    codes: tuple[str, ...]
    meaning: str
    todos: tuple[int, ...] = ()
    sign: str = ""
    wrong: tuple[str, ...] = ()
    right: tuple[str, ...] = ()

    def apply(self, solution: str) -> str:
        """The mutant's source.

        Raises:
            ValueError: a ``find`` text does not occur exactly once in the solution.
        """
        for find, put in self.patches:
            if solution.count(find) != 1:
                raise ValueError(
                    f"mutant {self.id}: the text to replace occurs {solution.count(find)} times, "
                    f"not once: {find!r}"
                )
            solution = solution.replace(find, put)
        return solution


def read_mutants(path: Path) -> tuple[Mutant, ...]:
    """Read ``mutants.toml``; a missing file means no mutants."""
    if not path.exists():
        return ()
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(
        Mutant(
            id=entry["id"],
            title=entry["title"],
            patches=tuple((patch["find"], patch["replace"]) for patch in entry["patch"]),
            codes=tuple(entry["codes"]),
            meaning=entry["meaning"],
            todos=tuple(entry.get("todos", ())),
            sign=entry.get("sign", ""),
            wrong=tuple(entry.get("wrong", ())),
            right=tuple(entry.get("right", ())),
        )
        for entry in data["mutant"]
    )


# ---------------------------------------------------------------------------------------------
# The suite


_GROUPS = (Kind.CORRECTNESS, Kind.CALL, Kind.EDGE, Kind.PROPERTY, Kind.PERFORMANCE)


@dataclass(frozen=True)
class Suite:
    """How one module is graded.

    ``entry`` is the learner's function and ``parameters`` its parameter names in order.
    ``reference`` maps the same inputs to the float64 result (integers stay integers). The result
    must have the reference's shape and ``result_dtype`` (by default the first input's).
    ``contiguous_result`` asks for a row-major result; ``duplicate_writes`` allows two programs to
    store the same element. Where moving or casting elements is the task itself, ``moves="deny"``
    takes copies away from host code. ``host_reads`` names parameters whose values the host needs to
    plan its launches, such as lengths of rows; of all others, only a check of arguments may depend
    on the values.
    ``peer`` is torch in the inputs' own dtype, ``reversed_peer`` the same with the reduction the
    other way round (None where nothing is reduced): two right answers for ``grader.selftest``.
    """

    entry: str
    parameters: tuple[str, ...]
    reference: Callable[..., torch.Tensor]
    tolerance: Tolerance
    cost: Callable[..., Cost]
    cases: Sequence[Case]
    blanks: int = 0  # that the exercise starts with
    result_dtype: str | None = None
    contiguous_result: bool = False
    duplicate_writes: bool = False
    moves: Literal["allow", "deny"] = "allow"
    host_reads: tuple[str, ...] = ()
    peer: Callable[..., Any] | None = None
    reversed_peer: Callable[..., Any] | None = None

    # filled in by ``load``
    name: str = ""
    properties: tuple[Property, ...] = ()
    mutants: tuple[Mutant, ...] = ()
    sha256: str = ""

    def host_reads_at(self) -> frozenset[int]:
        """The positions of the parameters that ``host_reads`` names."""
        return frozenset(map(self.parameters.index, self.host_reads))

    def public_cases(self) -> Iterator[Case]:
        return (case for case in self.cases if case.public)

    def ordered(self, public_only: bool = False, only: str = "") -> list[Case | Property]:
        """The cases in the order in which they are judged: the simplest group first.

        Args:
            public_only: leave out all that is hidden.
            only: the name of the one case that is meant.
        """
        cases: list[Case | Property] = [*self.cases, *self.properties]
        if public_only:
            cases = list(self.public_cases())
        return sorted((case for case in cases if only in ("", case.name)),
                      key=lambda case: _GROUPS.index(case.kind))


def load(path: Path) -> Suite:
    """Load a suite from ``…/suite.py``, with its ``test_*`` properties and the mutants beside it.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file defines no ``suite``.
    """
    spec = importlib.util.spec_from_file_location(f"grader_suite_{path.parent.name}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"There is no suite at {path}.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    suite = getattr(module, "suite", None)
    if not isinstance(suite, Suite):
        raise ValueError(f"{path} defines no `suite = Suite(...)`.")
    return replace(
        suite,
        name="/".join(path.parent.parts[-2:]),
        properties=tuple(
            Property(name.removeprefix("test_").replace("_", " "), value)
            for name, value in vars(module).items()
            if name.startswith("test_") and callable(value)
        ),
        mutants=read_mutants(path.with_name("mutants.toml")),
        sha256=digest(path),
    )


def digest(path: Path) -> str:
    """The identity of a suite: the SHA-256 of its ``suite.py`` and the mutants beside it."""
    mutants = path.with_name("mutants.toml")
    content = path.read_bytes() + (mutants.read_bytes() if mutants.exists() else b"")
    return hashlib.sha256(content).hexdigest()
