"""Compares the submissions of a class by what is rare in it."""

import bisect
import enum
import functools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from grader.text import joined, plural, ranges
from tritonlab.classroom.similarity import canonical, fragments
from tritonlab.classroom.similarity.fragments import Fragments, Unit

COMMON = 0.3  # share of the submissions above which a fragment is common
MARGIN = 3.0  # bits beyond those that one of all pairs reaches by chance
LEAST = 8.0  # bits that a pair of a small class needs
CONTRARY = 6.0  # bits that rare fragments of one side alone can take off
NAME = 0.5  # statements that a rare name counts for
FAMILY = 0.02  # share of the submissions that may take one unusual approach
_QUOTED = 3  # comments and names that the evidence quotes
_Matrix = npt.NDArray[np.float32]
_Ranges = tuple[tuple[int, int], ...]


class Sameness(enum.StrEnum):
    """Kinds of evidence, the strongest first."""

    BYTES = "identical bytes"
    FORMAT = "identical after formatting"
    NAMES = "identical after renaming and reordering"
    JOURNAL = "journals with common records"
    CODE = "rare code in common"
    FAILURE = "the same rare failure"
    WORDS = "rare comments and names in common"


_RANKS = {kind: rank for rank, kind in enumerate(Sameness)}
_EQUAL = {
    Sameness.BYTES: "The files are identical, byte for byte.",
    Sameness.FORMAT: "The files are identical except for formatting and comments.",
    Sameness.NAMES: "The files are identical except for formatting, comments, names and the order "
                    "of statements."}

_SEVERAL = ("They share rare code, each about as much with several others: they may have taken the "
            "same approach, or used the same source.")


@dataclass(frozen=True)
class ClassSource:
    """A submission.

    Args:
        student: or a label of an earlier submission; unique.
        source: all of its text.
        failure: code of its first failure, and its failed cases; empty where there is none.
        chain: hashes of the records of its journal.
        group: students of one group hand in together and are not compared.
    """

    student: str
    source: str
    failure: str = ""
    chain: frozenset[str] = frozenset()
    group: str = ""


@dataclass(frozen=True)
class Evidence:
    """One observation about two submissions, in words."""

    kind: Sameness
    text: str


@dataclass(frozen=True)
class Pair:
    """Two submissions that share more than chance explains in a class of this size.

    Args:
        evidence: the strongest first.
        bits: beyond what either of them shares with others.
        marks: ranges of characters (start, end) of each source that are shared and rare.
        lines: ranges of lines (first, last) of each source with such marks.
    """

    students: tuple[str, str]
    evidence: tuple[Evidence, ...]
    bits: float
    marks: tuple[_Ranges, _Ranges]
    lines: tuple[_Ranges, _Ranges]

    @property
    def kind(self) -> Sameness:
        return self.evidence[0].kind


@dataclass(frozen=True)
class Cluster:
    """Submissions that pairs connect, directly or by way of others."""

    students: tuple[str, ...]
    kind: Sameness
    n_pairs: int


@dataclass(frozen=True)
class AlikeGroup:
    """Submissions that resemble each other, no pair of them more than others of the class.

    Args:
        rare: whether they share more code than chance explains.
    """

    students: tuple[str, ...]
    kind: Sameness
    rare: bool = True

    @property
    def text(self) -> str:
        reason = _SEVERAL if self.rare else "What is common here is common in this class."
        return f"{_EQUAL[self.kind]} {reason}" if self.kind in _EQUAL else reason


