"""What is said to instructors: the similar submissions of a class, and its mistakes."""

from __future__ import annotations

from typing import Any

from tests.classroom import support
from tests.classroom.test_report import note_grade
from tests.messages.stage import MODULES, Situation, Stage, Step

S = Situation
SIMILAR, MISTAKES = "tritonlab class similar hw1", "tritonlab class mistakes hw1"
ALONE = "    extra_{0} = (x_ptr + {0}) * {0} - {0}\n"
SHARED = "".join(f"    rare_{n} = tl.where(offs > {n}, x_ptr - {n}, offs * {n} + {n})\n"
                 for n in range(3, 12))


def a_class(*sources: str) -> Step:
    """A class whose students handed these in; ``{}`` is the solution."""
    def step(stage: Stage) -> None:
        settings = support.CLASS.replace('"course"', f'"{stage.root}"').replace(
            "track1/softmax", MODULES[0])
        _, store = support.write(stage.home, settings)
        (stage.home / "roster.csv").write_text("student,name\n" + "".join(
            f"s{number},Student {number}\n" for number in range(len(sources))))
        for number, source in enumerate(sources):
            text = source.replace("{}", stage.solution)
            blob = support.hand_in(store, f"s{number}", text, module=MODULES[0])
            verdict = "FAILED" if SHARED in source else "PASSED"
            store.append(note_grade(store, "hw1", blob, report(text, verdict), MODULES[0]))
    return step


def report(source: str, verdict: str) -> dict[str, Any]:
    """A grade whose second case has this verdict."""
    data = support.report(verdict, ("correctness", "PASSED"), ("edge", verdict))
    for finding in data["results"][1]["findings"]:
        line = 1 + next(n for n, text in enumerate(source.splitlines()) if "rare_3" in text)
        finding.update(name="wrong-values", seen="2 of 4 values are wrong.", line=line)
    return data


def no_submissions(stage: Stage) -> None:
    a_class()(stage)
    (stage.home / "roster.csv").write_text("student\nada\n")


alone = a_class(*(f"{{}}{ALONE.format(number)}" for number in range(20, 30)))
copied = a_class(*(f"{{}}{ALONE.format(number)}" for number in range(20, 30)),
                 f"{{}}{SHARED}", f"{{}}# mine\n{SHARED}", " \n")

SITUATIONS: dict[str, list[Situation]] = {
    "class": [
        S("similar submissions, a copy and an empty file", SIMILAR, (copied,)),
        S("similar submissions, outside a class", SIMILAR),
        S("similar submissions, none handed in", SIMILAR, (no_submissions,)),
        S("similar submissions, all work alone", SIMILAR, (alone,)),
        S("similar submissions as a page", f"{SIMILAR} --html similar.html", (copied,)),
        S("similar submissions, an earlier class that is not there", f"{SIMILAR} --against 2025",
          (alone,)),
        S("mistakes, no grades", MISTAKES, (no_submissions,)),
        S("mistakes without a mutant", MISTAKES, (copied,)),
        S("mutants to write", f"{MISTAKES} --toml", (copied,), ends=False),
        S("two formats at once", f"{MISTAKES} --toml --json", (copied,)),
    ],
}
