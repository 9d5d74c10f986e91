"""`verify` grades again what a certificate claims, and believes nothing that it reads."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from grader.report import Kind, Verdict
from grader.submission import source
from tests.support import toy
from tritonlab.course import course
from tritonlab.grading import grade as grading
from tritonlab.verify import certificate_reader
from tritonlab.verify import verify as verification
from tritonlab.verify.certificate_reader import NoCertificate
from tritonlab.verify.verify import Standing
from tritonlab.workspace import passed_sources, workspace
from tritonlab.workspace.submission import Submission

EFFICIENT = {"target": "NVIDIA H100 SXM"}
SOFTMAX = "track1/softmax"


@pytest.fixture
def passed(run, judge, home):
    """The softmax passed as efficient, and the page of its certificate in the current folder."""
    judge(toy.PASSING, **EFFICIENT)
    run("start", "softmax")
    (home / "tritonlab-workspace" / SOFTMAX / "kernel.py").write_text("# my own\n")
    assert run("grade").code == 0
    assert run("certificate", "--html", "page.html", "--name", "Ada").code == 0
    return home / "tritonlab-workspace"


def data_of(place: Path) -> dict:
    return json.loads((place / ".tritonlab" / "certificate.json").read_text())


def forged(place: Path, **changes: object) -> str:
    """A certificate with other fields in the entry of the softmax; beside the workspace."""
    data = data_of(place)
    entry = next(one for one in data["modules"] if one["module"] == SOFTMAX)
    entry.update(changes)
    (place.parent / "forged.json").write_text(json.dumps(data))
    return "forged.json"


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def forget(place: Path) -> None:
    """As if it had passed before what passes was kept."""
    shutil.rmtree(place / ".tritonlab" / passed_sources.FOLDER)


def standing(answer) -> str:
    [module] = json.loads(answer.out)["modules"]
    return module["standing"]


# ------------------------------------------------------------ what a claim is worth


@pytest.mark.parametrize("what", ["page.html", "tritonlab-workspace",
                                  "tritonlab-workspace/.tritonlab",
                                  "tritonlab-workspace/.tritonlab/certificate.json"])
def test_a_page_a_workspace_and_its_json_are_verified_alike(run, passed, what):
    answer = run("verify", what)

    assert (answer.code, answer.err) == (0, "")
    assert "HOLDS track1/softmax  holds; claimed: efficient" in answer.out
    assert "1 of 1 claimed module holds." in answer.out
    assert answer.out.endswith("Next: tritonlab list\n")


def test_the_page_shows_the_number_that_verify_prints(run, passed):
    number = json.loads(run("verify", "page.html", "--json").out)["certificate"]["sha256"]

    assert number[:32] in Path("page.html").read_text()
    assert number == json.loads(run("verify", str(passed), "--json").out)["certificate"]["sha256"]


def test_nothing_is_recorded(run, passed):
    before = contents(passed / ".tritonlab")

    run("verify", "page.html")

    assert contents(passed / ".tritonlab") == before


def test_inputs_are_new_and_the_file_is_graded_whole(run, passed, judge, monkeypatch):
    asked = {}
    grade = grading.grade

    def spy(submission, **more):
        asked.update(more)
        return grade(submission, **more)

    monkeypatch.setattr(grading, "grade", spy)
    run("verify", "page.html", "--no-gpu")

    assert not {"seed", "only", "public_only"} & asked.keys()
    assert asked["gpu"] is False


def test_what_fails_today_does_not_hold(run, passed, judge):
    judge(toy.FAILING, **EFFICIENT)

    answer = run("verify", "page.html")

    assert answer.code == 1
    assert "FAILS track1/softmax  fails; claimed: efficient" in answer.out
    assert "On new inputs, it fails '4 rows of 127 columns': Row 3, column 0" in answer.out
    assert "0 of 1 claimed module holds; 1 fails." in answer.out
    assert answer.out.endswith("tritonlab grade tritonlab-workspace/track1/softmax/kernel.py "
                               "--module track1/softmax\n")


@pytest.mark.parametrize(("change", "said"), [
    (lambda kernel: kernel.write_text("# later\n"),
     "tritonlab-workspace/track1/softmax/kernel.py has changed since."),
    (lambda kernel: kernel.unlink(),
     "There is no file at tritonlab-workspace/track1/softmax/kernel.py."),
], ids=["edited", "gone"])
def test_what_passed_is_kept_and_graded_where_the_file_moved_on(run, passed, monkeypatch, change,
                                                                said):
    change(passed / SOFTMAX / "kernel.py")
    graded = []
    grade = grading.grade
    monkeypatch.setattr(grading, "grade", lambda submission, **more: graded.append(
        submission.kernel.read_text()) or grade(submission, **more))

    answer = run("verify", "page.html", "--plain")

    assert answer.code == 0
    assert "HOLDS track1/softmax holds; claimed: efficient" in answer.out
    assert f"{said} Graded was the file that passed, which is kept. It passes" in answer.out
    assert graded == ["# my own\n"]


def test_what_is_kept_counts_by_its_digest_alone(run, passed):
    [kernel] = (passed / ".tritonlab" / passed_sources.FOLDER).rglob("kernel.py")
    kernel.write_text("# another under the same name\n")
    (passed / SOFTMAX / "kernel.py").write_text("# later\n")

    answer = run("verify", "page.html", "--json")

    assert (answer.code, standing(answer)) == (1, Standing.DIFFERS)


def test_what_is_kept_may_be_no_link_that_leads_elsewhere(run, passed, home):
    [kernel] = (passed / ".tritonlab" / passed_sources.FOLDER).rglob("kernel.py")
    kernel.rename(home / "elsewhere.py")
    kernel.symlink_to(home / "elsewhere.py")
    (passed / SOFTMAX / "kernel.py").write_text("# later\n")

    answer = run("verify", "page.html", "--json")

    assert (answer.code, standing(answer)) == (1, Standing.DIFFERS)


@pytest.mark.parametrize(("results", "said", "advice"), [
    (toy.PASSING, "Graded all the same, it passes, with the evidence efficient.",
     "To claim the file that is there now, type: "),
    (toy.FAILING, "Graded all the same, it fails '4 rows of 127 columns'",
     "See in full what it shows: "),
], ids=["right", "wrong"])
def test_another_source_is_graded_and_does_not_count(run, passed, judge, results, said, advice):
    (passed / SOFTMAX / "kernel.py").write_text("# another\n")
    forget(passed)
    judge(results, **EFFICIENT)

    answer = run("verify", "page.html", "--plain")

    assert answer.code == 1
    assert "OTHER track1/softmax differs; claimed: efficient" in answer.out
    assert "that one is not kept here" in answer.out
    assert said in answer.out
    assert answer.out.endswith(f"{advice}tritonlab grade tritonlab-workspace/track1/softmax/"
                               "kernel.py --module track1/softmax\n")


def test_the_command_that_is_offered_makes_the_claim_good(run, passed):
    (passed / SOFTMAX / "kernel.py").write_text("# another\n")
    forget(passed)
    command = run("verify", str(passed)).out.split("tritonlab grade ")[1].split()

    assert run("grade", *command).code == 0
    assert run("verify", str(passed)).code == 0


def test_where_no_workspace_is_a_file_that_differs_is_only_looked_at(run, passed, home):
    (home / "handed-in" / SOFTMAX).mkdir(parents=True)
    (home / "handed-in" / SOFTMAX / "kernel.py").write_text("# another\n")

    answer = run("verify", "page.html", "--sources", "handed-in", "--plain")

    assert answer.code == 1
    assert "See in full what it shows: " in answer.out


def test_the_newest_that_passed_are_kept_and_always_what_is_claimed(run, passed, judge):
    own = data_of(passed)["modules"][1]["source_sha256"]
    judge(tuple(one for one in toy.PASSING if one.kind is not Kind.PERFORMANCE))  # less evidence
    for number in range(passed_sources.MOST + 3):
        (passed / SOFTMAX / "kernel.py").write_text(f"# {number}\n")
        run("grade")

    folder = passed / ".tritonlab" / passed_sources.FOLDER / SOFTMAX
    there = {(path / "kernel.py").read_text() for path in folder.iterdir()}
    assert there == {"# my own\n",
                     *(f"# {number}\n" for number in range(3, passed_sources.MOST + 3))}
    assert data_of(passed)["modules"][1]["source_sha256"] == own


def test_what_was_spoilt_is_kept_anew_when_it_passes_again(run, passed):
    [kernel] = (passed / ".tritonlab" / passed_sources.FOLDER).rglob("kernel.py")
    kernel.write_text("")

    run("grade")

    assert kernel.read_text() == "# my own\n"


def test_what_fails_and_what_changed_while_it_was_graded_is_not_kept(run, passed, judge,
                                                                     monkeypatch):
    forget(passed)
    judge(toy.FAILING, **EFFICIENT)
    run("grade")
    judge(toy.PASSING, **EFFICIENT)
    monkeypatch.setattr(passed_sources, "snapshot",
                        lambda submission: {"kernel.py": b"# of another save"})
    answer = run("grade")

    assert "not kept: it was edited while it was graded." in answer.err

    assert not [*(passed / ".tritonlab" / passed_sources.FOLDER).rglob("*.py")]


@pytest.mark.parametrize(("number", "why"), [
    (errno.ENOSPC, "no space is left on the disk"), (errno.EROFS, "the file system is read-only")])
def test_where_nothing_can_be_kept_a_pass_is_a_pass(run, passed, monkeypatch, number, why):
    forget(passed)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(passed_sources.tempfile, "TemporaryDirectory", refuse)
    answer = run("grade")

    assert answer.code == 0
    assert "The pass is recorded, but the source that passed was not saved: " + why in answer.err


def test_several_that_differ_are_counted_in_the_plural(run, passed):
    run("start", "copy")
    run("grade")
    run("certificate")
    forget(passed)
    for name in ("softmax", "copy"):
        (passed / "track1" / name / "kernel.py").write_text("# later\n")

    assert "0 of 2 claimed modules hold; 2 differ." in run("verify", str(passed)).out


def test_a_source_that_was_edited_and_passed_again_is_the_certificate_s(run, passed):
    (passed / SOFTMAX / "kernel.py").write_text("# another\n")
    run("grade")
    run("certificate", "--html", "page.html")

    assert run("verify", "page.html").code == 0


def test_a_solution_that_passes_later_does_not_take_the_place_of_one_s_own(run, passed,
                                                                         course_root):
    own = data_of(passed)["modules"][1]["source_sha256"]
    solution = course_root / "solutions" / "missing-elements" / "03-softmax" / "kernel.py"
    shutil.copy(solution, passed / SOFTMAX / "kernel.py")
    run("grade")

    entry = data_of(passed)["modules"][1]
    assert (entry["source_sha256"], entry["solution_seen"]) == (own, False)


def test_a_missing_source_is_no_proof(run, passed):
    (passed / SOFTMAX / "kernel.py").unlink()
    forget(passed)

    answer = run("verify", "page.html", "--plain")

    assert answer.code == 1
    assert "There is no file at tritonlab-workspace/track1/softmax/kernel.py." in answer.out
    assert answer.out.endswith("tritonlab verify page.html --sources FOLDER\n")


def test_a_link_that_leads_elsewhere_is_no_source(run, passed, home):
    (home / "secret.py").write_text("# secret\n")
    forget(passed)
    (passed / SOFTMAX / "kernel.py").unlink()
    (passed / SOFTMAX / "kernel.py").symlink_to(home / "secret.py")

    answer = run("verify", "page.html", "--plain")

    assert answer.code == 1
    assert "is a link that points outside the folder of sources." in answer.out


@pytest.mark.parametrize("folder", [SOFTMAX, "missing-elements/softmax",
                                    "missing-elements/03-softmax"])
def test_sources_may_lie_elsewhere_and_go_by_either_name(run, passed, home, folder):
    (home / "handed-in" / folder).mkdir(parents=True)
    shutil.move(passed / SOFTMAX / "kernel.py", home / "handed-in" / folder / "kernel.py")

    assert run("verify", "page.html", "--sources", "handed-in").code == 0


def test_other_tests_since_are_said_and_what_passes_them_stands(run, passed, judge, course_root):
    suite = course_root / "suites" / "missing-elements" / "03-softmax" / "suite.py"
    suite.write_text(suite.read_text() + "# other\n")

    right = run("verify", "page.html")
    judge(toy.FAILING, **EFFICIENT)
    wrong = run("verify", "page.html")

    assert (right.code, wrong.code) == (0, 1)
    assert "TESTS track1/softmax  tests changed; claimed: efficient" in right.out
    assert "The hidden tests have changed since. With today's, it fails" in wrong.out


def test_what_earlier_tests_had_passed_counts_and_is_graded_by_today_s(run, passed, judge,
                                                                        course_root):
    suite = course_root / "suites" / "missing-elements" / "03-softmax" / "suite.py"
    suite.write_text(suite.read_text() + "# other\n")
    run("certificate")

    right = run("verify", "tritonlab-workspace", "--json")
    judge(toy.FAILING, **EFFICIENT)
    wrong = run("verify", "tritonlab-workspace", "--json")

    assert data_of(passed)["totals"]["core"]["earlier"] == 1
    assert (right.code, standing(right)) == (0, Standing.TESTS_CHANGED)
    assert (wrong.code, standing(wrong)) == (1, Standing.FAILS)


def test_a_certificate_of_the_first_form_is_read_too(run, passed):
    data = data_of(passed) | {"schema": 1}
    Path("forged.json").write_text(json.dumps(data))

    assert run("verify", "forged.json").code == 0


def test_what_needs_a_gpu_is_said_and_not_held_against_anybody(run, passed, judge, home):
    timed = replace(toy.TIMED, verdict=Verdict.SKIPPED, measured=None, reason="no GPU was found")
    judge((*toy.PASSING[:-1], timed), **EFFICIENT)

    answer = run("verify", forged(passed, evidence="fast"))

    assert answer.code == 0
    assert "PART  track1/softmax  holds in part; claimed: fast" in answer.out
    assert "It passes, with the evidence efficient. fast needs a GPU, and none was used." \
        in " ".join(answer.out.split())
    assert "0 of 1 claimed module holds; 1 holds in part." in answer.out
    assert answer.out.endswith("tritonlab verify forged.json\n")


def test_what_is_fast_here_too_holds(run, passed, judge):
    judge(toy.FAST, **toy.ON_GPU)

    answer = run("verify", forged(passed, evidence="fast", solution_seen=True))

    assert answer.code == 0
    assert "HOLDS track1/softmax  holds; claimed: fast, solution seen" in answer.out


def test_what_is_slow_on_this_gpu_fails(run, passed, judge):
    judge((*toy.FAST[:-1], toy.SLOW), **toy.ON_GPU)

    answer = run("verify", forged(passed, evidence="fast"), "--json")

    assert (answer.code, standing(answer)) == (1, Standing.FAILS)


def test_a_noisy_clock_decides_nothing(run, passed, judge):
    judge((*toy.FAST[:-1], toy.NOISY), **toy.ON_GPU)

    answer = run("verify", forged(passed, evidence="fast"), "--json")

    assert (answer.code, standing(answer)) == (0, Standing.IN_PART)
    assert "too noisy" in answer.out


@pytest.mark.parametrize(("changes", "results", "said"), [
    ({"evidence": "fast"}, toy.PASSING, "Nothing in it is timed"),
    ({"evidence": "efficient"}, tuple(one for one in toy.PASSING
                                      if one.kind is not Kind.PERFORMANCE),
     "Nothing in it asks for speed"),
    ({"evidence": ""}, toy.PASSING, "without any evidence"),
    ({"core": False}, toy.PASSING, "It is a core module, which the certificate denies."),
], ids=["timed", "speed", "nothing", "core"])
def test_what_cannot_be_so_is_contradicted(run, passed, judge, changes, results, said):
    judge(results, **EFFICIENT)

    answer = run("verify", forged(passed, **changes), "--json")

    assert (answer.code, standing(answer)) == (1, Standing.CONTRADICTED)
    assert said in answer.out


def test_a_solution_that_is_not_said_to_be_one_is_contradicted(run, passed, judge, course_root):
    solution = course_root / "solutions" / "missing-elements" / "03-softmax" / "kernel.py"
    shutil.copy(solution, passed / SOFTMAX / "kernel.py")
    run("grade")
    sha256 = source.read(solution).sha256

    honest = run("verify", forged(passed, source_sha256=sha256, solution_seen=True), "--json")
    denied = run("verify", forged(passed, source_sha256=sha256, solution_seen=False), "--json")

    assert (standing(honest), standing(denied)) == (Standing.HOLDS, Standing.CONTRADICTED)


def test_totals_that_do_not_add_up_are_wrong_even_where_every_module_holds(run, passed):
    data = data_of(passed)
    data["totals"]["core"]["passed"] = 19
    data["totals"]["tracks"]["track1"]["total"] = 1
    Path("forged.json").write_text(json.dumps(data))

    answer = run("verify", "forged.json")

    assert answer.code == 1
    assert "FALSE Its total for core is not what its modules add up to." in answer.out
    assert "FALSE It counts 1 modules for track1; there are 2." in answer.out


def test_a_module_that_nobody_knows_is_no_proof(run, passed):
    answer = run("verify", forged(passed, module="track9/made-up"), "--json")

    assert (answer.code, standing(answer)) == (1, Standing.UNKNOWN)


def test_a_grader_that_breaks_is_exit_code_3_and_no_verdict(run, passed, judge):
    judge((toy.case("x", Verdict.ERROR, reason="ours"),), **EFFICIENT)

    answer = run("verify", "page.html")

    assert answer.code == 3
    assert "The grader itself failed: ours" in answer.out


def test_where_nothing_is_claimed_nothing_is_verified(run, home):
    run("start", "softmax")
    run("certificate")

    answer = run("verify", "tritonlab-workspace")

    assert (answer.code, answer.out) == (2, "")
    assert "claims no module as passed, so there is nothing to verify" in answer.err


@pytest.mark.parametrize("stale", ["from before the pass", "gone"])
def test_a_workspace_is_verified_by_its_journal(run, home, judge, stale):
    judge(toy.PASSING, **EFFICIENT)
    run("start", "softmax")
    file = home / "tritonlab-workspace/.tritonlab/certificate.json"
    before = file.read_bytes()
    run("grade")
    file.unlink() if stale == "gone" else file.write_bytes(before)

    answer = run("verify", "tritonlab-workspace")

    assert (answer.code, answer.err) == (0, "")
    assert "1 of 1 claimed module holds." in answer.out


@pytest.mark.parametrize("left", [b"", None], ids=["emptied", "deleted"])
def test_where_the_journal_has_lost_records_the_certificate_is_verified(run, passed, left):
    journal = passed / ".tritonlab" / "journal.jsonl"
    journal.unlink() if left is None else journal.write_bytes(left)

    status, answer = run("status"), run("verify", str(passed))

    assert "has lost its last records" in status.err
    assert (answer.code, "1 of 1 claimed module holds." in answer.out) == (0, True)
    assert "has lost its last records" in answer.err


def test_for_real_a_right_kernel_holds_and_a_wrong_one_does_not(tmp_path, sandbox, monkeypatch):
    monkeypatch.setattr(grading, "start_sandbox", lambda: contextlib.nullcontext(sandbox))
    the_course = course.load()
    module = the_course.find("track1/vector-add")
    place, _ = workspace.start(module, tmp_path / "ws")
    kernel = place.kernel(module)
    kernel.write_text(module.solution.read_text() + "\n# my own\n")
    report = grading.grade(Submission(module, kernel, place), sandbox=sandbox)
    journal = place.journal(the_course)
    journal.append("graded", module.id, **grading.record(
        Submission(module, kernel, place), report, journal.read()))
    claimed = certificate_reader.read(place.mark / "certificate.json")

    [right] = verification.verify(the_course, claimed, place.root, gpu=False).checks
    kernel.write_text(module.folder.joinpath("kernel.py").read_text())
    [later] = verification.verify(the_course, claimed, place.root, gpu=False).checks
    forget(place.root)
    [blank] = verification.verify(the_course, claimed, place.root, gpu=False).checks

    assert (right.standing, right.report.evidence) == (Standing.HOLDS, claimed.passed[0].evidence)
    assert right.report.seed != report.seed
    assert (later.standing, later.source == kernel) == (Standing.HOLDS, False)
    assert blank.standing is Standing.DIFFERS
    assert "it fails 'the blanks'" in blank.text


# ------------------------------------------------------------ what a hostile file may not do


def page(text: str) -> str:
    return f"<!doctype html>{text}"


HOSTILE = {
    "empty": (b"", "it is not JSON (line 1, column 1)"),
    "no text": (b"\xff\xfe{", "it is not UTF-8 text"),
    "a number": (b"7", "it is not an object"),
    "a list": (b"[]", "it is not an object"),
    "a field twice": (b'{"schema": 1, "schema": 1}', "a field is given twice"),
    "nested deeply": (b"[" * 100_000, "it is nested too deeply"),
    "a long number": (b'{"schema": ' + b"9" * 10_000 + b"}", "more than 15 digits"),
    "a schema that is not a number": (b'{"schema": true}', "schema has the wrong type"),
    "an infinite number": (b'{"schema": 1e999}', "a number is too large"),
    "no number": (b'{"schema": NaN}', "NaN is not a number"),
    "too large": (b" " * (certificate_reader.LARGEST + 1), "it has more than 4 MB"),
    "another schema": (b'{"schema": 3}', "its schema is not one of (1, 2)"),
    "nothing in it": (b'{"schema": 1}', "modules is missing"),
    "a page without data": (page("<p>hello").encode(), "the page contains no certificate"),
    "a page with two": (page(f"{certificate_reader.MARKER}{{}}</script>" * 2).encode(),
                        "the page contains more than one certificate"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_no_certificate_is_one_sentence_and_exit_code_2(run, home, name):
    content, said = HOSTILE[name]
    Path("c.json").write_bytes(content)

    answer = run("verify", "c.json")

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("c.json is not a certificate that can be verified: ")
    assert said in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(("changes", "said"), [
    ({"module": "../../etc/passwd"}, "is not the id of a module"),
    ({"module": "track1/softmax\x1b[2J"}, "is not the id of a module"),
    ({"module": ["track1/softmax"]}, "module has the wrong type"),
    ({"title": "x" * 201}, "has more than 200 characters"),
    ({"state": "perfect"}, "has an unknown state or evidence"),
    ({"evidence": "divine"}, "has an unknown state or evidence"),
    ({"source_sha256": None}, "source_sha256 has the wrong type"),
    ({"source_sha256": "0" * 63}, "source_sha256 is not a SHA-256"),
    ({"solution_seen": 0}, "solution_seen has the wrong type"),
    ({"module": "track1/copy"}, "a module occurs twice"),
], ids=lambda value: str(value)[:30])
def test_a_field_of_the_wrong_type_is_named(run, passed, changes, said):
    answer = run("verify", forged(passed, **changes))

    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert "\x1b" not in answer.err


def test_counts_may_be_no_truth_values_and_not_negative(run, passed):
    for value in (True, -1, 1.5, "1"):
        data = data_of(passed)
        data["totals"]["core"]["passed"] = value
        Path("forged.json").write_text(json.dumps(data))

        assert run("verify", "forged.json").code == 2


def test_a_title_cannot_take_hold_of_the_terminal(run, passed):
    data = data_of(passed)
    data["name"] = "Ada\x1b[2J\ud800"
    Path("forged.json").write_text(json.dumps(data))

    answer = run("verify", "forged.json")

    assert answer.code == 0
    assert "\x1b" not in answer.out


def test_a_name_cannot_leave_the_data_of_a_page(run, passed):
    name = "</script><script>alert(1)</script>"
    run("certificate", "--html", "page.html", "--name", name)

    answer = run("verify", "page.html", "--json")

    assert "<script>alert" not in Path("page.html").read_text()
    assert (answer.code, json.loads(answer.out)["certificate"]["name"]) == (0, name)


@pytest.mark.parametrize(("what", "said"), [
    ("nothing.json", "nothing.json cannot be read: no such file or directory."),
    ("empty", "empty is a folder but not a workspace."),
    ("fresh", "The workspace fresh contains no record yet."),
    ("/dev/zero", "it is not a regular file")])
def test_what_is_not_there_is_said(run, home, what, said):
    for folder in ("empty", "fresh/.tritonlab"):
        Path(folder).mkdir(parents=True)

    answer = run("verify", what)

    assert answer.code == 2
    assert said in answer.err


def test_a_pipe_is_not_waited_for(run, home):
    os.mkfifo("pipe")

    assert run("verify", "pipe").code == 2


def test_sources_that_are_no_folder_are_said(run, passed):
    answer = run("verify", "page.html", "--sources", "nowhere")

    assert (answer.code, answer.err) == (
        2, "There is no folder nowhere. Pass the folder that contains the sources with "
           "`--sources FOLDER`.\n")


def test_a_certificate_that_cannot_be_read_is_no_crash(passed, tmp_path):
    for number in range(200):  # cut anywhere
        text = (passed / ".tritonlab" / "certificate.json").read_text()
        (tmp_path / "cut.json").write_text(text[: number * len(text) // 200])
        with pytest.raises(NoCertificate):
            certificate_reader.read(tmp_path / "cut.json")
