"""Formats of one grade: each against its schema, with texts that no format can hold as they are."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from grader.report import CaseResult, Details, Finding, Kind, Report, Step, Verdict
from tests.formats import schemas
from tests.support import toy
from tritonlab.formats import classroom50, github, gradescope, junit, lines, sarif
from tritonlab.formats.annotations import annotations
from tritonlab.formats.classroom50 import GradedCommit
from tritonlab.formats.gradescope import Visibility
from tritonlab.grading.points import Weights, points

MODULE = "track1/softmax"
FILE = "track1/softmax/kernel.py"
AT = datetime(2026, 10, 12, 23, 59, tzinfo=UTC)
COMMIT = GradedCommit("cs149", "hw1", "alice", "submit/2026-10-12T23-59-00Z-abc1234", AT,
                      "https://example.org/commit/abc", "https://example.org/releases/1")
OTHER = Finding("M02", "A store outside the tensor: index 4096 of 4096.", line=31,
                means="The mask is missing.", where="Line 31, TODO 3", todos=(3,))
STEPS = (Step("A", "Setup", (1, 2), state="right"), Step("B", "Row", (3,), state="wrong"),
         Step("C", "Load", (4, 5), state="open"), Step("D", "Store", (6,), state="unchecked"),
         Step("E", "Host", (), ("f",), state="begun"))
VERDICTS = {
    "passed": toy.report(toy.PASSING), "failed": toy.report(toy.FAILING),
    "fast": toy.report(toy.FAST, **toy.ON_GPU), "slow": toy.report((*toy.PASSING[:6], toy.SLOW)),
    "noisy": toy.report((*toy.PASSING[:6], toy.NOISY)),
    "blanks": toy.report(toy.BLANKS, steps=STEPS),
    "right so far": toy.report(toy.PASSING, steps=STEPS[2:3]),
    "broken": toy.report((), reason="RuntimeError: no space\nTraceback (most recent call last)"),
    "a broken case": toy.report((*toy.PASSING[:2], toy.case("4 rows", Verdict.ERROR, reason="x"))),
    "all skipped": toy.report(toy.PASSING[-1:]), "advisory": toy.report((
        *toy.PASSING, toy.case("a hint", Verdict.FAILED, finding=OTHER, advisory=True))),
    "without a finding": toy.report((toy.case("f", Verdict.FAILED, reason="It ended."),)),
}


def graded(report: Report) -> dict:
    """The plain data as another process reads them."""
    return json.loads(json.dumps(report.to_dict()))


def in_gradescope(report: Report, **options: object) -> dict:
    data = graded(report)
    text = gradescope.render(data, MODULE, points(data), **options)
    return schemas.valid_gradescope(text)


def in_classroom50(report: Report, out_of: int = 100, **options: object) -> dict:
    data = graded(report)
    text = classroom50.render(data, MODULE, points(data, out_of=out_of), COMMIT, **options)
    return schemas.valid_classroom50(text)


def in_sarif(report: Report, file: str = FILE) -> dict:
    return schemas.valid_sarif(sarif.render(graded(report), MODULE, file))


def in_junit(report: Report):
    return schemas.valid_junit(junit.render(graded(report), MODULE, AT))


def every_format(report: Report, file: str = FILE) -> dict[str, str]:
    data = graded(report)
    return {
        "lines": lines.render(data, file), "github": github.render(data, file),
        "sarif": sarif.render(data, MODULE, file), "junit": junit.render(data, MODULE, AT),
        "gradescope": gradescope.render(data, MODULE, points(data), reveal="all"),
        "classroom50": classroom50.render(data, MODULE, points(data), COMMIT, reveal="all")}


@pytest.mark.parametrize("report", VERDICTS.values(), ids=VERDICTS)
def test_every_verdict_is_valid_in_every_schema(report):
    n_tests = [len(in_junit(report)[0].findall("testcase")), len(in_sarif(report)["results"]),
               len(in_gradescope(report)["tests"]), len(in_classroom50(report)["tests"])]

    assert n_tests[0] >= max(n_tests[1:3])


@pytest.mark.parametrize("report", VERDICTS.values(), ids=VERDICTS)
def test_only_a_pass_is_green(report):
    suite = in_junit(report)[0]
    bad = int(suite.get("failures")) + int(suite.get("errors"))
    remarks = annotations(graded(report), FILE)
    silent = {remark.level for remark in remarks} <= {"note"}

    assert (bad == 0) == (report.verdict is Verdict.PASSED)
    assert silent == (report.verdict is Verdict.PASSED or bool(report.steps and not any(
        result.fails for result in report.results)))


# ------------------------------------------------------------ texts that do not fit

HOSTILE = "\x00\x1b[31m\ud800]]><b>&amp; ::error::%0A\r\n`` ``` *x* \U0001f600\ufffe"


def hostile_report(text: str) -> Report:
    finding = replace(OTHER, code="N01", data=text, means=text, where=text, next_step=text)
    return toy.report((toy.case(text, Verdict.FAILED, finding=finding),
                       toy.case("b" + text, Verdict.SKIPPED, reason=text),
                       toy.case("c" + text, Verdict.FAILED, reason=text)), output=text)


@pytest.mark.parametrize("text", [HOSTILE, "x" * 300_000, HOSTILE * 20_000],
                         ids=["hostile", "huge", "both"])
def test_texts_that_a_format_cannot_hold_are_replaced_and_cut(text):
    report = hostile_report(text)

    in_junit(report)
    in_sarif(report)
    in_gradescope(report, reveal="all")
    in_classroom50(report, reveal="all")
    for name, content in every_format(report).items():
        assert content.encode("utf-8"), name  # no lone surrogates
        assert not set(content) & {"\x00", "\x1b", "\r"}, name
        assert len(content) < 200_000, name


def test_no_text_of_a_submission_begins_a_workflow_command():
    content = github.render(graded(hostile_report(HOSTILE)), FILE)

    commands = [line.split(" ")[0] for line in content.splitlines()]
    assert commands == ["::error", "::error"]
    assert "%250A" in content
    assert "%0A" in content


def test_output_in_markdown_stays_behind_its_fence():
    report = toy.report(toy.PASSING, output="````\n# a title\n<script>")

    output = in_gradescope(report)["output"]

    assert "`````\n````\n# a title\n<script>\n`````" in output


def test_names_of_code_keep_their_underscores_in_markdown():
    finding = replace(OTHER, data="`x_ptr` is <none> of *a_b*.\n    y_ptr\n    ^")

    report = toy.report((toy.case("x", Verdict.FAILED, finding=finding),))
    output = in_gradescope(report)["tests"][0]["output"]

    assert output.startswith("**Seen:** `x_ptr` is \\<none\\> of \\*a\\_b\\*.\n\n"
                             "```\n    y_ptr\n    ^\n```\n\n**Likely:**")


@pytest.mark.parametrize(("name", "uri", "shown"), [
    ("a b/é%.py", "a%20b/%C3%A9%25.py", "a b/é%.py"),
    ("/w/\udcff.py", "file:///w/%FF.py", "/w/\ufffd.py"), ("x:y,z.py", "x%3Ay%2Cz.py", "x:y,z.py"),
    ("a\nb.py", "a%0Ab.py", "a\nb.py"),
], ids=["space and accent", "not UTF-8", "colon", "newline"])
def test_a_file_name_is_escaped_as_its_format_asks(name, uri, shown):
    report = toy.report(toy.FAILING)

    result = in_sarif(report, name)["results"][0]
    command = github.render(graded(report), name)
    line = lines.render(graded(report), name)

    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location["uri"] == uri
    escaped = shown.replace("%", "%25").replace("\n", "%0A").replace(":", "%3A").replace(",", "%2C")
    assert command.startswith(f"::error file={escaped},line=24,col=1,title=")
    assert line.startswith(f"{shown}:24:1: error: ".replace("\n", " "))


# ------------------------------------------------------------ what a reader may see


@pytest.mark.parametrize("name", every_format(VERDICTS["passed"]))
@pytest.mark.parametrize(("isolation", "says"), [
    ("tier 0: separate processes with limits only", "tier 0 of 2: separate processes"),
    ("tier 1: seccomp; without landlock", "tier 1 of 2: seccomp; without landlock"),
    ("tier 2: landlock ABI 7, seccomp", "")], ids=["tier 0", "tier 1", "tier 2"])
def test_every_format_says_when_the_isolation_is_weak(name, isolation, says):
    for report in (toy.report(toy.PASSING, isolation=isolation),
                   toy.report(toy.FAILING, isolation=isolation)):
        content = every_format(report)[name]

        assert ("The sandbox of this machine reaches" in content) == bool(says)
        assert says in content


@pytest.mark.parametrize("name", every_format(VERDICTS["passed"]))
def test_no_format_shows_more_of_a_case_than_the_report(name):
    details = Details(("x: SECRET",), ("f: SECRET",), (("[0]", "SECRET", "SECRET"),))
    failing = replace(toy.FAILING[1], details=details, replay="--case x --seed SECRET")
    report = toy.report((failing, *toy.FAILING[2:]), printed=("SECRET",), printed_in="x")

    assert "SECRET" not in every_format(report)[name]


def test_the_seed_is_in_the_extra_data_only_if_the_report_has_one():
    data = graded(toy.report(toy.PASSING))
    blank = data | {"seed": ""}

    texts = [gradescope.render(one, MODULE, points(one)) for one in (data, blank)]

    assert [json.loads(text)["extra_data"].get("seed") for text in texts] == ["00ff", None]
    assert all("00ff" not in text for name, text in every_format(toy.report(toy.PASSING)).items()
               if name != "gradescope")


@pytest.mark.parametrize(("reveal", "described"), [
    ("verdict", []), ("first-failure", ["4 rows of 127 columns"]),
    ("all", ["4 rows of 127 columns", "every other row of a larger matrix", "rows sum to one"])])
def test_the_instructor_decides_which_failures_are_described(reveal, described):
    tests = in_gradescope(VERDICTS["failed"], reveal=reveal)["tests"]
    of_classroom50 = in_classroom50(VERDICTS["failed"], reveal=reveal)["tests"]

    assert [test["name"] for test in tests if "0.0079" in test.get("output", "")] == described
    assert [test["name"] for test in tests if "code" in test["extra_data"]] == described
    assert sum("0.0079" in test.get("message", "") for test in of_classroom50) == len(described)


# ------------------------------------------------------------ each format


def test_failures_of_one_kind_share_an_annotation_and_a_command_has_all_of_it():
    finding = replace(toy.WRONG, next_step="`tritonlab hint` shows a hint.")
    report = toy.report((*toy.PASSING[:2], toy.case("4 x 127: a, b", Verdict.FAILED,
                                                    finding=finding),
                         toy.case("again", Verdict.FAILED, finding=replace(finding, line=None)),
                         toy.case("another", Verdict.FAILED, finding=OTHER)))

    assert lines.render(graded(report), FILE).splitlines() == [
        f"{FILE}:24:1: error: {finding.seen} {finding.means} [wrong-values]",
        f"{FILE}:31:1: error: {OTHER.seen} {OTHER.means} [store-out-of-bounds]"]
    assert github.render(graded(report), FILE).splitlines()[0] == (
        f"::error file={FILE},line=24,col=1,title=wrong-values (N01)%3A 4 x 127%3A a%2C b::"
        f"Seen: {finding.seen}%0ALikely: {finding.means}%0AWhere: Line 24, TODO 2%0A"
        "Hint: `tritonlab hint` shows a hint.")


def test_an_annotation_names_the_file_of_a_package():
    finding = replace(OTHER, file="package/ops/kernel.py")
    report = toy.report((toy.case("x", Verdict.FAILED, finding=finding),))

    assert lines.render(graded(report), "w/kernel.py").startswith("w/package/ops/kernel.py:31:1: ")
    assert lines.render(graded(report), "kernel.py").startswith("package/ops/kernel.py:31:1: ")


def test_a_grade_that_decides_nothing_is_an_error_of_the_tool():
    run = in_sarif(VERDICTS["broken"])

    assert (run["results"], run["invocations"][0]["executionSuccessful"]) == ([], False)
    assert github.render(graded(VERDICTS["broken"]), FILE) == \
        "::error title=tritonlab::The grader could not go on: RuntimeError: no space\n"


def test_a_rule_explains_its_code_and_a_fingerprint_outlives_lines_and_inputs():
    def fingerprints(finding: Finding) -> list[str]:
        run = in_sarif(toy.report((toy.case("x", Verdict.FAILED, finding=finding),)))
        return [result["partialFingerprints"]["tritonlabFinding/v1"] for result in run["results"]]

    rule = in_sarif(VERDICTS["failed"])["tool"]["driver"]["rules"][0]

    assert (rule["id"], rule["name"]) == ("N01", "wrong-values")
    assert "`tritonlab explain wrong-values`" in rule["help"]["text"]
    assert fingerprints(OTHER) == fingerprints(replace(OTHER, data="Other numbers.", line=99))
    assert fingerprints(OTHER) != fingerprints(replace(OTHER, todos=(4,)))


def test_a_test_case_says_its_code_and_what_was_seen():
    report = replace(VERDICTS["failed"], output="printed\n", results=(
        *toy.FAILING, *toy.PASSING[-1:], toy.NOISY))

    suite = in_junit(report)[0]
    cases = {case.get("name"): case for case in suite.findall("testcase")}

    failure = cases["4 rows of 127 columns"].find("failure")
    assert failure.get("message") == f"N01 wrong-values: {toy.WRONG.seen}"
    assert failure.text.endswith("Where: Line 24, TODO 2")
    assert cases["bandwidth at 16 384 x 4 096"].find("skipped").get("message") == "no GPU was found"
    assert cases[toy.NOISY.name].find("skipped").get("message") == toy.NOISY.reason
    assert cases["rows sum to one"].get("classname") == "track1.softmax.property"
    assert suite.find("system-out").text == "printed\n"
    assert suite.get("timestamp") == "2026-10-12T23:59:00+00:00"


def test_several_suites_make_a_document():
    suites = [junit.test_suite(graded(VERDICTS[name]), MODULE, student, AT)
              for name, student in (("passed", "alice"), ("failed", "bob\x00"))]

    root = schemas.valid_junit(junit.document(suites))

    assert [suite.get("name") for suite in root] == ["alice", "bob\ufffd"]
    assert (root.get("tests"), root.get("failures")) == ("12", "3")


def test_points_of_gradescope_are_those_of_the_grade():
    report = replace(VERDICTS["failed"], suite_sha256="ab")
    data = in_gradescope(report, public={"4 rows of 128 columns"},
                         visibility=Visibility.AFTER_PUBLISHED, name="Alice")

    tests = {test["name"]: test for test in data["tests"]}
    assert data["score"] == points(graded(VERDICTS["failed"])).total == 45
    assert sum(test["max_score"] for test in data["tests"]) == 100
    assert sum(test["score"] for test in data["tests"]) == data["score"]
    assert [test["number"] for test in data["tests"]] == ["1.1", "1.2", "2.1", "3.1", "4.1"]
    assert tests["4 rows of 128 columns"]["visibility"] == "visible"
    assert tests["rows sum to one"]["visibility"] == "after_published"
    assert tests["4 rows of 127 columns"]["tags"] == ["correctness", "TODO 2"]
    assert data["extra_data"]["suite_sha256"] == "ab"
    assert data["extra_data"]["source_sha256"] == report.source_sha256
    assert data["extra_data"]["isolation"] == "separate processes"
    assert data["extra_data"]["name"] == "Alice"
    assert "leaderboard" not in data


def test_the_maxima_of_many_checks_add_up_to_the_points():
    report = toy.report([toy.case(str(n)) for n in range(7)] + [toy.SLOW])

    tests = in_gradescope(report)["tests"]

    assert sum(round(100 * test["max_score"]) for test in tests) == 10_000
    assert {round(test["max_score"]) for test in tests} == {10, 29}


def test_a_score_that_the_class_decides_wins():
    assert in_gradescope(VERDICTS["passed"], score=80)["score"] == 80
    assert in_classroom50(VERDICTS["passed"], score=80)["score"] == 80


def test_steps_are_numbered_by_their_todos_and_have_no_points():
    data = in_gradescope(VERDICTS["blanks"], visibility=Visibility.HIDDEN)

    assert data["score"] == 0
    assert [(test["name"], test.get("number"), test["status"]) for test in data["tests"]] == [
        ("Step A: Setup", "1", "passed"), ("Step B: Row", "3", "failed"),
        ("Step C: Load", "4", "failed"), ("Step D: Store", "6", "failed"),
        ("Step E: Host", None, "failed"), ("the file", None, "failed")]
    assert [test["visibility"] for test in data["tests"]] == ["hidden"] * 5 + ["visible"]
    assert [test["extra_data"]["task_id"] for test in data["tests"][:5]] == [1, 3, 4, 6, None]
    of_classroom50 = in_classroom50(VERDICTS["blanks"])
    assert (of_classroom50["score"], of_classroom50["max-score"]) == (0, 100)


def test_only_measured_times_of_right_kernels_are_on_the_leaderboard():
    assert in_gradescope(VERDICTS["fast"])["leaderboard"] == [
        {"name": "16 384 x 4 096 floats (ms)", "value": 0.139, "order": "asc"}]
    wrong = toy.report((*toy.FAILING, toy.TIMED))
    predicted = toy.report((replace(toy.PASSING[0], predicted={"share": 0.9}),))
    assert not any("leaderboard" in in_gradescope(one) for one in (wrong, predicted))


def test_classroom50_gets_integers_of_each_kind():
    data = in_classroom50(VERDICTS["failed"], out_of=7, graded_at=AT)

    assert [(test["test-name"], test["passed"], test["score"], test["max-score"])
            for test in data["tests"]] == [
        ("correctness checks", False, 2, 4), ("edge checks", False, 0, 1),
        ("property checks", False, 0, 1), ("performance checks", True, 1, 1)]
    assert (data["datetime"], data["graded_at"]) == ("2026-10-12T23:59:00Z",) * 2
    assert (data["owner"], data["review"]) == ("alice", COMMIT.commit)
    assert in_classroom50(VERDICTS["passed"], out_of=7)["score"] == 7


def test_all_or_nothing_has_one_test():
    data = graded(VERDICTS["failed"])
    none = points(data, Weights(all_or_nothing=True))

    result = schemas.valid_classroom50(classroom50.render(data, MODULE, none, COMMIT))
    results = schemas.valid_gradescope(gradescope.render(data, MODULE, none))

    assert [(t["score"], t["max-score"]) for t in result["tests"]] == [(0, 100)]
    assert (results["score"], "max_score" in results["tests"][0]) == (0, False)


def test_a_call_counts_among_the_correctness_checks():
    report = toy.report((CaseResult("f(3)", Kind.CALL, Verdict.PASSED), toy.PASSING[0]))

    assert [test["number"] for test in in_gradescope(report)["tests"]] == ["1.1", "1.2"]
