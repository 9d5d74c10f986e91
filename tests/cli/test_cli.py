"""What users type and see: every verb, its output, its exit code, and what bad input gets."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import grader
import tritonlab
from grader.diagnosis.messages import NOT_WRITTEN
from grader.report import CaseResult, Details, Finding, Kind, Verdict
from grader.sandbox import Isolation
from grader.suite.case_selection import UnknownCase
from tests.support import toy
from tests.support.tiers import by_default
from tritonlab import errors
from tritonlab.render.screen import Screen

KERNEL = Path("tritonlab-workspace/track1/softmax/kernel.py")
JOURNAL = Path("tritonlab-workspace/.tritonlab/journal.jsonl")


def records() -> list[dict]:
    return [json.loads(line) for line in JOURNAL.read_text().splitlines()]


def last_line(text: str) -> str:
    return text.rstrip("\n").splitlines()[-1]


# ------------------------------------------------------------ list, status


def test_list_shows_all_modules_and_totals(run):
    shown = run("list")

    assert shown.code == 0
    assert "WAIT  track1/softmax  Stable softmax" in shown.out
    assert "0/2 passed" in shown.out
    assert "Electives" not in shown.out  # there are none
    assert last_line(shown.out) == "Next: tritonlab start track1/copy"


def test_list_loads_nothing_that_is_slow(home):
    command = [sys.executable, "-X", "importtime", "-m", "tritonlab", "list"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)

    loaded = {line.rpartition("|")[2].strip() for line in shown.stderr.splitlines()}
    assert not loaded & {"torch", "triton", "numpy", "jinja2"}


def test_list_as_json(run):
    data = json.loads(run("list", "--json").out)

    assert data["schema"] == 1
    assert [module["state"] for module in data["tracks"][0]["modules"]] == ["waiting", "waiting"]
    assert data["totals"]["core"] == {"passed": 0, "total": 2, "earlier": 0}


def test_status_says_what_is_open_and_what_is_next(run, judge):
    judge(toy.FAILING)
    run("start", "copy")
    run("start", "softmax")
    run("grade")

    shown = run("status")

    assert "OPEN  track1/softmax  best 2 of 5 checks, 1 grade" in shown.out
    assert "OPEN  track1/copy  started, not graded yet" in shown.out
    assert "Current module: track1/softmax" in shown.out
    assert last_line(shown.out) == "Next: tritonlab grade"


def test_status_without_a_workspace(run):
    shown = run("status")

    assert (shown.code, last_line(shown.out)) == (0, "Next: tritonlab start track1/copy")


# ------------------------------------------------------------ start


def test_start_says_where_the_exercise_is_and_what_to_do(run):
    shown = run("start", "copy")

    assert shown.code == 0
    assert "The exercise is in tritonlab-workspace/track1/copy" in shown.out
    assert last_line(shown.out) == "Edit kernel.py, then type: tritonlab grade"


def test_start_warns_of_missing_prerequisites_and_goes_on(run):
    shown = run("start", "softmax")

    assert shown.code == 0
    assert "It builds on track1/copy, which is not passed yet." in shown.out
    assert KERNEL.is_file()


def test_start_names_the_warm_ups_of_a_module(run, course_root):
    toy.write_module(course_root, "missing-elements", "04-sum", "Sums", core=False,
                     before="track1/softmax")

    shown, warm_up, as_json = run("start", "softmax"), run("start", "sum"), \
        json.loads(run("start", "softmax", "--json").out)

    assert "To meet its ideas one at a time, start with track1/sum (1.5 h)." in shown.out
    assert "one at a time" not in warm_up.out
    assert as_json["warm_ups"] == ["track1/sum"]


def test_start_again_changes_nothing_and_says_so(run):
    run("start", "softmax")
    KERNEL.write_text("my work")

    shown = run("start", "softmax")

    assert shown.code == 0
    assert "already there, and it was not changed" in shown.out
    assert KERNEL.read_text() == "my work"


# ------------------------------------------------------------ grade


def test_a_pass_is_shown_recorded_and_points_onward(run, judge):
    judge(toy.PASSING)
    run("start", "softmax")

    shown = run("grade")

    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(
        "PASSED  track1/softmax  6 of 7 checks passed, 1 skipped, in 0.4 s.\n")
    assert "Evidence  correct (interpreter)" in shown.out
    assert "Cost      64 x 1024 floats: traffic 1.00x of the minimum, limit 1.00x" in shown.out
    assert "SKIP  bandwidth at 16 384 x 4 096" in shown.out
    assert "no GPU was found" in shown.out
    assert last_line(shown.out) == "Next: tritonlab start track1/copy"
    assert records()[-1]["verdict"] == "PASSED"
    assert records()[-1]["cases"] == {"total": 7, "passed": 6, "skipped": 1}


def test_a_caret_stays_under_its_place(run, judge):
    seen = "Python cannot parse line 3, column 9: '(' was never closed.\nrow = f(x\n       ^"
    judge((CaseResult("the file", Kind.CORRECTNESS, Verdict.FAILED, (Finding("P02", seen),)),))
    run("start", "softmax")

    shown, plain = run("grade"), run("grade", "--plain")

    lines = shown.out.splitlines()
    quoted = next(n for n, line in enumerate(lines) if "row = f(x" in line)
    assert lines[quoted].index("(") == lines[quoted + 1].index("^")
    assert "column 9: '(' was never closed.\nrow = f(x\nHint" in plain.out


def test_many_checks_that_were_not_run_share_one_paragraph(run, judge):
    reason = "not run: a case before it did not end normally"
    judge((CaseResult("the loop", Kind.EDGE, Verdict.FAILED, (Finding("R02", "Too long."),)), *(
        CaseResult(f"case {n}", Kind.EDGE, Verdict.SKIPPED, reason=reason) for n in range(20))))
    run("start", "softmax")

    shown, listed = run("grade"), run("grade", "--verbose")

    assert "case 0" not in shown.out
    assert listed.out.count("not run:") == 1
    assert "case 0 · case 1" in listed.out


def test_a_failure_explains_the_first_and_counts_the_others(run, judge):
    judge(toy.FAILING)
    run("start", "softmax")

    shown = run("grade")

    assert shown.code == 1
    verdict, first, *_ = shown.out.splitlines()
    assert verdict == "FAILED  track1/softmax  graded in 0.4 s."
    assert first == "4 rows of 127 columns  (wrong-values)"
    assert shown.out.count("Padding took part") == 1
    assert "More checks failed: every other row of a larger matrix; rows sum to one." \
        in " ".join(shown.out.split())
    assert len(shown.out.splitlines()) <= 12
    assert "`tritonlab hint track1/softmax --todo 2`" in shown.out
    assert last_line(shown.out) == \
        f"Edit {KERNEL}, then type: tritonlab grade"
    assert (records()[-1]["codes"], records()[-1]["todos"]) == (["N01"], [2])


@pytest.mark.parametrize("width", ["60", "80", "100", "200"])
def test_a_report_fits_the_terminal(run, judge, monkeypatch, width):
    judge(toy.FAILING, output="a very long line " * 30)
    run("start", "softmax")
    monkeypatch.setenv("COLUMNS", width)

    shown = run("grade")

    command = last_line(shown.out)
    lines = [line for line in shown.out.splitlines() if line != command]
    assert max(map(len, lines)) <= min(int(width), 100)


def test_many_checks_that_ended_alike_share_a_paragraph(run, judge):
    many = [toy.case(f"case {n}") for n in range(40)]
    judge((*many, toy.case("past 2**31", Verdict.FAILED, finding=toy.WRONG, advisory=True)))
    run("start", "softmax")

    shown, plain = run("grade", "--verbose"), run("grade", "--plain", "--verbose")

    assert shown.code == 0
    assert "PASS  case 0 · case 1 · case 2" in shown.out
    assert "NOTE  past 2**31 (does not affect the verdict)" in shown.out
    assert len(shown.out.splitlines()) < 20
    assert plain.out.count("Correctness: PASS case") == 40


def test_a_function_that_is_not_written_yet_takes_one_line(run, judge):
    later = Finding("R01", "The function raised NotImplementedError.", means=NOT_WRITTEN,
                    function="glu")
    judge((toy.case("poly: 1"), *(toy.case(f"glu: {n}", Verdict.FAILED, finding=later)
                                  for n in range(30)), toy.case("swish: 1")))
    run("start", "softmax")

    shown, plain = run("grade"), run("grade", "--plain", "--verbose")

    assert "More checks failed: glu: not written yet (29 checks)." in shown.out
    assert "FAIL glu: not written yet (30 checks)" in plain.out
    assert plain.out.count(": FAIL") == 1


def test_a_diagnosis_has_at_most_six_lines(run, judge):
    judge(toy.FAILING)
    run("start", "softmax")

    lines = run("grade").out.splitlines()

    end = next(n for n, line in enumerate(lines) if line.startswith("  Others"))
    assert lines[1].startswith("4 rows of 127 columns")
    assert end - 1 <= 6


def test_many_checks_that_passed_are_counted_and_what_says_more_is_named(run, judge):
    many = tuple(toy.case(f"case {n}") for n in range(40))
    note = toy.case("past 2**31", Verdict.FAILED, finding=toy.WRONG, advisory=True)
    judge((*many, note, *toy.PASSING))
    run("start", "softmax")

    shown, plain = run("grade"), run("grade", "--plain")

    for said in (shown.out, plain.out):
        assert "case 1" not in said
        assert "46 of 47 checks passed, 1 skipped" in said
        assert "past 2**31 (does not affect the verdict)" in said
        assert "traffic 1.00x of the minimum, limit 1.00x" in said
        assert "no GPU was found" in said


def test_verbose_lists_all_checks_below_the_verdict_with_figures_beside_limits(run, judge):
    judge((*(toy.case(f"case {n}") for n in range(40)), *toy.FAILING))
    run("start", "softmax")

    shown = run("grade", "--verbose")

    assert shown.out.startswith("FAILED")
    assert re.search("Correctness +41 of 42 passed", shown.out)
    assert "case 0 · case 1" in shown.out
    assert "traffic 1.31x of the minimum, limit 1.00x" in shown.out
    assert shown.out.index("Others") < shown.out.index("Edge cases")


def test_a_first_pass_says_what_was_learned_and_what_is_worth_typing(run, judge):
    judge(toy.PASSING)
    run("start", "softmax")

    first, again = run("grade"), run("grade")

    for command in ("tritonlab bench:", "tritonlab read --answers:", "tritonlab solution:"):
        assert command in first.out
    assert "Learned   do it" in first.out
    assert "Learned" not in again.out
    assert run("grade", "--seed", "00ff").out.count("tritonlab solution") == 0


@pytest.mark.parametrize(("share", "said"), [
    (0.93, "93 % of copy speed on the H100, 75 % is required; stretch goal 88 %, reached by the"),
    (0.80, "80 % of copy speed on the H100, 75 % is required; stretch goal 88 %, not reached by"),
])
def test_a_pass_without_a_gpu_says_how_far_the_stretch_goal_is(run, judge, share, said):
    figures = {"ms": 0.2, "share": share, "of": "copy", "target": "H100", "pass_at": 0.75,
               "stretch": 0.88}
    judge((*toy.PASSING[:-1], replace(toy.PASSING[-1], predicted=figures)))
    run("start", "softmax")

    shown = run("grade", "--plain")

    assert f"predicted {said}" in shown.out
    assert "SKIP" not in shown.out


def test_a_pass_on_a_gpu_says_how_fast_it_was(run, judge):
    timed = replace(toy.TIMED, facts=toy.TIMED.facts | {"stretch goal": "88%, reached"})
    judge((*toy.FAST[:-1], timed), **toy.ON_GPU)
    run("start", "softmax")

    shown = run("grade", "--plain")

    assert "Speed: 16 384 x 4 096 floats: 3.85 TB/s, 90 %" in shown.out
    assert "spread 3 %; stretch goal 88%, reached" in shown.out


@pytest.mark.parametrize("width", [50, 60, 80, 100])
def test_a_title_that_is_too_long_wraps_below_itself_and_the_time_stays_right(
    run, course_root, monkeypatch, width
):
    toy.write_module(course_root, "missing-elements", "04-norm", "A norm of " + "many words " * 9)
    monkeypatch.setenv("COLUMNS", str(width))

    lines = run("list").out.splitlines()

    first = next(number for number, line in enumerate(lines) if "track1/norm" in line)
    assert lines[first].endswith("  1.5 h")
    assert len(lines[first]) == width
    column = lines[first].index("A norm")
    assert lines[first + 1].startswith(" " * column)
    assert not lines[first + 1][column].isspace()
    assert max(map(len, lines)) <= width


def test_the_list_says_what_its_words_mean(run):
    assert "PASS: passed. OPEN: begun, not passed yet. WAIT: not begun yet." in run("list").out


def test_plain_is_one_fact_a_line_without_decoration(run, judge):
    judge(toy.FAILING)
    run("start", "softmax", "--plain")

    shown, listed = run("grade", "--plain"), run("grade", "--plain", "--verbose")

    assert "Correctness: PASS 4 rows of 128 columns" in listed.out
    assert "Performance: 64 x 1024 floats: traffic 1.31x of the minimum, limit 1.00x" in listed.out
    assert all(line == line.strip() and line for line in shown.out.splitlines())
    assert "\x1b" not in shown.out
    assert shown.out.isascii()


def test_grade_as_json(run, judge):
    judge(toy.FAILING)
    run("start", "softmax")

    shown = run("grade", "--json")
    data = json.loads(shown.out)

    assert shown.code == 1
    assert (data["module"], data["verdict"], data["saved"]) == ("track1/softmax", "FAILED", True)
    assert data["next"] == "tritonlab grade"
    finding = data["results"][1]["findings"][0]
    assert (finding["code"], finding["name"]) == ("N01", "wrong-values")


def test_grade_without_an_id_takes_the_last_started_or_graded(run, judge):
    judge(toy.PASSING)
    run("start", "softmax")
    run("start", "copy")

    assert run("grade").out.split()[1].startswith("track1/copy")
    assert run("grade", "1.3").out.split()[1].startswith("track1/softmax")
    assert run("grade").out.split()[1].startswith("track1/softmax")


@pytest.mark.parametrize(("path", "recorded"), [
    (KERNEL, True), (Path("link.py"), True), (KERNEL.with_name("attempt.py"), False),
    (Path("elsewhere/kernel.py"), False),
    (Path("tritonlab-workspace/track1/copy/kernel.py"), False),
], ids=["the exercise", "a link to it", "another file beside it", "elsewhere", "another exercise"])
def test_only_the_exercise_of_the_workspace_is_recorded(run, judge, home, path, recorded):
    judge(toy.PASSING)
    run("start", "copy")
    run("start", "softmax")
    (home / "elsewhere").mkdir()
    for other in (KERNEL.with_name("attempt.py"), Path("elsewhere/kernel.py")):
        other.write_text("another")
    Path("link.py").symlink_to(KERNEL)
    kept = home / "tritonlab-workspace" / ".tritonlab" / "passed"

    shown = run("grade", str(path), "--module", "softmax")
    data = json.loads(run("grade", str(path), "--module", "softmax", "--json").out)

    assert (shown.code, data["saved"], kept.exists()) == (0, recorded, recorded)
    assert (records()[-1]["event"] == "graded") == recorded
    assert (f"{path} is not the exercise of this workspace" in shown.err) == (not recorded)


def test_grade_takes_any_file_with_a_module(run, judge, home):
    judge(toy.FAILING)
    run("start", "copy")
    (home / "mine.py").write_text("x")

    shown = run("grade", "mine.py", "--module", "softmax")

    assert shown.code == 1
    assert last_line(shown.out).endswith("tritonlab grade mine.py --module track1/softmax")


def test_a_grade_outside_a_workspace_says_that_nothing_was_saved(run, judge, home):
    judge(toy.PASSING)
    (home / "mine.py").write_text("x")

    shown = run("grade", "mine.py", "--module", "softmax")

    assert shown.code == 0
    assert "PASSED" in shown.out
    assert "The result was not saved: there is no workspace here." in shown.err


def test_what_the_learner_printed_is_shown_short_and_harmless(run, judge):
    judge(toy.PASSING, output="\x1b[31mred\x07\n" + "\n".join(f"line {n}" for n in range(100)))
    run("start", "softmax")

    shown = run("grade")

    assert "\x1b" not in shown.out
    assert "\x07" not in shown.out
    assert "line 99" in shown.out
    assert "… 95 lines left out …" in shown.out
    assert "line 50" not in shown.out


@pytest.mark.parametrize(("isolation", "line"), [
    (Isolation(privileged=True), "The sandbox of this machine reaches tier 0 of 2: separate "
     "processes with limits only, as root. Grade only code that you trust here; `tritonlab doctor` "
     "names what would close it."),
    (Isolation(0, True), "The sandbox of this machine reaches tier 1 of 2: seccomp, unprivileged "
     "user; without landlock. Grade only code that you trust here; `tritonlab doctor` names what "
     "would close it."),
    (Isolation(7, True), None)], ids=["tier 0", "tier 1", "tier 2"])
def test_a_sandbox_that_lacks_a_measure_is_named_below_the_verdict(run, judge, isolation, line):
    judge(toy.FAILING, isolation=isolation.describe())
    run("start", "softmax")

    shown = run("grade", "--plain")

    assert (shown.out.splitlines()[1] == line) is (line is not None)
    assert ("sandbox" in shown.out) is (line is not None)


def test_a_broken_grader_is_exit_code_3_and_not_the_kernel_s_fault(run, judge):
    judge((toy.case("4 rows of 128 columns"),), reason="the executor did not start")
    run("start", "softmax")

    shown = run("grade")

    assert shown.code == 3
    assert "The grader could not go on: the executor did not start" in shown.out
    assert "This is about the grader, not about your kernel." in shown.out


def test_the_grader_s_traceback_goes_to_a_file(run, judge):
    judge((), reason="The zygote ended. Traceback (most recent call last):\n  File x, line 1")
    run("start", "softmax")

    shown = run("grade")

    assert shown.code == 3
    assert "Traceback" not in shown.out + shown.err
    [file] = JOURNAL.parent.glob("traceback-*.txt")
    assert "File x, line 1" in file.read_text()
    assert file.name in shown.out.replace("\n", "")


def test_a_skip_never_counts_as_a_pass(run, judge):
    judge((toy.case("bandwidth", Verdict.SKIPPED, reason="no GPU was found"),))
    run("start", "softmax")

    assert run("grade").code == 1


# ------------------------------------------------------------ grade --case, --seed


REPLAY = "--case '4 rows of 127' --seed 00ff"
ALONE = (replace(toy.FAILING[1], replay=REPLAY, details=Details(
    ("x: float32, 4 x 127, strides 127, 1",), ("softmax_kernel[4], line 9: n_cols = 127",),
    (("[0, 0]", "0.25", "0.5"), ("[0, 12]", "-1", "0.125")))),)


@pytest.mark.parametrize(("results", "says"), [
    (toy.BLANKS, "nothing was run"), (toy.FAILING[1:2], "graded in"),
], ids=["a file that cannot be run", "one check"])
def test_only_of_a_file_that_cannot_be_run_nothing_was_run(run, judge, results, says):
    judge(results)
    run("start", "softmax")

    assert f"track1/softmax  {says}" in run("grade").out


def test_a_failure_shows_no_count_that_other_inputs_may_change(run, judge):
    run("start", "softmax")
    more = replace(toy.FAILING[2], name="sizes drawn anew")
    shown = []
    for results in (toy.FAILING, (*toy.FAILING, more), (*toy.FAILING, replace(
            more, verdict=Verdict.PASSED, findings=()))):
        judge(results)
        shown.append(run("grade", "--plain").out.splitlines())

    assert {lines[0] for lines in shown} == {"FAILED track1/softmax graded in 0.4 s."}
    assert not any(re.search(r"\d+ (more )?checks", line) for lines in shown for line in lines)


def test_a_failure_shows_the_one_command_that_repeats_it(run, judge):
    judge((toy.FAILING[0], replace(toy.FAILING[1], replay=REPLAY),
           replace(toy.FAILING[2], replay="--case other --seed 00ff")))
    run("start", "softmax")

    shown, plain = run("grade"), run("grade", "--plain")
    data = json.loads(run("grade", "--json").out)

    assert f"  Repeat  tritonlab grade track1/softmax {REPLAY}\n" in shown.out
    assert f"Repeat: tritonlab grade track1/softmax {REPLAY}\n" in plain.out
    assert shown.out.count("--case") == 1
    assert [result["replay"] for result in data["results"]] == [
        "", f"tritonlab grade track1/softmax {REPLAY}",
        "tritonlab grade track1/softmax --case other --seed 00ff"]


def test_the_command_names_file_and_module_where_they_cannot_be_known(run, judge, home):
    judge(ALONE)
    (home / "mine.py").write_text("x")
    run("start", "softmax")
    run("start", "copy")

    other, named = run("grade", "mine.py", "--module", "softmax"), run("grade", "softmax")

    assert f"tritonlab grade mine.py --module track1/softmax {REPLAY}" in other.out
    assert f"Repeat  tritonlab grade track1/softmax {REPLAY}" in named.out  # whatever follows


def test_inside_a_modules_folder_that_module_is_meant(run, judge, home, monkeypatch):
    judge(ALONE)
    run("start", "softmax")
    run("start", "copy")
    monkeypatch.chdir(home / KERNEL.parent)

    shown, whole = run("grade", "--case", "4 rows of 127"), run("grade")
    hint, status, other = run("hint"), run("status"), run("grade", "copy")

    assert "track1/softmax" in shown.out
    assert last_line(shown.out).strip().endswith(f"tritonlab grade {REPLAY}")
    assert f"Repeat  tritonlab grade {REPLAY}\n" in whole.out
    assert hint.out.startswith("track1/softmax")
    assert "Current module: track1/softmax" in status.out
    assert f"Repeat  tritonlab grade track1/copy {REPLAY}\n" in other.out
    assert last_line(other.out).strip() == "tritonlab grade track1/copy"
    assert "tritonlab grade track1/copy" in run("start", "copy").out


def test_a_case_alone_is_shown_in_detail_and_not_recorded(run, judge):
    judge(ALONE)
    run("start", "softmax")

    shown = run("grade", "--case", "4 rows of 127", "--seed", "00FF")
    plain = run("grade", "--case", "4 rows of 127", "--plain")

    assert (shown.code, shown.err) == (1, "")
    for text in ("x: float32, 4 x 127, strides 127, 1", "softmax_kernel[4], line 9",
                 "\n    n_cols = 127\n", "  element    got   expected\n",
                 "   [0, 0]   0.25        0.5\n", "  [0, 12]     -1      0.125\n",
                 "graded in 0.4 s.\nNothing is recorded: a single case is not"):
        assert text in shown.out
    assert last_line(shown.out).strip().endswith(f"tritonlab grade track1/softmax {REPLAY}")
    assert shown.out.count("--case") == 1
    for line in ("input x: float32, 4 x 127, strides 127, 1",
                 "[0, 12]: got -1, expected 0.125"):
        assert line in plain.out.splitlines()
    assert [record["event"] for record in records()] == ["started"]


def test_a_case_alone_whose_launches_do_not_compile_is_repeated_by_its_own_name(run, judge):
    judge((toy.FAILING[0], replace(toy.FAILING[1], name="every launch compiles", replay="")))
    run("start", "softmax")

    shown = run("grade", "--case", "4 rows of 127")

    assert last_line(shown.out).strip().startswith("tritonlab grade track1/softmax --case ")


@pytest.mark.parametrize("words", [["--case", "4 rows of 128"], ["--seed", "00ff"]], ids=str)
def test_a_partial_pass_is_no_evidence_and_leads_to_the_whole(run, judge, words):
    judge(toy.PASSING[:1])
    run("start", "softmax")

    shown = run("grade", *words)
    data = json.loads(run("grade", *words, "--json").out)

    assert shown.code == 0
    assert "Nothing is recorded: " in shown.out
    assert "Evidence" not in shown.out
    assert last_line(shown.out) == \
        "Then all cases, with new inputs: tritonlab grade track1/softmax"
    assert (data["saved"], data["not_saved"], data["evidence"]) == (False, "", "")
    assert [record["event"] for record in records()] == ["started"]
    assert "OPEN  track1/softmax  started, not graded yet" in run("status").out


@pytest.mark.parametrize(("error", "message"), [
    (UnknownCase("4 rwos", ["4 rows of 128 columns", "one row"]),
     "No case of track1/softmax is called '4 rwos'. The nearest: \"4 rows of 128 columns\"; "
     "\"one row\". `tritonlab grade track1/softmax --verbose` lists all of them."),
    (UnknownCase("zzz", []), "No case of track1/softmax is called 'zzz'. "
                             "`tritonlab grade track1/softmax --verbose` lists all of them."),
    (UnknownCase("row", ["one row", "two rows"], 2),
     "2 cases of track1/softmax match 'row': \"one row\"; \"two rows\". "
     "Type more of the name."),
    (UnknownCase("row", ["one row", "two rows"], 9),
     "9 cases of track1/softmax match 'row': such as \"one row\"; \"two rows\". "
     "Type more of the name."),
    (UnknownCase("every launch compiles for the NVIDIA H100", []),
     "'every launch compiles for the NVIDIA H100' is not a separate case: it applies to every case "
     "that launches a kernel, together with the case's values. Name one of these, or grade all: "
     "`tritonlab grade track1/softmax`."),
], ids=["near", "nothing near", "two", "many", "the compile check"])
def test_a_case_that_is_not_known_is_one_sentence_and_exit_code_2(run, judge, error, message):
    judge(error)
    run("start", "softmax")

    shown = run("grade", "--case", error.wanted)

    assert (shown.code, shown.out, shown.err) == (2, "", message + "\n")


@pytest.mark.parametrize("seed", ["xyz", "", "0x1f", "a" * 65, "1 2", "-1"])
def test_a_seed_is_hexadecimal(run, judge, seed):
    judge(toy.PASSING)
    run("start", "softmax")

    shown = run("grade", f"--seed={seed}")

    assert (shown.code, shown.out) == (2, "")
    assert shown.err == (f"'{seed}' is not a seed: a seed has 1 to 64 hexadecimal digits. "
                         "Copy it from the line of the report that begins with Repeat.\n")


def test_a_failure_names_its_hint_and_the_rung(run, judge):
    judge(toy.FAILING)
    run("start", "softmax")
    command = "`tritonlab hint track1/softmax --todo 2`"

    shown = []
    for _ in range(4):
        shown.append(run("grade").out)
        data = json.loads(run("grade", "--json").out)["hint"]
        run("hint")

    assert f'{command} shows hint 1 of 3 on "Addressing".' in shown[0]
    assert f'{command} shows hint 2 of 3 on "Addressing".' in shown[1]
    assert f'{command} shows hint 3 of 3 on "Addressing" again.' in shown[3]
    assert data == {"command": command.strip("`"), "group": "B", "title": "Addressing", "rung": 3,
                    "of": 3, "repeated": True}


# ------------------------------------------------------------ what is saved


def test_an_unwritable_record_still_shows_the_verdict(run, judge):
    judge(toy.PASSING)
    run("start", "softmax")
    JOURNAL.rename(JOURNAL.with_name("moved"))
    JOURNAL.symlink_to("moved")

    shown = run("grade", "softmax")
    without_id = run("grade")

    assert shown.code == 3
    assert "PASSED" in shown.out
    assert shown.err.startswith("The result was not saved: a file of the record is a symbolic link")
    assert shown.err.count("\n") == 1
    assert (without_id.code, without_id.out) == (3, "")
    assert without_id.err.startswith("The journal cannot be read")


def test_a_full_disk_shows_the_verdict_and_exits_with_3(run, judge, small_disk, monkeypatch):
    judge(toy.PASSING)
    with small_disk() as disk:
        monkeypatch.setenv("TRITONLAB_WORKSPACE", str(disk))
        run("start", "softmax")
        for filler in range(100):
            with contextlib.suppress(OSError):
                (disk / f"filler{filler}").write_bytes(b"x" * 1024)

        shown = run("grade")
        while shown.code == 0:  # the journal's last block has room for a few records yet
            assert "The journal is safe, but certificate.json beside it is out of date" in shown.err
            shown = run("grade")

        assert shown.code == 3
        assert "PASSED" in shown.out
        assert shown.err == (f"The result was not saved: no space is left on the disk "
                             f"({disk}/.tritonlab). Free some space, then repeat the command.\n")
        assert run("list").code == 0


def test_a_read_only_disk_shows_the_verdict_and_exits_with_3(run, judge, small_disk, monkeypatch):
    judge(toy.FAILING)
    with small_disk("1m") as disk:
        monkeypatch.setenv("TRITONLAB_WORKSPACE", str(disk))
        run("start", "softmax")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)

        shown, started, listed = run("grade"), run("start", "copy"), run("list")

        assert (shown.code, started.code, listed.code) == (3, 3, 0)
        assert "FAILED" in shown.out
        assert shown.err.startswith("The result was not saved: the file system is read-only")
        assert started.err.startswith("The exercise was not saved: the file system is read-only")


def test_a_damaged_journal_loses_one_record_and_says_so(run, judge):
    judge(toy.PASSING)
    run("start", "softmax")
    run("grade")
    content = bytearray(JOURNAL.read_bytes())
    content[20] ^= 1
    JOURNAL.write_bytes(content)

    shown = run("list")

    assert shown.code == 0
    assert "PASS  track1/softmax" in shown.out
    assert shown.err == "Line 1 of the journal is damaged; only that record is lost.\n"


def test_two_graders_at_once_both_record(home, judge, run):
    run("start", "softmax")
    code = ("import sys; sys.path.insert(0, {root!r})\n"
            "import grader\nfrom tests.support import toy\n"
            "vars(grader)['grade'] = lambda kernel, suite, **k: "
            "toy.report(toy.PASSING, kernel, suite.sha256)\n"
            "from tritonlab.cli import app; sys.argv = ['tritonlab', 'grade']; app.main()")
    script = code.format(root=str(Path(toy.__file__).parents[3]))

    both = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL)
            for _ in range(2)]

    assert [process.wait(60) for process in both] == [0, 0]
    assert [record["seq"] for record in records()] == [1, 2, 3]


# ------------------------------------------------------------ certificate, hint


def test_the_certificate_is_shown_and_written(run, judge):
    judge(toy.PASSING)
    run("start", "softmax")
    run("grade")

    shown = run("certificate", "--name", "Ada  Lovelace")

    assert shown.code == 0
    assert "Name: Ada Lovelace" in shown.out
    assert "PASS  track1/softmax  6 of 7 checks passed, 1 skipped, evidence: correct" in shown.out
    data = json.loads(run("certificate", "--json").out)
    assert data == json.loads(JOURNAL.with_name("certificate.json").read_text())
    assert (data["name"], data["totals"]["core"]["passed"]) == ("Ada Lovelace", 1)


def test_the_certificate_survives_its_own_damage(run, judge):
    judge(toy.PASSING)
    run("start", "softmax")
    run("grade")
    JOURNAL.with_name("certificate.json").write_text("{")

    shown = run("certificate")

    assert (shown.code, shown.err) == (0, "")
    assert list(JOURNAL.parent.glob("certificate.json.damaged-*"))


def test_hints_climb_the_ladder_of_what_failed_last(run, judge):
    judge(toy.FAILING)
    run("start", "softmax")
    run("grade")

    texts = [run("hint").out for _ in range(4)]

    assert "Hint 1 of 3: Which row?" in texts[0]
    assert "(TODO 2, 3, which share their hints)" in texts[0]
    assert last_line(texts[0]) == "Next: tritonlab hint track1/softmax --todo 2"
    assert "Hint 2 of 3: A stride." in texts[1]
    assert "Hint 3 of 3: Base plus row." in texts[2]
    assert "it is shown again" in texts[3]
    assert [r["rung"] for r in records() if r["event"] == "hint"] == [1, 2, 3]


def test_a_hint_for_a_todo(run):
    run("start", "softmax")

    shown = run("hint", "softmax", "--todo", "1")

    assert "Setup (TODO 1)" in shown.out
    assert run("hint", "--todo", "1", "--json").out.count('"rung": 2') == 1
    wrong = run("hint", "--todo", "9")
    assert (wrong.code, wrong.err) == (
        2, "track1/softmax has no TODO 9. They go from 1 to 3. "
           "`tritonlab hint track1/softmax` chooses one for you.\n")


CODE_HINT = '''"""One range of rows:

