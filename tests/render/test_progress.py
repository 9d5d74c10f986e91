"""`report` shows a learner's way, and `bench` keeps what it shows of speed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support import benched, certified, toy
from tritonlab.course import course
from tritonlab.grading import kernels as face
from tritonlab.progress import caches, progress_report
from tritonlab.progress.journal import JournalReading
from tritonlab.progress.progress_report import Day
from tritonlab.render import certificate_text as words
from tritonlab.render import charts, pages
from tritonlab.workspace.workspace import Workspace

SOFTMAX = "missing-elements/03-softmax"


@pytest.fixture
def begun(run, judge):
    """Softmax failed twice and passed once, after a hint; one after the pass does not count."""
    run("start", "softmax")
    run("hint", "--todo", "1")
    for results in (toy.FAILING, toy.FAILING, toy.PASSING):
        judge(results)
        run("grade")
    run("hint", "--todo", "2")


# ------------------------------------------------------------ the verb


def test_the_report_in_the_terminal_tells_modules_days_and_what_is_left(run, begun):
    shown = run("report")

    assert (shown.code, shown.err) == (0, "")
    assert "1 of 2 core modules are passed. Evidence: 1 correct. 3 grades" \
        in shown.out
    assert "PASS  track1/softmax  correct, best 6 of 7 checks, 3 grades, 1 hint, 1.5 h planned" \
        in shown.out
    assert "WAIT  track1/copy  1.5 h planned" in shown.out
    assert f"{date.today()}  track1/softmax 3 grades (passed)" in shown.out
    assert shown.out.endswith("Next: tritonlab start track1/copy\n")


def test_plain_says_the_same_one_fact_a_line(run, begun):
    lines = run("report", "--plain").out.splitlines()

    assert "PASS track1/softmax correct, best 6 of 7 checks, 3 grades, 1 hint, 1.5 h planned" \
        in lines
    assert all(lines)


def test_as_json(run, begun):
    said = json.loads(run("report", "--json").out)

    softmax = said["modules"][1]
    assert (said["schema"], softmax["state"], softmax["grades"], softmax["hints"]) == (
        1, "passed", 3, 1)
    assert said["days"] == [{"date": str(date.today()), "module": "track1/softmax", "grades": 3,
                             "passes": 1, "evidence": "correct"}]
    assert (said["page"], said["next"]) == (None, "tritonlab start track1/copy")


def test_the_page_is_written_and_holds_no_script_and_no_address(run, begun):
    shown = run("report", "--html", "r.html")

    text = Path("r.html").read_text()
    assert "The page is r.html" in shown.out
    assert text.startswith("<!doctype html>")
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/", "")


@pytest.mark.parametrize("verb", ["report", "certificate"])
def test_a_folder_is_not_overwritten_by_a_page(run, begun, verb):
    Path("pages.html").mkdir()

    shown = run(verb, "--html", "pages.html")

    assert (shown.code, shown.out) == (2, "")
    assert shown.err == ("pages.html is a folder, so no page is written there. Name a file in it, "
                         "such as `--html pages.html/page.html`.\n")


def test_without_a_workspace_it_names_the_first_step(run):
    shown = run("report")

    assert shown.code == 2
    assert "`tritonlab start track1/copy` creates one." in shown.err


def test_a_journal_that_says_little_still_makes_a_report(run, home):
    run("start", "softmax")

    assert "0 grades in all." in run("report").out
    assert run("report", "--html", "r.html").code == 0


def test_records_with_odd_fields_are_shown_as_far_as_they_go(tmp_path):
    odd = [certified.record(1, "graded", "track1/softmax", "someday", cases=7),
           certified.record(2, "graded", "track1/softmax", date(2026, 1, 1), cases={"total": "x"}),
           certified.record(3, "graded", "no/such-module", date(2026, 1, 1))]

    found = progress_report.build(course.load(), JournalReading(tuple(odd)), tmp_path)

    assert len(found.attempts) == 2
    assert [(day.grades, day.passes) for day in found.days] == [(1, 0)]


# ------------------------------------------------------------ attempts over time


def days(*numbers: int, module: str = "track1/softmax") -> list[Day]:
    return [Day(module, date(2026, 11, 1) + timedelta(days=number), 2, number % 2, "")
            for number in numbers]


@pytest.mark.parametrize(("span", "period"), [
    (1, "a day"), (20, "a day"), (30, "2 days"), (60, "4 days"), (300, "2 weeks"),
    (100_000, "3847 days")])
def test_columns_are_as_short_as_there_is_room_for(span, period):
    (_, wide), _ = charts.timeline_svgs(days(0, span - 1))

    assert wide == period


def test_a_column_holds_all_that_happened_in_it():
    for drawing, _ in charts.timeline_svgs(days(0, 1, 2, 3, 59)):
        first, last = re.findall(r"<title>(.*?)</title>", drawing)

        assert first == "track1/softmax, 2026-11-01 to 2026-11-04: 8 grades, 2 passed"
        assert last == "track1/softmax, 2026-12-30: 2 grades, 1 passed"
        assert ">8</text>" in drawing


def test_no_attempts_make_no_timeline():
    assert charts.timeline_svgs([]) == []


@pytest.mark.parametrize("narrow", [False, True])
def test_dates_and_names_do_not_meet(narrow):
    drawing, _ = charts.timeline_svgs(days(*range(0, 60, 3)))[narrow]

    places = [float(x) for x in re.findall(r' x="([\d.]+)"[^>]*>\d\d \w{3}</text>', drawing)]
    assert len(places) > 1
    assert all(later - earlier >= 60 for earlier, later in pairwise(places))
    assert places[-1] + 60 <= (336 if narrow else 900)


# ------------------------------------------------------------ benchmarks that are kept


def test_a_benchmark_is_kept_as_it_was_found(tmp_path):
    found = benched.benchmark(SOFTMAX)
    module = course.load().find("softmax")

    assert caches.save_benchmark(tmp_path, module, found) == ""

    kept = caches.load_benchmark(tmp_path, module)
    assert kept.benchmark == found
    assert kept.date == str(date.today())
    assert (tmp_path / "bench" / "track1" / "softmax.json").is_file()


def test_a_prediction_does_not_take_the_place_of_a_measurement_of_the_same_file(tmp_path):
    place, module = Workspace(tmp_path), course.load().find("softmax")
    measured, predicted = (benched.benchmark(SOFTMAX, measured=one) for one in (True, False))
    caches.save_benchmark(place.mark, module, measured)

    caches.save_benchmark(place.mark, module, predicted)
    same = caches.load_benchmark(place.mark, module)
    caches.save_benchmark(place.mark, module, replace(predicted, source_sha256="1" * 64))
    other = caches.load_benchmark(place.mark, module)

    assert (same.benchmark.measured, other.benchmark.measured) == (True, False)


@pytest.mark.parametrize("damage", [
    lambda data: "", lambda data: "{", lambda data: "[" * 100_000, lambda data: "[]",
    lambda data: json.dumps({**data, "schema": 7}),
    lambda data: json.dumps({**data, "date": "yesterday"}),
    lambda data: json.dumps(data).replace('"seconds": ', '"seconds": -'),
    lambda data: json.dumps(data).replace('"repeats": 40', '"repeats": null'),
    lambda data: json.dumps(data).replace('"who": "yours"', '"who": "<b>me</b>"'),
    lambda data: json.dumps(data).replace('"copy": 4', '"copy": 1' + "0" * 400),
    lambda data: json.dumps(data) + " " * caches.LARGEST,
    lambda data: json.dumps(data).replace('"axis": "columns"', '"axis": "$x^$"'),
    lambda data: json.dumps(data).replace('"sizes": [{', '"sizes": [], "others": [{'),
], ids=range(13))
def test_a_damaged_benchmark_is_left_out(run, begun, damage, home):
    place = Workspace(home / "tritonlab-workspace")
    module = course.load().find("softmax")
    caches.save_benchmark(place.mark, module, benched.benchmark(SOFTMAX))
    file = caches.benchmark_path(place.mark, module)

    file.write_text(damage(json.loads(file.read_text())))

    assert caches.load_benchmark(place.mark, module) is None
    assert run("report", "--html", "r.html").code == 0
    assert "Benchmarks" not in Path("r.html").read_text()


@pytest.mark.parametrize(("words_", "is_kept"), [
    ((), True), (("--function", "softmax"), False), (("--json",), True)],
    ids=["all", "one function", "as JSON"])
def test_bench_keeps_what_it_found_of_all_functions(run, monkeypatch, home, words_, is_kept):
    monkeypatch.setattr(face, "bench", lambda *_, **__: benched.benchmark(SOFTMAX))
    run("start", "softmax")

    assert run("bench", *words_).code == 0

    assert (home / "tritonlab-workspace/.tritonlab/bench/track1/softmax.json").exists() is is_kept


def test_a_benchmark_that_cannot_be_kept_is_said_and_shown_all_the_same(run, monkeypatch, home):
    monkeypatch.setattr(face, "bench", lambda *_, **__: benched.benchmark(SOFTMAX))
    run("start", "softmax")
    (home / "tritonlab-workspace/.tritonlab/bench").write_text("in the way")

    shown = run("bench")

    assert shown.code == 0
    assert "your kernel reaches 0.84 of the speed" in " ".join(shown.out.split())
    assert shown.err.startswith("The benchmark was not saved: ")


def test_the_report_shows_benchmarks_in_words_and_pictures(run, begun, home):
    place, module = Workspace(home / "tritonlab-workspace"), course.load().find("softmax")
    caches.save_benchmark(place.mark, module, benched.benchmark(SOFTMAX))

    shown = run("report", "--html", "r.html")

    text = Path("r.html").read_text()
    assert shown.code == 0
    assert "At 16,384 columns, your kernel reaches 0.84 of the speed" in text
    assert text.count("<svg") == 4
    assert "<code>tritonlab bench track1/softmax</code> draws it anew." in text
    assert "Benchmark of track1/softmax" in run("report", "--plain").out


# ------------------------------------------------------------ the words of a certificate


def test_rows_say_what_was_shown_and_what_was_not():
    made = certified.everything()

    first, second, *_ = words.passed(made)

    assert words.checks(first) == "34 of 34 checks"
    assert words.hardware(first) == f"ran on {certified.WORKSTATION}"
    assert words.checks(second) == "34 of 37 checks; 3 skipped, not shown"
    assert words.hardware(second) == "compiled for NVIDIA H100 SXM, run on a CPU"
    assert [words.settings(made)[words.setting(one)] for one in (first, second)] == ["a", "b"]
    assert pages.certificate(made, "c.html").count("; versions a") == 9


def test_noise_and_earlier_tests_are_said():
    entry = certified.entry("track1/softmax", "Softmax", cases_passed=30, hints_used=1,
                            solution_seen=True, state=certified.ModuleState.OUTDATED)

    assert words.checks(entry) == "30 of 37 checks; 3 skipped and 4 too noisy, not shown"
    assert words.notes(entry) == "1 hint, solution seen, by earlier tests"


def test_versions_that_all_share_need_no_letter():
    made = certified.beginner()

    assert len(words.settings(made)) == 1
    assert "; versions" not in pages.certificate(made, "c.html")


def test_the_certificate_as_json_is_the_same_with_a_page(run, begun):
    alone, beside = run("certificate", "--json"), run("certificate", "--json", "--html", "c.html")

    assert alone.out == beside.out
    assert "tritonlab verify c.html --sources FOLDER" in Path("c.html").read_text()


def test_the_page_s_name_is_quoted_in_its_command(run, begun):
    run("certificate", "--html", "my own; page.html")

    assert "tritonlab verify &#39;my own; page.html&#39;" in Path("my own; page.html").read_text()