@dataclass(frozen=True)
class Similarity:
    """What the submissions of a class share.

    Args:
        n_students: that were compared.
        threshold: bits that a pair needs; by chance, about one pair of the class reaches them.
        pairs: the strongest kind of evidence first, then by bits.
        groups: submissions that are alike, and not all of which are in a listed pair.
        n_grouped: pairs with as much evidence that are left out, as they are of one group.
    """

    n_students: int
    threshold: float
    pairs: tuple[Pair, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    groups: tuple[AlikeGroup, ...] = ()
    n_grouped: int = 0


@dataclass(frozen=True)
class _Shares:
    """Rare fragments of one kind.

    Args:
        bits: of what each pair shares, as a matrix.
        own: bits of all rare fragments of each submission.
        rare: number of submissions with it, by fragment.
    """

    bits: _Matrix
    own: _Matrix
    rare: Mapping[Any, int]

    @property
    def net(self) -> _Matrix:
        """Bits of what pairs share, less those of what the poorer side has alone."""
        alone = np.minimum(self.own[:, None], self.own[None, :]) - self.bits
        return np.maximum(0, self.bits - np.clip(alone, 0, CONTRARY))


def compare(submissions: Sequence[ClassSource], given: Sequence[str] = (),
            earlier: Sequence[ClassSource] = ()) -> Similarity:
    """Ranks the pairs of a class by the evidence that two students did not work alone.

    Evidence is what few submissions have in common. A fragment that d of n submissions contain
    counts log2(n / d) bits; the fragments of one statement count once together. Those that are
    given or common count nothing. A pair is listed if its bits, less those that one of the two
    shares with several others, exceed what the best of all pairs reaches by chance. If many
    students took the same unusual approach, no pair of them stands out.

    Args:
        submissions: one of each student.
        given: the exercise, the reference solution, and code of the lesson.
        earlier: submissions of others, compared with this class and not with each other.
    """
    entries, n_own = [*submissions, *earlier], len(submissions)
    n, n_pairs = len(entries), n_own * (n_own - 1) // 2 + n_own * len(earlier)
    threshold = max(LEAST, MARGIN + math.log2(max(1, n_pairs)))
    if not n_pairs:
        return Similarity(n_own, threshold)
    read = [fragments.read(entry.source) for entry in entries]
    templates = [fragments.read(text) for text in given]
    code = _shares([_weights(one.code) for one in read], _weights(
        unit for one in templates for unit in one.code))
    prose = _shares([_weights(one.prose) for one in read], _weights(
        unit for one in templates for unit in one.prose))
    names = _shares([dict.fromkeys(one.names, NAME) for one in read],
                    {name for one in templates for name in one.names})
    failures = _shares([{entry.failure: 1.0} if entry.failure else {} for entry in entries])
    chains = _shares([dict.fromkeys(entry.chain, 1.0) for entry in entries])
    text = code.net + prose.net
    forms = _Forms(entries, read)
    beyond = chains.bits + sum(_beyond(bits, forms.alike) for bits in (
        code.net, prose.net, names.net, failures.bits))
    of_class = np.arange(n) < n_own
    compared = np.triu(of_class[:, None] | of_class[None, :], 1)
    evident = compared & (((beyond >= threshold) & (text > 0)) | (chains.bits > 0))
    places = {name: place for place, name in enumerate({entry.group for entry in entries})}
    group = np.array([places[entry.group] for entry in entries])
    together = (group[:, None] == group[None, :]) & (group != places.get("", -1))
    listed = evident & ~together

    @functools.cache
    def rare_grams(number: int) -> frozenset[int]:
        return frozenset(gram for unit in read[number].code for gram in unit.grams
                         if gram in code.rare)

    @functools.cache
    def breaks(number: int) -> list[int]:
        return [match.start() for match in re.finditer("\n", entries[number].source)]

    def pair(i: int, j: int) -> Pair:
        evidence = []
        if kind := forms.kind(i, j):
            evidence.append(Evidence(kind, _EQUAL[kind]))
        if count := len([one for one in entries[i].chain & entries[j].chain if one in chains.rare]):
            evidence.append(Evidence(Sameness.JOURNAL, (
                f"The journals have {plural(count, 'record')} in common, so they were one journal "
                "once.")))
        shared = rare_grams(i) & rare_grams(j)
        marks = _marks(read[i], shared), _marks(read[j], shared)
        lines = _lines(breaks(i), marks[0]), _lines(breaks(j), marks[1])
        if shared:
            evidence.append(Evidence(Sameness.CODE, _shared_code(
                read[i], shared, min(len(rare_grams(i)), len(rare_grams(j))), lines,
                f"{min(code.rare[gram] for gram in shared)} of {n} submissions")))
        if failures.bits[i, j]:
            evidence.append(Evidence(Sameness.FAILURE, (
                "Both fail first in the same way, and in the same cases, as "
                f"{failures.rare[entries[i].failure]} of {n} submissions do.")))
        evidence += _words_evidence(read[i], read[j], prose.rare, names.rare, entries[i].source)
        return Pair((entries[i].student, entries[j].student), tuple(evidence),
                    float(beyond[i, j]), marks, lines)

    pairs = sorted((pair(i, j) for i, j in np.argwhere(listed).tolist()),
                   key=lambda one: (_RANKS[one.kind], -one.bits, one.students))
    in_pairs = {student for one in pairs for student in one.students}
    resembling = compared & (text >= threshold) & of_class[:, None] & of_class[None, :]
    families = [AlikeGroup(tuple(entries[i].student for i in component), Sameness.CODE)
                for component in _components(np.argwhere(resembling).tolist())
                if len(component) > 2]
    groups = [group for group in [*forms.groups(n_own, text >= threshold), *families]
              if not in_pairs.issuperset(group.students)]
    return Similarity(n_own, threshold, tuple(pairs), _clusters(pairs), tuple(groups),
                      int((evident & together).sum()))


def _weights(units: Iterable[Unit]) -> dict[int, float]:
    """Weights of the grams of some statements; those of one statement weigh 1 together."""
    weights: dict[int, float] = {}
    for unit in units:
        weight = 1 / len(unit.grams)
        for gram in unit.grams:
            if weight > weights.get(gram, 0.0):
                weights[gram] = weight
    return weights


def _shares(weights: Sequence[Mapping[Any, float]], given: Collection[Any] = ()) -> _Shares:
    n = len(weights)
    counts = Counter(one for mine in weights for one in mine)
    rare = {one: count for one, count in counts.items()
            if count <= max(2, COMMON * n) and one not in given}
    columns = {one: place for place, one in enumerate(
        one for one, count in rare.items() if count > 1)}
    matrix = np.zeros((n, len(columns)), np.float32)
    own = np.zeros(n, np.float32)
    for row, mine in enumerate(weights):
        for one, weight in mine.items():
            if one in rare:
                bits = weight * math.log2(n / rare[one])
                own[row] += bits
                if one in columns:
                    matrix[row, columns[one]] = math.sqrt(bits)
    return _Shares(matrix @ matrix.T, own, rare)


def _beyond(bits: _Matrix, alike: npt.NDArray[np.bool_]) -> _Matrix:
    """Bits beyond those that one of a pair shares with several that are not equal to it."""
    n = len(bits)
    others = np.where(alike | np.eye(n, dtype=bool), 0, bits)
    several = min(n, max(3, math.ceil(FAMILY * n)))
    usual = -np.sort(-others, axis=1)[:, several - 1]
    beyond: _Matrix = np.maximum(0, bits - np.maximum(usual[:, None], usual[None, :]))
    return beyond


class _Forms:
    """Which submissions are equal, and in which form."""

    def __init__(self, entries: Sequence[ClassSource], read: Sequence[Fragments]) -> None:
        self._entries = entries
        self._read = dict(zip((entry.source for entry in entries), read, strict=True))
        self._formatted: dict[int, str] = {}
        by_shape: dict[int, list[int]] = defaultdict(list)
        for number, one in enumerate(read):
            by_shape[one.shape].append(number)
        digests: dict[str, str] = {}
        self._equal: dict[str, list[int]] = defaultdict(list)  # the members of each group
        for members in by_shape.values():
            for number in members if len(members) > 1 else ():
                source = entries[number].source
                form = self._form(source)
                if form not in digests:
                    digests[form] = (form and canonical.unnamed(form)) or source
                self._equal[digests[form] if form else source].append(number)
        self.alike = np.zeros((len(entries), len(entries)), bool)
        for group in self._equal.values():
            self.alike[np.ix_(group, group)] = True
        np.fill_diagonal(self.alike, False)

    def _form(self, source: str) -> str:
        tokens = self._read[source].tokens
        if tokens not in self._formatted:
            self._formatted[tokens] = canonical.formatted(source)
        return self._formatted[tokens]

    def kind(self, i: int, j: int) -> Sameness | None:
        return self._kind([i, j]) if self.alike[i, j] else None

    def _kind(self, members: Sequence[int]) -> Sameness:
        sources = {self._entries[one].source for one in members}
        if len(sources) == 1:
            return Sameness.BYTES
        return Sameness.FORMAT if len({*map(self._form, sources)}) == 1 else Sameness.NAMES

    def groups(self, n_own: int, rare: npt.NDArray[np.bool_]) -> list[AlikeGroup]:
        """The groups of equal submissions of the class, the largest first.

        Args:
            rare: whether each pair shares more than chance explains.
        """
        groups = [[one for one in members if one < n_own] for members in self._equal.values()]
        return [AlikeGroup(tuple(self._entries[one].student for one in members),
                           self._kind(members), bool(rare[members[0], members[1]]))
                for members in sorted(groups, key=lambda members: -len(members))
                if len(members) > 1]


def _shared_code(one: Fragments, shared: frozenset[int], most: int,
                 lines: tuple[_Ranges, _Ranges], rarest: str) -> str:
    """Describes the rare grams of code that two submissions share."""
    statements = sum(not shared.isdisjoint(unit.grams) for unit in one.code)
    occur = "occur" if len(shared) > 1 else "occurs"
    return (f"{len(shared)} of {most} rare token runs are shared, in "
            f"{plural(statements, 'statement')}: {_spoken(lines[0])} of the first and "
            f"{_spoken(lines[1])} of the second submission. The rarest of them {occur} in "
            f"{rarest}.")


def _words_evidence(one: Fragments, other: Fragments, prose: Mapping[int, int],
                    names: Mapping[str, int], text: str) -> list[Evidence]:
    theirs = {gram for unit in other.prose for gram in unit.grams}
    comments = [" ".join(text[unit.starts[0]:unit.ends[-1]].split()) for unit in one.prose
                if any(gram in prose and gram in theirs for gram in unit.grams)]
    shared = sorted(name for name in one.names & other.names if name in names)
    parts = [f"{plural(len(items), f'rare {word}')} ({_quoted(items)})"
             for items, word in ((comments, "comment"), (shared, "name")) if items]
    return [Evidence(Sameness.WORDS, f"Both contain {joined(parts)}.")] if parts else []


def _quoted(items: Sequence[str]) -> str:
    shown = [f"\"{item[:60]}{'…' * (len(item) > 60)}\"" for item in items[:_QUOTED]]
    return ", ".join(shown + ["…"] * (len(items) > _QUOTED))


def _marks(side: Fragments, shared: Collection[int]) -> _Ranges:
    """Ranges of characters of shared grams, merged."""
    merged: list[list[int]] = []
    for unit in side.code:
        for gram, start, end in zip(unit.grams, unit.starts, unit.ends, strict=True):
            if gram in shared:
                if merged and start <= merged[-1][1]:
                    merged[-1][1] = max(end, merged[-1][1])
                else:
                    merged.append([start, end])
    return tuple((start, end) for start, end in merged)


def _lines(breaks: Sequence[int], marks: _Ranges) -> _Ranges:
    """Ranges of lines, from 1, that contain the marks; adjacent ranges are merged."""
    merged: list[list[int]] = []
    for start, end in marks:
        first, last = (bisect.bisect_left(breaks, place) + 1 for place in (start, end))
        if merged and first <= merged[-1][1] + 1:
            merged[-1][1] = last
        else:
            merged.append([first, last])
    return tuple((first, last) for first, last in merged)


def _spoken(lines: _Ranges) -> str:
    numbers = [number for first, last in lines for number in range(first, last + 1)]
    return f"line{'s' * (len(numbers) > 1)} {ranges(numbers)}"


def _clusters(pairs: Sequence[Pair]) -> tuple[Cluster, ...]:
    clusters = []
    for students in _components([one.students for one in pairs]):
        inside = [one for one in pairs if one.students[0] in students]
        clusters.append(Cluster(tuple(students), inside[0].kind, len(inside)))
    return tuple(sorted(clusters, key=lambda one: (_RANKS[one.kind], -len(one.students))))


def _components(edges: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Connected components of a graph, each sorted."""
    component: dict[Any, list[Any]] = {}
    for one, other in edges:
        mine, theirs = component.setdefault(one, [one]), component.setdefault(other, [other])
        if mine is not theirs:
            mine += theirs
            component.update(dict.fromkeys(theirs, mine))
    return [sorted(members) for members in {id(members): members
                                           for members in component.values()}.values()]