```python
rows = tl.arange(0, 64)
half = rows // 2  # {long}
```
Every row once."""'''


@pytest.mark.parametrize(("options", "expected"), [
    ((), """Hint 3 of 3: One range of rows:

    rows = tl.arange(0, 64)
    half = rows // 2  # {long}

             Every row once.
"""),
    (("--plain",), """Hint 3 of 3: One range of rows:
rows = tl.arange(0, 64)
half = rows // 2  # {long}
Every row once.
""")])
def test_code_in_a_hint_is_printed_as_it_is(run, course_root, options, expected):
    long = "as long as a line can be " * 4 + "long"
    module = course_root / "tracks/missing-elements/03-softmax/module.toml"
    module.write_text(module.read_text().replace('"Base plus row."', CODE_HINT.format(long=long)))
    run("start", "softmax")

    shown = [run("hint", "--todo", "2", *options).out for _ in range(3)][-1]

    assert expected.format(long=long) in shown


def test_hints_are_chosen_by_the_function_that_failed(run, judge, course_root):
    module = course_root / "tracks/missing-elements/03-softmax/module.toml"
    module.write_text(module.read_text().replace("todos = [1]", 'functions = ["glu", "swish"]'))
    finding = replace(toy.WRONG, where="", todos=(), function="swish", next_step="Fix it.")
    judge((toy.case("swish: 4 rows", Verdict.FAILED, finding=finding),))
    run("start", "softmax")

    graded = run("grade")
    hinted = run("hint")
    other, titled = run("hint", "--function", "GLU"), run("hint", "--function", "setup")
    wrong = run("hint", "--function", "relu")

    assert ('Fix it. `tritonlab hint track1/softmax --function swish` shows hint 1 of 3 on '
            '"Setup".') in " ".join(graded.out.split())
    assert "Hint 1 of 3: What is missing?" in hinted.out
    assert "Hint 2 of 3: A decorator." in other.out
    assert "Hint 3 of 3: " in titled.out  # by the group's title, such as DIAGNOSES
    assert last_line(hinted.out) == "Next: tritonlab hint track1/softmax --function glu"
    assert (wrong.code, wrong.err) == (
        2, "track1/softmax has no hints for 'relu'. There are hints for glu, swish. "
           "`tritonlab hint track1/softmax` chooses one for you.\n")


def test_hints_go_on_with_the_next_group_for_the_same_function(run, judge, course_root):
    module = course_root / "tracks/missing-elements/03-softmax/module.toml"
    text = module.read_text().replace("todos = [1]", 'functions = ["swish"]')
    module.write_text(text.replace("todos = [2, 3]", 'functions = ["swish"]'))
    finding = replace(toy.WRONG, where="", todos=(), function="swish", next_step="Fix it.")
    judge((toy.case("swish: 4 rows", Verdict.FAILED, finding=finding),))
    run("start", "softmax")
    run("grade")

    hinted = [run("hint").out for _ in range(3)]
    graded = run("grade")
    later = [run("hint", "--function", "swish").out for _ in range(4)]
    titled = run("hint", "--function", "Setup")

    assert "Hint 3 of 3: One line." in hinted[2]
    assert 'shows hint 1 of 3 on "Addressing".' in " ".join(graded.out.split())
    assert "Hint 1 of 3: Which row?" in later[0]
    assert "Hint 3 of 3: Base plus row." in later[3]
    assert "Hint 3 of 3: One line." in titled.out


# ------------------------------------------------------------ tour


@pytest.fixture
def tour_judge(monkeypatch):
    """A grader that sees blanks, the typical mistake and the solution for what they are."""

    class Box:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    def grade(kernel, suite, **_):
        text = kernel.read_text()
        results = toy.BLANKS if "..." in text else toy.FAILING if "wrong" in text else toy.PASSING
        return toy.report(results, kernel, suite.sha256)

    monkeypatch.setitem(vars(grader), "grade", grade)
    monkeypatch.setitem(vars(grader), "Sandbox", Box)


def test_hints_are_offered_by_a_name_of_the_exercise_and_not_of_the_tests(run, judge, course_root):
    folder = course_root / "tracks/missing-elements/03-softmax"
    with (folder / "kernel.py").open("a") as exercise:
        exercise.write("\n\ndef swish(x):\n    return x\n")
    module = folder / "module.toml"
    module.write_text(module.read_text().replace("todos = [1]",
                                                 'functions = ["swish", "driver"]'))
    finding = replace(toy.WRONG, where="", todos=(), function="driver", next_step="Fix it.")
    judge((toy.case("driver: 4 rows", Verdict.FAILED, finding=finding),))
    run("start", "softmax")

    graded = run("grade")

    assert "`tritonlab hint track1/softmax --function swish`" in " ".join(graded.out.split())


def test_the_tour_shows_every_step_and_leaves_nothing(run, home, tour_judge):
    shown = run("tour")

    assert shown.code == 0, shown.out
    for text in ("1. Start a module", "1 of 1 blanks left", "Padding took part",
                 "4. Get it right", "track1/softmax is passed, evidence: correct."):
        assert text in shown.out
    assert last_line(shown.out) == "Next: tritonlab start track1/copy"
    assert list(home.iterdir()) == []


def test_the_tour_fails_when_a_step_does_not_end_as_it_must(run, tour_judge, judge):
    judge(toy.PASSING)

    data = json.loads(run("tour", "--json").out)
    shown = run("tour")

    assert [step["ok"] for step in data["steps"]] == [True, False, False, True, True]
    assert (data["ok"], shown.code) == (False, 3)
    assert "Not as expected: the grade fails with P01" in shown.out


# ------------------------------------------------------------ python kernel.py


def test_running_an_exercise_grades_its_public_cases_and_records_nothing(run, judge, capsys):
    judge(toy.PASSING)
    run("start", "softmax")

    with pytest.raises(SystemExit) as ended:
        tritonlab.run_public_cases(str(KERNEL))

    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert "6 of 7 public checks passed, 1 skipped, in 0.4 s." in out
    assert "Nothing is recorded." in out
    assert last_line(out) == "Then the hidden tests too: tritonlab grade"
    assert [record["event"] for record in records()] == ["started"]


def test_what_a_kernel_prints_is_shown_with_its_case_and_cut(run, judge, capsys):
    lines = [f"({n}, 0, 0)  x: [{n}.]" for n in range(20)]
    judge(toy.FAILING, printed=tuple(lines), printed_in="two rows")
    run("start", "softmax")

    with pytest.raises(SystemExit):
        tritonlab.run_public_cases(str(KERNEL))

    out = capsys.readouterr().out
    assert "Printed by your kernel, two rows\n  (0, 0, 0)  x: [0.]\n" in out
    assert "(11, 0, 0)  x: [11.]\n  … more lines follow" in out
    assert "(12, 0, 0)" not in out


def test_running_an_exercise_in_the_course_itself(home, judge, course_root, capsys):
    judge(toy.FAILING)
    file = course_root / "tracks/missing-elements/03-softmax/kernel.py"

    with pytest.raises(SystemExit) as ended:
        tritonlab.run_public_cases(str(file))

    assert ended.value.code == 1
    assert capsys.readouterr().out.split()[1].startswith("track1/softmax")


# ------------------------------------------------------------ bad input


@pytest.mark.parametrize(("words", "message"), [
    (["grade"], "There is no workspace at tritonlab-workspace. "
                "`tritonlab start track1/copy` creates one."),
    (["grade", "softmax"], "There is no workspace at tritonlab-workspace. "
                           "`tritonlab start track1/softmax` creates one."),
    (["certificate"], "There is no workspace at tritonlab-workspace. "
                      "`tritonlab start track1/copy` creates one."),
    (["start", "sofmax"], "No module is called 'sofmax'. Did you mean track1/softmax? "
                          "`tritonlab list` shows all."),
    (["grade", "sofmax"], "No module is called 'sofmax'. Did you mean track1/softmax? "
                          "`tritonlab list` shows all."),
    (["grade", "nothing.py"], "There is no file at nothing.py. "
                              "Check the path, then repeat the command."),
    (["grade", "."], ". is a folder. Name the file in it, such as kernel.py."),
])
def test_bad_input_is_one_sentence_and_exit_code_2(run, words, message):
    shown = run(*words)

    assert (shown.code, shown.out, shown.err) == (2, "", message + "\n")


def test_an_exercise_that_was_deleted_can_be_made_anew(run):
    run("start", "softmax")
    KERNEL.unlink()

    shown = run("grade")

    assert shown.code == 2
    assert shown.err == f"There is no file at {KERNEL}. `tritonlab start track1/softmax` " \
                        "creates a fresh one.\n"


@pytest.mark.parametrize("verb", ["grade", "start"])
@pytest.mark.parametrize(("put", "says"), [
    (lambda path: path.mkdir(), "is a folder. Move it away. "),
    (lambda path: path.symlink_to(path.name), "is a symbolic link that points back to itself. "
                                              "Remove the link. "),
], ids=["folder", "loop"])
def test_what_lies_where_the_exercise_should_is_named_with_the_next_step(run, verb, put, says):
    run("start", "softmax")
    KERNEL.unlink()
    put(KERNEL)

    shown = run(verb, "softmax")

    assert (shown.code, shown.err) == (
        2, f"{KERNEL} {says}`tritonlab start track1/softmax` creates a fresh one.\n")


@pytest.mark.parametrize("words", [["grade"], ["start", "softmax"]], ids=" ".join)
@pytest.mark.parametrize(("put", "kind"), [
    (lambda path: path.write_text("x"), "a file"),
    (lambda path: path.symlink_to("nowhere"), "a link that does not point to a folder"),
], ids=["file", "link"])
def test_a_workspace_whose_records_are_no_folder_says_so(run, home, words, put, kind):
    put(home / ".tritonlab")

    shown = run(*words)

    assert (shown.code, shown.err) == (
        2, f".tritonlab is {kind}; a workspace keeps its records in a folder of that name. "
           "Move it away, then repeat the command.\n")


def test_a_file_of_no_module_asks_for_one(run, home):
    (home / "mine.py").write_text("x")

    shown = run("grade", "mine.py")

    assert (shown.code, shown.err) == (
        2, "mine.py is not in the folder of a module. Name its module with `--module ID`.\n")


@pytest.mark.parametrize("words", [["grad"], ["list", "--colour"], ["start"]])
def test_a_wrong_command_line_is_exit_code_2(run, words):
    shown = run(*words)

    assert (shown.code, shown.out) == (2, "")
    assert "Usage:" in shown.err


def test_a_current_folder_that_is_gone_is_said(run, home):
    home.rmdir()

    shown = run("list")

    assert (shown.code, shown.err) == (2, "The current folder is gone or cannot be read. "
                                          "Go to another folder, then repeat the command.\n")


def test_no_verb_shows_the_help(run):
    shown = run()

    assert "Usage: tritonlab" in shown.out + shown.err
    assert "certificate" in shown.out + shown.err


def test_version_and_help(run):
    assert run("--version").out == f"tritonlab {tritonlab.__version__}\n"
    assert "certificate" in run("--help").out


def test_a_mistake_of_ours_is_one_sentence_and_a_file(run, judge):
    judge(ZeroDivisionError("a bug"))
    run("start", "softmax")

    shown = run("grade")

    assert shown.code == 3
    assert shown.err.startswith("tritonlab itself failed (ZeroDivisionError); your work is ")
    assert shown.err.count("\n") == 1
    [file] = JOURNAL.parent.glob("traceback-*.txt")
    assert "ZeroDivisionError: a bug" in file.read_text()
    assert len(records()) == 1


def test_ctrl_c_says_that_nothing_was_recorded(run, judge):
    judge(KeyboardInterrupt())
    run("start", "softmax")

    shown = run("grade")

    assert (shown.code, shown.err.strip()) == (130, "Stopped. Nothing was recorded.")
    assert len(records()) == 1


def test_ctrl_c_after_the_record_says_that_it_is_there(run, judge, monkeypatch):
    judge(toy.PASSING)
    run("start", "softmax")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Screen, "line", interrupted)
    shown = run("grade")

    assert (shown.code, shown.err.strip()) == (130, "Stopped. The result is recorded.")


def test_a_reader_that_leaves_early_is_harmless(home):
    process = subprocess.Popen([sys.executable, "-m", "tritonlab", "list"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=30)

    assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_harmless(home, closed):
    script = f'exec {closed}; exec "$@"'
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "tritonlab", "list"]

    shown = subprocess.run(command, text=True, capture_output=True, stdin=subprocess.DEVNULL)

    assert (shown.returncode, shown.stderr) == (0, "")
    assert ("track1/softmax" in shown.stdout) == (">&-" not in closed.replace("2>&-", ""))


@pytest.mark.parametrize(("words", "error", "says"), [
    ((), BrokenPipeError(), ""),
    (("--json",), BrokenPipeError(), ""),
    (("--json",), OSError(28, "No space left on device"),
     "The report could not be printed: no space left on device.\n"),
], ids=str)
def test_a_verdict_that_nobody_reads_keeps_its_exit_code(run, judge, monkeypatch, words, error,
                                                         says):
    judge(toy.FAILING)
    run("start", "softmax")

    def deaf(*_, **__):
        raise error

    monkeypatch.setattr("tritonlab.errors.silence_broken_pipe", lambda: None)
    monkeypatch.setattr(Screen, "line", deaf)
    monkeypatch.setattr("tritonlab.cli.boundary.print_json", deaf)
    shown = run("grade", *words)

    assert (shown.code, shown.err) == (1, says)
    assert [record["event"] for record in records()] == ["started", "graded"]


def test_ctrl_c_while_the_command_is_imported_is_one_sentence(home):
    script = ("import sys\n"
              "class Stop:\n"
              "    def find_spec(self, name, *_):\n"
              "        if name == 'tritonlab.course.course': raise KeyboardInterrupt\n"
              "sys.meta_path.insert(0, Stop())\n"
              "from tritonlab.__main__ import main; main()")

    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert (shown.returncode, shown.stderr) == (130, "Stopped. Nothing was recorded.\n")


@pytest.mark.parametrize(("error", "says"), [
    (FileNotFoundError(2, "No usable temporary directory found"), "none can be written"),
    (OSError(28, "No space left on device"), "no space is left on the disk"),
], ids=["none", "full"])
def test_a_grader_without_a_temporary_folder_is_one_sentence(run, monkeypatch, error, says):
    def nowhere(*_, **__):
        raise error

    run("start", "softmax")
    monkeypatch.setitem(vars(grader), "Sandbox", nowhere)
    shown = run("grade")

    assert (shown.code, shown.err) == (
        3, f"The grader cannot start: it has no folder for temporary files; {says}. "
           "Set TMPDIR to a folder with some space, then repeat the command.\n")


def test_the_details_of_a_failure_that_fit_nowhere(monkeypatch):
    def nowhere():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", nowhere)

    assert errors.keep("details", None) == "The details could not be written anywhere."


@pytest.mark.parametrize("words", [["--help"], ["grade", "--help"], ["doctor", "--help"]],
                         ids=" ".join)
def test_help_fits_40_columns(words):
    shown = subprocess.run([sys.executable, "-m", "tritonlab", *words], text=True,
                           env={**os.environ, "COLUMNS": "40"}, capture_output=True)

    assert shown.returncode == 0
    assert [line for line in shown.stdout.splitlines() if len(line) > 40] == []


def test_words_stand_below_a_lead_that_leaves_no_room_for_them():
    printed = io.StringIO()

    Screen(printed, width=40).line("2.13.0+cpu, supported is <2.14,>=2.8",
                                   lead=("  ", "PASS  ", f"{'torch':<22} "))

    assert printed.getvalue() == "  PASS  torch\n    2.13.0+cpu, supported is <2.14,>=2.8\n"


def test_a_lesson_in_the_c_locale_is_ascii():
    shown = subprocess.run([sys.executable, "-m", "tritonlab", "read", "softmax"],
                           env={**os.environ, "LC_ALL": "C"}, capture_output=True)

    assert (shown.returncode, shown.stdout.isascii(), b"\n * Assign" in shown.stdout) == (
        0, True, True)


@pytest.mark.parametrize("environment", [
    {"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}, {"TERM": "dumb"}, {"HOME": "/nonexistent"},
    {"NO_COLOR": "1"},
], ids=str)
def test_list_works_in_odd_environments(home, environment):
    shown = subprocess.run([sys.executable, "-m", "tritonlab", "list"], text=True,
                           env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                           capture_output=True)

    assert (shown.returncode, shown.stderr) == (0, "")
    assert "track1/softmax" in shown.stdout


def test_a_signal_while_grading_stops_cleanly(home, run):
    run("start", "softmax")
    # A shell's background jobs, and what they start, ignore the signal unless told otherwise.
    script = ("import signal, sys, time, grader\n"
              "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
              "def grade(*a, **k):\n    print('grading', flush=True)\n    time.sleep(30)\n"
              "vars(grader)['grade'] = grade\n"
              "from tritonlab.cli import app; sys.argv = ['tritonlab', 'grade']; app.main()")
    process = subprocess.Popen([sys.executable, "-c", script], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "grading\n"

    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)

    assert (process.returncode, errors.strip()) == (130, "Stopped. Nothing was recorded.")
    assert len(records()) == 1


@pytest.mark.parametrize("delay_s", by_default(2, [0.3, 1.3, 0.8, 2.0]))
def test_ctrl_c_ends_a_grade_at_any_time_with_one_sentence_and_130(home, monkeypatch, delay_s):
    monkeypatch.delenv("TRITONLAB_COURSE")  # the toy course has nothing to run
    solution = Path(__file__).parents[2] / "solutions/missing-elements/03-softmax/kernel.py"
    kernel = home / "kernel.py"  # it hangs, so that no machine is done before the signal
    kernel.write_text(solution.read_text().replace(
        "    check_argument(x)\n", "    while True:\n        pass\n"))
    script = ("import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
              "from tritonlab import __main__, interrupts; interrupts.install()\n"
              "print('ready', flush=True); __main__.main()")
    grading = subprocess.Popen([sys.executable, "-c", script, "grade", str(kernel), "--module",
                                "track1/softmax"], text=True, start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert grading.stdout is not None and grading.stdout.readline() == "ready\n"

    time.sleep(delay_s)
    os.killpg(grading.pid, signal.SIGINT)  # as a terminal does
    _, errors = grading.communicate(timeout=30)

    assert (grading.returncode, errors.strip()) == (130, "Stopped. Nothing was recorded.")


LOST = {
    "while torch is imported": ("class torch:\n"
                                "    def find_spec(self, name, *_):\n"
                                "        if name == 'wanted': __main__.stop()\n",
                                "import wanted"),
    "in a finalizer": ("class Lost:\n    def __del__(self): __main__.stop()\n", "Lost()"),
}


@pytest.mark.parametrize("where", LOST)
def test_ctrl_c_is_not_lost(where):
    defined, used = LOST[where]
    script = ("import os, signal, sys, time, __main__\n"
              "from tritonlab import interrupts\n"
              "signal.signal(signal.SIGINT, signal.default_int_handler); interrupts.install()\n"
              "def stop(): os.kill(os.getpid(), signal.SIGINT)\n"
              f"exec({defined!r}, lost := {{'__name__': 'torch', '__main__': __main__}})\n"
              "if 'torch' in lost: sys.meta_path.insert(0, lost['torch']())\n"
              "try:\n"
              f"    try: exec({used!r}, lost)\n"
              "    except KeyboardInterrupt: print('swallowed')\n"
              "    time.sleep(10)\n"
              "except KeyboardInterrupt: sys.exit(130)\n")

    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                           timeout=30)

    assert (shown.returncode, shown.stdout) == (130, "")


def test_colour_repeats_words_and_no_color_takes_it_away(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    Screen(sys.stdout).line(("PASS", "pass"))
    coloured = capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    Screen(sys.stdout).line(("PASS", "pass"))

    assert ("PASS" in coloured, "\x1b[" in coloured) == (True, True)
    assert "\x1b[3" not in capsys.readouterr().out
