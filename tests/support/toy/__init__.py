"""A toy course of two modules and reports to go with it, for tests of the face."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from grader.report import CaseResult, Finding, Kind, Report, Verdict

SUITE = """
from grader.suite.spec import Cost, EXACT, Suite

suite = Suite(entry="f", parameters=("x",), reference=lambda x: x, tolerance=EXACT,
              cost=lambda x: Cost(0), cases=[])
"""
MUTANTS = """
[[mutant]]
id = "b"
title = "the padding takes part"
codes = ["N01"]
meaning = "Padding took part in the sum."
todos = [2]
patch = [{ find = "# right", replace = "# wrong" }]
"""
TRACKS = (
    ("missing-elements", 1, "Missing Elements"),
    ("optimization", 2, "Optimization"),
    ("debugging", 3, "Debugging"),
    ("mastery", 4, "Mastery"),
)
EXERCISE = "from __future__ import annotations\n\n...  # TODO 1: what is left?\n"
SOLUTION = "from __future__ import annotations\n# right\n"


def write_course(root: Path) -> Path:
    """Two modules of track 1: ``01-copy``, and ``03-softmax`` which builds on it."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "course.toml").write_text('id = "toy"\n')
    for folder, number, title in TRACKS:
        path = root / "tracks" / folder
        path.mkdir(parents=True)
        (path / "track.toml").write_text(
            f'number = {number}\ntitle = "{title}"\nblurb = "About {title}."\n'
            'starter = "blanks"\n')
    write_module(root, "missing-elements", "01-copy", "Copying")
    write_module(root, "missing-elements", "03-softmax", "Stable softmax", ["track1/copy"])
    return root


def write_module(root: Path, track: str, folder: str, title: str,
                 prerequisites: list[str] | None = None, core: bool = True,
                 before: str = "") -> None:
    exercise, solution, suite = (root / kind / track / folder
                                 for kind in ("tracks", "solutions", "suites"))
    for path in (exercise, solution, suite):
        path.mkdir(parents=True)
    (exercise / "module.toml").write_text(f"""
title = "{title}"
summary = "What {title} is about."
core = {str(core).lower()}
minutes = 90
objectives = ["do it"]
prerequisites = {prerequisites or []!r}
before = "{before}"

[[hints]]
group = "A"
title = "Setup"
todos = [1]
rungs = ["What is missing?", "A decorator.", "One line."]

[[hints]]
group = "B"
title = "Addressing"
todos = [2, 3]
rungs = ["Which row?", "A stride.", "Base plus row."]
""")
    (exercise / "kernel.py").write_text(EXERCISE)
    (exercise / "README.md").write_text(f"# {title}\n")
    (exercise / "lesson.py").write_text("print('a lesson')\n")
    (solution / "kernel.py").write_text(SOLUTION)
    (solution / "answers.md").write_text("# Answers\n\n1. Because a row.\n")
    (suite / "suite.py").write_text(SUITE)
    (suite / "mutants.toml").write_text(MUTANTS)


def case(name: str, verdict: Verdict = Verdict.PASSED, kind: Kind = Kind.CORRECTNESS,
         finding: Finding | None = None, **more: object) -> CaseResult:
    return CaseResult(name, kind, verdict, (finding,) if finding else (), **more)


WRONG = Finding(
    "N01", "Row 3, column 0: 0.0071 where 0.0079 was expected; 508 of 508 values differ.", line=24,
    means="Padding took part in the sum: rows of 127 columns are wrong, of 128 right.",
    where="Line 24, TODO 2", todos=(2,))
PASSING = (
    case("4 rows of 128 columns"),
    case("4 rows of 127 columns"),
    case("every other row of a larger matrix", kind=Kind.EDGE),
    case("no rows at all", kind=Kind.EDGE),
    case("rows sum to one", kind=Kind.PROPERTY),
    case("64 x 1024 floats", kind=Kind.PERFORMANCE, facts={
        "traffic": "1.00x of the minimum, limit 1.00x", "launches": "1, limit 1"}),
    case("bandwidth at 16 384 x 4 096", Verdict.SKIPPED, Kind.PERFORMANCE,
         reason="no GPU was found"),
)
GPU = "NVIDIA H200"
CEILINGS = {"gpu": GPU, "copy_gb_s": 4_282.0, "matmul_tflops": 790.0, "measured_at": "2026-11-22"}
SAME = case(f"the same on the {GPU}", facts={"right": "4 of 4 cases, each run twice"})
TIMED = case("16 384 x 4 096 floats", kind=Kind.PERFORMANCE, clocked=True,
             facts={"measured": "3.85 TB/s, 90 % of this GPU's copy speed, 75 % is required; 40 "
                                "repeats, spread 3 %"},
             measured={"ms": 0.139, "share": 0.9, "pass_at": 0.75})
NOISY = replace(TIMED, verdict=Verdict.INCONCLUSIVE, reason="no clear time in 3 tries.")
SLOW = replace(TIMED, verdict=Verdict.FAILED, findings=(Finding(
    "T07", "1.93 TB/s, 45 % of this GPU's copy speed, 75 % is required."),))
FAST = (*PASSING[:-1], SAME, TIMED)
ON_GPU = {"gpu": GPU, "ceilings": CEILINGS, "target": "NVIDIA H200 SXM", "on_gpu": PASSING[:4]}
FAILING = (
    case("4 rows of 128 columns"),
    case("4 rows of 127 columns", Verdict.FAILED, finding=WRONG),
    case("every other row of a larger matrix", Verdict.FAILED, Kind.EDGE, WRONG),
    case("rows sum to one", Verdict.FAILED, Kind.PROPERTY, WRONG),
    case("64 x 1024 floats", kind=Kind.PERFORMANCE, facts={
        "traffic": "1.31x of the minimum, limit 1.00x"}),
)
BLANKS = (case("the file", Verdict.FAILED, finding=Finding(
    "P01", "1 of 1 blanks left: TODO 1.", line=3, means="Nothing is run before they are filled.",
    where="TODO 1", todos=(1,))),)


def report(results: tuple[CaseResult, ...], kernel: Path | None = None, suite_sha256: str = "",
           **more: object) -> Report:
    source = kernel.read_bytes() if kernel else b""
    return Report(
        suite="missing-elements/03-softmax", source_sha256=hashlib.sha256(source).hexdigest(),
        suite_sha256=suite_sha256, grader_version="0.1.0",
        versions={"torch": "2.13.0", "triton": "3.9.0"}, engine="interpreter",
        seed="00ff", results=results, seconds=0.42,
        **{"isolation": "separate processes", **more})
