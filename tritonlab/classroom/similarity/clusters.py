"""The clusters of the last comparison of an assignment, for the report."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from tritonlab.classroom.book import Book, Score
from tritonlab.classroom.store import Store
from tritonlab.errors import not_saved
from tritonlab.progress import safe_files

if TYPE_CHECKING:
    from tritonlab.classroom.similarity.compare import Similarity

FOLDER = "similar"


class SimilarStudents(msgspec.Struct, frozen=True):
    """Students of a module whose submissions are similar; without pairs, none stands out."""

    module: str
    students: tuple[str, ...]
    kind: str
    n_pairs: int = 0


@dataclass(frozen=True)
class LastComparison:
    """``current``: no submission has changed since."""

    clusters: tuple[SimilarStudents, ...]
    current: bool


def save(store: Store, book: Book, assignment: str, scores: Iterable[Score],
         modules: "Mapping[str, Similarity]") -> None:
    """Keeps the clusters of a comparison.

    Raises:
        NotSaved: they cannot be written.
    """
    clusters = [SimilarStudents(module, one.students, str(one.kind), one.n_pairs)
                for module, similarity in modules.items() for one in similarity.clusters]
    clusters += [SimilarStudents(module, one.students, str(one.kind))
                 for module, similarity in modules.items() for one in similarity.groups if one.rare]
    data = {"schema": 1, "submissions": _digest(book, scores),
            "clusters": [msgspec.to_builtins(one) for one in clusters]}
    place = store.folder / FOLDER
    try:
        place.mkdir(exist_ok=True)
        with safe_files.opened(place) as folder:
            safe_files.replace(folder, f"{assignment}.json", json.dumps(data).encode())
    except OSError as error:
        raise not_saved("The comparison", error, place) from error


def read(store: Store, book: Book, assignment: str,
         scores: Sequence[Score]) -> LastComparison | None:
    """Returns the last comparison; None if there is none, or only a damaged one."""
    try:
        data: dict[str, Any] = json.loads((store.folder / FOLDER / f"{assignment}.json")
                                          .read_bytes())
        clusters = msgspec.convert(data["clusters"], tuple[SimilarStudents, ...])
        return LastComparison(clusters, data["submissions"] == _digest(book, scores))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _digest(book: Book, scores: Iterable[Score]) -> str:
    """The SHA-256 of the submissions that are compared."""
    compared = sorted((handed.student, handed.module, handed.blob)
                      for score in scores for one in score.modules
                      if (handed := book.counting(score, one.module)))
    return hashlib.sha256(json.dumps(compared).encode()).hexdigest()
