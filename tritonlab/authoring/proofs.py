"""Proofs about a module, kept by the digest of all that they depend on."""

import contextlib
import hashlib
import json
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import grader
from grader.gpu import detect
from grader.processes.cache import Cache, folder_sha256
from grader.report import versions
from tritonlab.authoring import module_files
from tritonlab.authoring.module_files import Material
from tritonlab.course import course

MOST_BYTES = 1 << 20  # the proofs of all modules take 200 KB, in 1,300 files


@dataclass(frozen=True)
class Fact:
    """A statement about a module that a grade or another run of its files proves.

    Attributes:
        kinds: the folders whose files decide it: tracks, solutions, suites.
        conditions: what else decides it, such as the digest of another submission, effort and seed.
    """

    statement: str
    material: Material
    kinds: tuple[str, ...]
    conditions: tuple[str, ...] = ()

    @property
    def _conditions(self) -> tuple[str, ...]:
        asked = self.material.module.override.pass_at
        return self.conditions if asked is None else (*self.conditions, f"pass_at={asked}")

    @property
    def key(self) -> str:
        """The digest of all that the proof depends on."""
        gpus = detect.names() if detect.present() else ()
        parts = (self.statement, {kind: self.material.digests[kind] for kind in self.kinds},
                 self._conditions, _CODE, versions(), platform.machine(), gpus)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def recall(fact: Fact) -> str | None:
    """Returns the evidence of a proof that was kept, or None."""
    entry = Cache("proofs", MOST_BYTES).read(fact.key)
    if not isinstance(entry, dict) or set(entry) != {"proved", "evidence"}:
        return None
    evidence = entry["evidence"]
    return evidence if entry["proved"] == fact.statement and isinstance(evidence, str) else None


def keep(fact: Fact, evidence: str = "") -> None:
    """Keeps a proof that has succeeded, unless files were changed in the meantime."""
    with contextlib.suppress(OSError):
        material = fact.material
        if (module_files.digests(material.module), _code()) == (material.digests, _CODE):
            Cache("proofs", MOST_BYTES).write(
                fact.key, {"proved": fact.statement, "evidence": evidence})


def faults(fact: Fact, prove: Callable[[], Iterable[str]]) -> tuple[tuple[str, ...], bool]:
    """Proves a fact, unless its proof was kept.

    Returns:
        The faults, and whether there are none because of a kept proof.
    """
    if recall(fact) is not None:
        return (), True
    failures = tuple(prove())
    if not failures:
        keep(fact)
    return failures, False


_SOURCES = (Path(grader.__file__).parent, Path(__file__).parent, Path(course.__file__).parent)


def _code() -> str:
    """Returns the digest of the code that proves: the grader without suites, and these tools."""
    return "".join(folder_sha256(folder, without="suites") for folder in _SOURCES)


_CODE = _code()  # as it was imported
