"""A class: many submissions, one after another on one warm sandbox, some of them hostile."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.fidelity.chaos import module
from tests.fidelity.chaos.bench import Bench, Ended
from tests.fidelity.chaos.kernels import HOSTILE

QUICK = ("a hang in the call", "a segmentation fault in the call", "a bomb of forks",
         "a hog of memory in the call", "an end with status 0", "a segmentation fault at import")


@dataclass(frozen=True)
class Member:
    """One submission and what is right for it: exit codes, and findings where it fails."""

    name: str
    source: str
    codes: frozenset[int]
    findings: frozenset[str] = frozenset()
    limit: str = ""


def members(number: int, hostile: list[str]) -> list[Member]:
    """A class of ``number``: the hostile ones, every fifth of the others wrong, the rest right."""
    made = []
    for name in hostile:
        kernel = HOSTILE[name]
        codes = {1, 3} if "parent" in name else {1} if kernel.codes else {0}
        made.append(Member(name, kernel.source, frozenset(codes), kernel.codes, kernel.limit))
    for place in range(number - len(hostile)):
        wrong = place % 5 == 4
        source = module.WRONG if wrong else module.HEALTHY
        made.append(Member(f"member {place}", f"{source}\n# member {place}\n",
                           frozenset({int(wrong)}), frozenset({"N01"} if wrong else ())))
    return made


def grades(bench: Bench, number: int, hostile: list[str]) -> list[str]:
    """Grade the class in a random order, and in the full form in another: the verdicts are right.

    What is right for a member depends on nobody else, and neither does what it is told.
    """
    chance = random.Random(bench.seed)
    problems = []
    verdicts: dict[str, set[tuple[int, frozenset[str]]]] = {}
    for _ in range(1 if bench.quick else 2):
        order = members(number, hostile)
        chance.shuffle(order)
        for place, member in enumerate(order):
            before = bench.recorded()
            ended = bench.warm.grade(member.source)
            if bench.recorded() != before + 1:
                problems.append(f"{member.name} is not recorded")
            found = _judged(bench, member, ended)
            after = order[place - 1].name if place else "nobody"
            problems += [f"{member.name}, after {after}: {what}" for what in found]
            seen = verdicts.setdefault(member.name, set())
            seen.add((ended.code, frozenset(ended.codes)))
    problems += [f"{name} was judged in more than one way: {sorted(map(str, seen))}"
                 for name, seen in verdicts.items() if len(seen) > 1]
    return [*problems, *bench.warm.left(), *bench.leftovers(), *bench.store()]


def _judged(bench: Bench, member: Member, ended: Ended) -> list[str]:
    limit = bench.limits[member.limit] if member.limit else 0.0
    cold = 3 in member.codes  # its zygote may have to be replaced
    return [*bench.expected(ended, member.codes, member.findings, limit, cold=cold),
            *bench.warm.left()]
