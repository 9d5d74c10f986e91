"""The data of findings: one frozen type per family, without prose.

``grader.diagnosis.messages`` renders them. A plain string is text of others: the assertion of a
suite, or the line of a timed run in the report. So is the figure ``text`` of a ``Fault``, inside a
sentence of the grader: the message of a compiler or engine, of Python or of a library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
Size = Annotated[int, msgspec.Meta(ge=1, le=1 << 62)]
Index = Annotated[tuple[Count, ...], msgspec.Meta(max_length=64)]
Text = Annotated[str, msgspec.Meta(max_length=1 << 16)]
Items = Annotated[tuple[Count | Text, ...], msgspec.Meta(max_length=256)]
Figure = Count | float | bool | Text | Items | None
Grid = tuple[Size, Size, Size]


class FindingData(msgspec.Struct, frozen=True, tag_field="family", omit_defaults=True):
    """Base of the families. ``kind`` chooses the sentence within a family."""

    def value(self, name: str) -> Any:
        """A field, property or figure by its name; None where there is none."""
        return getattr(self, name, None)


AccessKind = Literal[
    "past", "before", "overflow", "wild", "misaligned", "unwritten", "modified", "two programs",
    "two lanes", "overwritten", "unordered", "early", "no barrier", "race"]
Action = Literal["loaded", "stored", "changed"]


class MemoryAccess(FindingData, frozen=True):
    """Elements that programs of a kernel should not load or store, or not in this order.

    Args:
        action: ``loaded``, ``stored`` or ``changed`` (by an atomic).
        tensor: the kernel's name for it.
        count: different elements that ``program`` accessed so.
        index: of the first of them, counted from the tensor's first element.
        n_elements: of the tensor.
        program: the first program that did so; ``grid`` gives its place.
        others: further programs that did the same.
        other: the program whose access this one collides with.
        earlier: what the program itself did to the same elements before, at ``earlier_line``.
        axes: why programs share their elements: the kernel never asks for its program id
            (``unused``), asks along axes where the grid is 1 (``flat``), or along a ``part`` only.
        asked: the axes of the grid that the kernel asks for.
        row: the elements past the end are exactly one further row.
        argument: the function's name for an input that line ``passed_line`` passes as ``tensor``.
    """

    kind: AccessKind
    action: Action
    count: Count
    index: Count
    program: Count
    grid: Grid
    tensor: str = ""
    n_elements: Count = 0
    others: Count = 0
    other: Count = 0
    earlier: str = ""
    earlier_line: Count | None = None
    axes: Literal["", "unused", "flat", "part"] = ""
    asked: Index = ()
    row: bool = False
    argument: str = ""
    passed_line: Count = 0


class Unstored(FindingData, frozen=True):
    """Elements of a result that no kernel stored.

    Args:
        first: the index of the first of them.
        number: of the result, from 0, where there are several; ``name`` where it has one.
        behind: all elements behind the first are missing too.
        reason: no launch was made (``no launch``), none gets the result (``no argument``), programs
            stored to other tensors only (``no store``), ``idle`` of the ``programs`` stored nothing
            (``idle programs``), or all did what they could (``none left``).
    """

    count: Count
    total: Count
    first: Index
    number: Count | None = None
    name: str = ""
    behind: bool = False
    reason: Literal["", "no launch", "no argument", "no store", "idle programs", "none left"] = ""
    idle: Count = 0
    programs: Count = 0

    @property
    def row(self) -> int:
        return self.first[0] if self.first else 0

    @property
    def column(self) -> int:
        return self.first[-1] if self.first else 0

    @property
    def all_idle(self) -> bool:
        return 0 < self.programs == self.idle


class Fault(FindingData, frozen=True):
    """A fault, a place or a pattern of values: ``messages`` has a sentence for each ``kind``.

    So is a circumstance of a finding, whose words are put around the sentence; it never crosses
    processes, and its figures may be faults too.

    Args:
        figures: by the names that the sentence has for them; ``text`` is text of others.
    """

    kind: str
    figures: Annotated[dict[str, Figure], msgspec.Meta(max_length=16)] = {}

    def __hash__(self) -> int:
        return hash(self.kind)  # a dictionary has no hash

    def with_figures(self, **figures: Figure) -> Fault:
        """The fault with further figures; without those that are None."""
        every = self.figures | figures
        return Fault(self.kind, {name: one for name, one in every.items() if one is not None})

    def value(self, name: str) -> Any:
        return self.kind if name == "kind" else self.figures.get(name)


def fault(kind: str, **figures: Figure) -> Fault:
    """A fault of this kind with its figures."""
    return Fault(kind, figures)


def looked_up(error: KeyError) -> dict[str, Figure]:
    """The figures of a look-up that failed; in Triton most are for a function by its types."""
    key = error.args[0] if error.args else ""
    parts = list(key) if isinstance(key, Iterable) and not isinstance(key, str) else []
    of_types = bool(parts) and all(hasattr(part, "name") for part in parts)
    types = ", ".join(repr(part).rpartition(".")[2] for part in parts) if of_types else ""
    return {"types": types, "text": str(error)}


DifferenceKind = Literal["nonfinite", "values", "drift", "tf32"]


class WrongValues(FindingData, frozen=True):
    """The difference between a result and the reference.

    Args:
        kind: ``nonfinite``, ``values``, ``drift`` or ``tf32``, as in a ``Difference``.
        index: of the first element concerned.
        result: the name of one of several results; ``number`` where it has none.
        of_parts: elements are real and imaginary parts, along a last dimension of two.
        region: where they lie; ``likeness``: what they look like; None where no pattern fits.
        map: rows of characters where neither fits: ``.`` for right elements, ``x`` for wrong ones,
            ``+`` for both; each stands for ``scale`` rows and columns, or elements of a vector.
    """

    kind: DifferenceKind
    count: int
    total: int
    index: Index
    got: float
    expected: float
    result: str = ""
    number: int | None = None
    of_parts: bool = False
    region: Fault | None = None
    likeness: Fault | None = None
    map: tuple[str, ...] = ()
    scale: Index = ()

    @property
    def pattern(self) -> str:
        return self.likeness.kind if self.likeness else ""

    @property
    def factor(self) -> float:
        return self.likeness.value("factor") or 0.0 if self.likeness else 0.0

    @property
    def formula(self) -> str:
        return self.likeness.value("name") or "" if self.likeness else ""

    @property
    def after_first(self) -> bool:
        return self.region is not None and self.region.kind == "after program 0"


Data = MemoryAccess | Unstored | WrongValues | Fault | str
_DATA: Any = Data


def data_from_json(value: Any) -> Data:
    """The data of a finding from JSON values.

    Raises:
        ValueError: it is of no family, or a field has another type or size than it can have.
    """
    try:
        data: Data = msgspec.convert(value, _DATA)
        return data
    except msgspec.ValidationError as error:
        raise ValueError(f"the data of a finding: {error}") from None


# -- codes -----------------------------------------------------------------------------------------

# The name of each code, by which messages and `tritonlab explain` call it.
NAMES = {
    "P01": "blanks-left", "P02": "file-not-importable", "P03": "missing-jit-decorator",
    "P04": "wrong-signature",
    "L01": "invalid-grid", "L03": "idle-programs", "L05": "compile-error",
    "X01": "host-computation",
    "R01": "unexpected-exception", "R02": "time-limit", "R03": "crash", "R04": "memory-limit",
    "M01": "load-out-of-bounds", "M02": "store-out-of-bounds", "M03": "elements-not-stored",
    "M04": "overlapping-stores", "M05": "offset-overflow", "M06": "undefined-values",
    "M07": "input-modified", "M08": "strides-ignored", "M09": "data-race",
    "S01": "wrong-shape-or-dtype",
    "E01": "missing-exception", "E02": "wrong-exception-type", "E03": "unclear-error-message",
    "N01": "wrong-values", "N02": "overflow-or-nan", "N03": "nonfinite-lost",
    "N04": "precision-lost", "N05": "tf32-product",
    "T01": "excess-traffic", "T02": "uncoalesced-access", "T03": "excess-launches",
    "T04": "register-spills", "T05": "out-of-resources", "T06": "fast-path-missed",
    "T07": "too-slow", "T08": "impossible-time",
    "Q01": "wrong-answer", "U01": "mistake-not-noticed", "U02": "tests-disagree",
}


# -- signs -----------------------------------------------------------------------------------------

Sign = Mapping[str, Any]
RELATIONS = frozenset(("contains", "equal", "ends", "field", "max", "min", "not", "pattern"))


def matches(data: Data, circumstances: Sequence[Fault], sign: Sign) -> bool:
    """Whether a finding has the sign of a mistake: a table from fields to what they have to be.

    A value is compared, a list gives values of which one has to fit, and a table relates:
    ``contains`` (a phrase of a text, or several), ``min`` and ``max`` (inclusive), ``not``,
    ``equal`` and ``ends`` (all or the last numbers of an index), ``field`` (equal to another
    field), ``pattern`` (a regular expression). ``text`` is the text of others, the one field of a
    plain string. ``circumstance`` is the kind of one of the circumstances.
    """
    def fits(name: str, wanted: Any) -> bool:
        if name == "circumstance":
            return any(_fits(data, one.kind, wanted) for one in circumstances)
        text = text_of(data, circumstances) if name == "text" else ""
        return _fits(data, text or value_of(data, name), wanted)

    return all(fits(name, wanted) for name, wanted in sign.items())


def text_of(data: Data, circumstances: Sequence[Fault] = ()) -> str:
    """The text of others in a finding: of a suite, a compiler, Python or a library."""
    quoted: list[Any] = [data, *(one.value("refusal") or "" for one in circumstances)]
    return " ".join(str(text) for one in quoted if (text := value_of(one, "text")))


def shows(sign: Sign) -> bool:
    """Whether a sign asks for something that is there, not only for what is not."""
    return any(not isinstance(value, Mapping) or {*value} != {"not"} for value in sign.values())


def strange_relations(sign: Sign) -> set[str]:
    """The relations of a sign that there are not."""
    values = [one for value in sign.values() for one in (
        value if isinstance(value, list) else [value])]
    return {name for value in values if isinstance(value, Mapping) for name in value} - RELATIONS


def value_of(data: Data, name: str) -> Any:
    """A field or figure of the data; of a plain string, ``text``."""
    if isinstance(data, str):
        return data if name == "text" else None
    return data.value(name)


def _fits(data: Data, value: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return any(_fits(data, value, one) for one in wanted)
    if not isinstance(wanted, Mapping):
        return type(value) is type(wanted) and bool(value == wanted)
    return all(_relates(data, value, relation, bound) for relation, bound in wanted.items())


def _relates(data: Data, value: Any, relation: str, bound: Any) -> bool:
    if relation == "not":
        return not _fits(data, value, bound)
    if value is None:
        return False
    match relation:
        case "contains":
            return all(phrase in str(value) for phrase in ([bound] if isinstance(bound, str)
                                                           else bound))
        case "equal":
            return bool(list(value) == bound)
        case "ends":
            return bool(list(value)[-len(bound):] == bound)
        case "field":
            return bool(value == value_of(data, bound))
        case "min":
            return bool(value >= bound)
        case "max":
            return bool(value <= bound)
        case "pattern":
            return re.search(bound, str(value)) is not None
    raise ValueError(f"a sign has no relation {relation!r}")
