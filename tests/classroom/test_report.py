"""Pages of a class and feedback, with classes of 600."""

import dataclasses
import difflib
import html
import random
import re
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from grader.suite.mutants import Mutant, Patch
from tests.classroom import support
from tests.support import browsing
from tritonlab.classroom import book
from tritonlab.classroom.grading import summary_of
from tritonlab.classroom.report import analysis, feedback, pages, sources
from tritonlab.classroom.report.outcomes import ResultViews, outcome_of
from tritonlab.classroom.report.people import People
from tritonlab.classroom.report.sources import Sources
from tritonlab.classroom.roster import Roster, Student
from tritonlab.classroom.similarity import clusters, compare

MODULE = "track1/softmax"
STARTER = "\n".join(f"line_{n} = {n}" for n in range(60)) + "\n"
FIRST = ["Ada", "Björn", "Çelik", "Dmitri", "Eun-ji", "Fatima", "Grace", "Hiro", "Inês", "Jörg"]
LAST = ["Lovelace", "O'Brien", "Nguyen", "Müller", "Öztürk", "Petrova", "Silva", "Tanaka"]
HOSTILE = "<script>alert(1)</script>"


def finding(code="N01", line=5, todos=(1,), means="The maximum is not subtracted."):
    return {"code": code, "name": "mismatch", "seen": f"2 of 4 are wrong {HOSTILE}", "line": line,
            "means": means, "where": "kernel.py", "next_step": "Run `tritonlab hint`.",
            "todos": list(todos), "function": ""}


def graded(verdicts, **how):
    data = support.report("FAILED" if "FAILED" in verdicts else "PASSED",
                          *(("correctness", verdict) for verdict in verdicts))
    for one in data["results"]:
        one["findings"] = [finding(**how)] if one["verdict"] == "FAILED" else []
        one["replay"] = "--seed 5ec2e7"
        one["details"] = {"elements": [["(0,)", "1.5", "EXPECTED-VALUE"]]}
    data["seed"], data["output"] = "5ec2e7", "PRINTED"
    return data


def note_grade(store, assignment, blob, report, module=MODULE):
    key = f"{assignment}-{blob}"
    data = {"key": key, "module": module, "blob": blob, "cpu_s": 1.0, "seconds": 1.0,
            "report": report}
    store.save_result(key, data)
    return {"event": "graded", **msgspec.to_builtins(summary_of(assignment, module, blob, data))}


def students(count):
    return Roster(tuple(
        Student(f"s{n:05d}", f"{FIRST[n % 10]} {LAST[n % 8]}-{_word(n)}",
                f"{_word(n)}@uni.example", f"9{n:07d}", f"log{_word(n)}", github=f"gh-{_word(n)}",
                aliases=(f"canvas:34{n:05d}",)) for n in range(count)))


def _word(n):
    return "".join("qxzvk"[n // 5 ** place % 5] for place in range(5))


def a_class(root, count, assignments=1, tries=2):
    table = support.CLASS.split("[assignments.hw1]")
    text = table[0] + "".join(f"[assignments.hw{n + 1}]{table[1]}" for n in range(assignments))
    settings, store = support.write(root, text)
    people = students(count)
    rng = random.Random(7)
    events = []
    for n, student in enumerate(people):
        for assignment in settings.assignments:
            for attempt in range(tries if n % 10 else 0):
                lines = STARTER.splitlines()
                lines[4] = f"x = tl.exp(x)  # {student.name} {student.email} {n} {attempt}"
                lines[7] = f"# {student.login} {HOSTILE} {student.sis_id} {assignment}"
                blob = store.add({"kernel.py": "\n".join(lines).encode()})
                events.append({
                    "event": "imported", "student": student.id, "assignment": assignment,
                    "module": MODULE, "blob": blob, "name": f"{student.login}_kernel.py",
                    "at": f"2026-10-{10 + attempt + n % 3:02d}T12:00:00-04:00"})
                skill = rng.random() + attempt / 4
                verdicts = ["PASSED" if skill > hard else "FAILED"
                            for hard in (0.1, 0.3, 0.5, 0.7, 9)[:4 if n % 7 else 5]]
                events.append(note_grade(store, assignment, blob,
                                         graded(verdicts, code=rng.choice(["N01", "M02"]))))
    store.append(*events)
    return settings, store, people


def built(settings, store, people, mutants=None, **how):
    the_book = book.read(settings, store.log())
    return pages.build(settings, the_book, store, people, [*settings.assignments.values()],
                       {MODULE: STARTER}, mutants, **how)


def test_pages_of_600_students_are_small_and_quick(tmp_path):
    settings, store, people = a_class(tmp_path, 600)
    the_book = book.read(settings, store.log())

    begin = time.process_time()
    result = pages.build(settings, the_book, store, people, [settings.assignments["hw1"]],
                         {MODULE: STARTER})
    pages.write(tmp_path / "out", result)
    seconds = time.process_time() - begin

    assert len(result) == 601
    assert len(result["index.html"].encode()) < 2e6
    assert seconds < 6  # about 2 on an idle machine


def test_anonymous_pages_name_no_student(tmp_path):
    settings, store, people = a_class(tmp_path, 200)
    feedback.write(settings, book.read(settings, store.log()), store, settings.assignments["hw1"],
                   [one.id for one in people], tmp_path / "feedback")

    result = built(settings, store, people, anonymous=True)

    text = html.unescape("\n".join([*result, *result.values()])).lower()
    leaks = [term for one in people for term in
             (one.id, one.name, one.email, one.sis_id, one.login, one.github,
              one.name.split()[0], one.aliases[0].partition(":")[2]) if term.lower() in text]
    assert leaks == []
    named = html.unescape("\n".join(built(settings, store, people).values()))
    assert all(one.name in named for one in people)


def test_letters_spell_no_name(tmp_path):
    _, store = support.write(tmp_path)
    many = students(3_000)

    people = People(store, many, (), anonymous=True)

    letters = " ".join(people.label(one.id) for one in many).lower()
    assert [name for name in (*FIRST, *LAST) if name.lower() in letters] == []


def test_letters_stay_when_students_come_and_go(tmp_path):
    _, store = support.write(tmp_path)
    many = students(50)
    few = Roster(many.students[7:20])

    before, after = (People(store, one, (), anonymous=True) for one in (many, few))

    assert [before.label(one.id) for one in few] == [after.label(one.id) for one in few]
    assert len({before.label(one.id) for one in many}) == 50


@pytest.mark.parametrize(("text", "masked"), [
    ("# by Ada Lovelace-qqqqq", "# by …"), ("ada = 1", "… = 1"), ("adapt = 1", "adapt = 1"),
    ("ada_kernel", "…_kernel"), ("mail me: x.y@z.org", "mail me: …"), ("LOGQQQQQ's", "…'s")])
def test_masks(tmp_path, text, masked):
    _, store = support.write(tmp_path)

    people = People(store, students(1), ())

    assert people.masked(text) == masked


def test_aliases_are_masked(tmp_path):
    _, store = support.write(tmp_path)
    roster = students(1)
    roster = roster.with_aliases({"countess": roster.students[0].id})

    assert People(store, roster, ()).masked("countess_kernel") == "…_kernel"


def test_pages_escape_everything(tmp_path):
    settings, store, people = a_class(tmp_path, 20)
    settings = dataclasses.replace(settings, name=f"CS {HOSTILE}")
    people = Roster((dataclasses.replace(people.students[0], name=HOSTILE), *people.students[1:]))

    result = built(settings, store, people)

    assert not [name for name, text in result.items() if HOSTILE in text]
    assert all("http" not in text.replace("http-equiv", "") for text in result.values())


def test_statistics_of_an_assignment(tmp_path):
    settings, store, people = a_class(tmp_path, 600)

    page = html.unescape(built(settings, store, people)["index.html"])

    assert "60 not handed in" in page
    assert "The maximum is not subtracted." in page
    assert "x = tl.exp(x)  # …" in page  # the line, without its author
    assert "Look at this case: nearly all fail it." in page  # the fifth
    assert "submissions until the first pass" in page


@pytest.mark.parametrize("form", ["html", "md"])
@pytest.mark.parametrize(("reveal", "failures"), [("verdict", 0), ("first-failure", 1), ("all", 2)])
def test_feedback_shows_what_is_revealed(tmp_path, form, reveal, failures):
    settings, store = support.write(
        tmp_path, support.CLASS.replace("late =", f'reveal = "{reveal}"\nlate ='))
    blob = support.hand_in(store, "ada", STARTER, at="2026-10-10T12:00:00-04:00")
    store.append(note_grade(store, "hw1", blob, graded(["FAILED", "PASSED", "FAILED"])))

    names = feedback.write(settings, book.read(settings, store.log()), store,
                           settings.assignments["hw1"], ["ada", "../../etc/bob"], tmp_path / "out",
                           form)

    text = (tmp_path / "out" / f"ada.{form}").read_text()
    assert text.count("2 of 4 are wrong") == failures
    assert ("case 1" in text) == (reveal == "all")
    assert not [term for term in ("5ec2e7", "EXPECTED", "PRINTED", HOSTILE, "ada", "bob")
                if term in text]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(names.values())
    event = store.log().events[-1]
    assert (event["event"], event["reveal"], set(event["scores"])) == \
        ("feedback", reveal, {"ada", "../../etc/bob"})


def test_pages_and_feedback_give_reasons_and_points_by_kind(tmp_path):
    settings, store = support.write(tmp_path)
    blob = support.hand_in(store, "ada", STARTER, at="2026-10-14T12:00:00-04:00")
    store.append(note_grade(store, "hw1", blob, graded(["PASSED", "FAILED"])))
    its, roster = settings.assignments["hw1"], Roster((Student("ada"), Student("bob")))
    ruling = {"student": "bob", "assignment": "hw1"}
    store.append({"event": "overridden", "points": 80, "reason": "oral exam", **ruling},
                 {"event": "extended", "until": "2026-12-01T12:00:00-05:00", "reason": "ill",
                  **ruling})
    the_book = book.read(settings, store.log())

    result = built(settings, store, roster)
    texts = [feedback.render(feedback.feedback_of(
        settings, ResultViews(store), its, the_book.score("ada", its)), form)
        for form in feedback.FORMATS]

    page = next(text for text in result.values() if "<h1>bob" in text)
    assert "80*+" in result["index.html"]
    assert "oral exam" in page
    assert "ill" in page
    for text in texts:
        assert "40 of 100 points: open, 2 days late, which costs 10 points." in text
        assert "correctness 50 of 100 (1 of 2 cases), 10 deducted for lateness" in \
            text.replace("\\", "")


@pytest.mark.parametrize("form", ["html", "md"])
def test_feedback_on_a_draft_says_so(tmp_path, form):
    settings, store = support.write(tmp_path)
    blob = support.hand_in(store, "ada", STARTER, at="2026-10-10T12:00:00-04:00")
    event = note_grade(store, "hw1", blob, graded(["PASSED", "FAILED"]))
    store.append({**event, "effort": "values"})

    feedback.write(settings, book.read(settings, store.log()), store,
                   settings.assignments["hw1"], ["ada"], tmp_path / "out", form)

    text = (tmp_path / "out" / f"ada.{form}").read_text()
    assert "This is a draft: only values were judged" in text
    assert "No points yet: not graded." in text
    assert "2 of 4 are wrong" in text


def test_file_names_are_safe_and_distinct():
    ids = ["ada", "ADA", "..", "a/b", "a_b", "nul", "", "x" * 300, "é", "-rf", "ada lovelace"]

    names = feedback.file_names(ids, "html")

    assert len({name.lower() for name in names.values()}) == len(ids)
    assert all(Path(name).name == name and not name.startswith((".", "-"))
               and len(name) < 140 and name.isascii() and name != "nul.html"
               for name in names.values())


def test_student_pages_show_feedback_as_it_was_sent(tmp_path):
    settings, store, people = a_class(tmp_path, 5)
    feedback.write(settings, book.read(settings, store.log()), store, settings.assignments["hw1"],
                   [one.id for one in people], tmp_path / "feedback")
    letters = People(store, people, ()).letters("s00001")

    page = built(settings, store, people)[f"students/{letters}.html"]

    assert "Feedback as sent" in page
    assert "Lines added: " in page


def test_a_file_that_cannot_be_graded_counts_in_no_case(tmp_path):
    settings, store = support.write(tmp_path)
    blob = support.hand_in(store, "ada", STARTER)
    store.append(note_grade(store, "hw1", blob, graded(["FAILED"], code="P01", todos=(1, 2))))
    the_book = book.read(settings, store.log())
    its = settings.assignments["hw1"]

    module, = analysis.analyse(settings, the_book, ResultViews(store), Sources(store, {}), its,
                               the_book.scores(its, ["ada"])).modules

    assert module.items == []
    assert [(todo.number, todo.wrong, todo.blank) for todo in module.todos] == \
        [(1, 0, 1), (2, 0, 1)]


def test_feedback_of_a_large_class_is_kept_in_several_events(tmp_path):
    settings, store = support.write(tmp_path)
    people = students(1200)

    feedback.write(settings, book.read(settings, store.log()), store, settings.assignments["hw1"],
                   [one.id for one in people], tmp_path / "feedback", "md")

    log = store.log()
    assert log.problems == ()
    assert {student for event in log.events for student in event["scores"]} == \
        {one.id for one in people}
    assert all("Feedback as sent" in text for name, text in built(settings, store, people).items()
               if name != "index.html")


def test_a_submission_that_cannot_be_read_fails_for_its_reason():
    data = support.report("FAILED", ("correctness", "FAILED"), reason="It is not UTF-8.")
    data["results"][0]["findings"] = []

    result = outcome_of(data)

    assert (result.failures, result.first_failure) == ((), "It is not UTF-8.")


def test_failures_without_a_mutant_are_listed(tmp_path):
    settings, store, people = a_class(tmp_path, 60)
    mutant = Mutant("a", "", (Patch("a", "b"),), ("N01",), "The maximum is not subtracted.")

    page = html.unescape(built(settings, store, people, {MODULE: [mutant]})["index.html"])
    other = built(settings, store, people, {MODULE: [mutant, replace(mutant, codes=("M02",))]})

    section = page.partition("failures that no mutant explains")[2].partition("TODOs")[0]
    assert "M02" in section
    assert "N01" not in section
    assert "All of them fail in: case " in section
    assert "x = tl.exp(x)" in section
    assert "no mutant explains" not in other["index.html"]


def test_similar_submissions_are_in_the_instructors_copy_only(tmp_path):
    settings, store, people = a_class(tmp_path, 20)
    the_book = book.read(settings, store.log())
    scores = the_book.scores(settings.assignments["hw1"], [one.id for one in people])
    pair = compare.Cluster(("s00001", "2024/zed"), compare.Sameness.BYTES, 1)
    clusters.save(store, the_book, "hw1", scores,
                  {MODULE: compare.Similarity(20, 10, clusters=(pair,))})
    feedback.write(settings, the_book, store, settings.assignments["hw1"],
                   [one.id for one in people], tmp_path / "feedback")

    index = built(settings, store, people)["index.html"]
    anonymous = built(settings, store, people, anonymous=True)
    support.hand_in(store, "s00000", "new", at="2026-10-12T12:00:00-04:00")
    later = built(settings, store, people)["index.html"]

    row = f"<td>{html.escape(people.students[1].name)}, 2024/zed</td>"
    assert row in index.replace("&#39;", "&#x27;")
    assert "identical bytes" in index
    assert "have changed since" not in index
    assert "have changed since" in later
    files = [*anonymous.values(), *(path.read_text() for path in (tmp_path / "feedback").iterdir())]
    assert [text for text in files if "identical bytes" in text or "similar" in text] == []


def test_a_damaged_comparison_counts_as_none(tmp_path):
    settings, store, people = a_class(tmp_path, 5)
    (store.folder / clusters.FOLDER).mkdir()
    (store.folder / clusters.FOLDER / "hw1.json").write_text('{"clusters": 3}')

    assert "similar submissions" not in built(settings, store, people)["index.html"]


def test_journals_show_hints_grades_and_time_until_a_pass(tmp_path):
    settings, store, people = a_class(tmp_path, 20)
    graded_ = {"event": "graded", "suite_sha256": "0" * 64}
    passed = [
        {"event": "started"}, {"event": "hint", "group": "A", "rung": 1},
        {"event": "hint", "group": "A", "rung": 1}, {**graded_, "verdict": "FAILED"},
        {**graded_, "verdict": "PASSED", "time": "14:30"},
        {"event": "hint", "group": "B", "rung": 2}]
    for student, records in (("s00001", passed), ("s00002", passed[:2])):
        journal = store.add({"journal.jsonl": support.journal(*records)})
        support.hand_in(store, student, "x", at="2026-10-12T12:00:00-04:00", journal=journal)

    page = built(settings, store, people)["index.html"]
    section = page.partition("until the first pass, from journals")[2].partition("<h3>")[0]

    assert "Journals with this module: 2, with a pass: 1." in section
    assert '<th scope="row">A, step 1</th><td class="n">2</td>' in section
    assert "B, step 2" not in section
    cells = re.findall(r'<td class="n">(\d+)</td>', section)
    assert cells == ["0", "1", "0", "0", "0", "0", "1", "0", "0", "0", "2"]
    assert "from journals" not in built(*a_class(tmp_path / "other", 5))["index.html"]


@pytest.mark.parametrize("seed", range(20))
def test_a_diff_gives_the_new_file_and_its_places(seed):
    draw = random.Random(seed)
    old = [draw.choice("abc") for _ in range(draw.randrange(40))]
    new = [draw.choice("abcd") if draw.random() < 0.1 else line for line in old
           if draw.random() > 0.1] + ["e"] * draw.randrange(2)

    lines = sources.difference(old, new)

    result, place = [], 0
    for line in lines:
        if header := re.match(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line):
            start, begin = (int(header[n]) - (header[n + 1] != "0") for n in (1, 3))
            result += old[place:start]
            assert len(result) == begin
            place = start
        elif line[0] == "+":
            result.append(line[1:])
        else:
            assert old[place] == line[1:]
            result += [line[1:]] if line[0] == " " else []
            place += 1
    assert result + old[place:] == new
    assert len(lines) <= len(list(difflib.unified_diff(old, new, lineterm="", n=2))) + 4


def test_pages_of_students_who_left_are_removed(tmp_path):
    (tmp_path / "students").mkdir()
    (tmp_path / "students" / "ABCDE.html").write_text("old")
    (tmp_path / "students" / "notes.txt").write_text("kept")

    pages.write(tmp_path, {"index.html": "new"})

    assert [path.name for path in (tmp_path / "students").iterdir()] == ["notes.txt"]


@pytest.mark.course
def test_pages_in_a_browser(tmp_path):
    settings, store, people = a_class(tmp_path, 60, assignments=3)
    feedback.write(settings, book.read(settings, store.log()), store, settings.assignments["hw1"],
                   [one.id for one in people], tmp_path / "feedback")
    the_book = book.read(settings, store.log())
    several = compare.Cluster(tuple(one.id for one in people), compare.Sameness.CODE, 9)
    clusters.save(store, the_book, "hw1", the_book.scores(settings.assignments["hw1"], []),
                  {MODULE: compare.Similarity(60, 10, clusters=(several,))})
    records = [{"event": "hint", "group": "A", "rung": 1},
               {"event": "graded", "verdict": "PASSED", "suite_sha256": "0" * 64}]
    support.hand_in(store, "s00001", "x", at="2026-10-12T12:00:00-04:00",
                    journal=store.add({"journal.jsonl": support.journal(*records)}))
    result = built(settings, store, people, {MODULE: []})
    pages.write(tmp_path / "out", result)
    assert all(title in result["index.html"] for title in (
        "similar submissions", "no mutant explains", "from journals"))
    letters = People(store, people, ()).letters("s00001")
    files = [tmp_path / "out" / "index.html", tmp_path / "out" / "students" / f"{letters}.html",
             tmp_path / "feedback" / "s00001.html"]

    with browsing.browser() as chromium:
        for file in files:
            for width in browsing.WIDTHS:
                for scheme in browsing.SCHEMES:
                    with browsing.opened(chromium, file, width, scheme) as shown:
                        where = (file.name, width, scheme)
                        assert (shown.requests, shown.complaints) == ([], []), where
                        assert shown.page.evaluate(browsing.CUT_OFF) == [], where
                        worst = shown.page.evaluate(browsing.CONTRASTS)[0]
                        assert worst[0] >= browsing.CONTRAST, (where, worst)
        with browsing.opened(chromium, files[0]) as shown:
            shown.page.click(".sorts button >> nth=0")
            shown.page.click(".sorts button >> nth=0")
            names = shown.page.locator(".sorts tbody th").all_inner_texts()
            assert names[0] > names[-1]
            assert browsing.printed(shown.page, "A4")
