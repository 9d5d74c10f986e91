"""`tritonlab class similar`: planted copies, honest classes, and files that cannot be compared."""

from __future__ import annotations

import json
import random

import pytest

from tests.classroom import support
from tests.classroom.similarity.disguises import DISGUISES
from tests.classroom.similarity.population import honest, of_family

MODULE = "track1/softmax"


def a_class(root, sources, roster=""):
    """A class of the shipped course in a folder; each student has handed in a source."""
    _, store = support.write(root, support.CLASS.replace('course = "course"', "")
                             .replace("late =", 'take = "best"\nlate ='))
    (root / "roster.csv").write_text(roster or "student,name\n" + "".join(
        f"{student},Name of {student}\n" for student in sources))
    store.append(*({"event": "imported", "student": student, "assignment": "hw1",
                    "module": MODULE, "blob": store.add({"kernel.py": source})}
                   for student, source in sources.items()))
    return store


def honest_sources(count, seed=1):
    return {one.student: one.source.encode() for one in honest(count, seed=seed)}


def similar(run, *arguments):
    result = run("class", "similar", "hw1", *arguments, "--json")
    assert result.code == 0, result.err
    (module,) = json.loads(result.out)["modules"]
    return module


def students(module):
    return [set(pair["students"]) for pair in module["pairs"]]


def test_planted_copies_are_ranked_and_shown_side_by_side(run, home):
    names = ["as it is", "renamed", "reordered", "reformatted", "comments rewritten", "padded"]
    sources = honest_sources(100)
    for number, name in enumerate(names):
        source, _ = of_family(number)
        sources |= {f"a{number}": source.encode(),
                    f"b{number}": DISGUISES[name](source, random.Random(1)).encode()}
    a_class(home, sources)

    module = similar(run, "--html", "similar.html")
    text = run("class", "similar", "hw1", "--plain").out

    pairs = students(module)
    assert len([{f"a{n}", f"b{n}"} for n in range(6) if {f"a{n}", f"b{n}"} in pairs]) >= 5
    assert not [pair for pair in pairs if {one[1:] for one in pair} - set("012345")]
    assert module["pairs"][0]["kind"] == "identical bytes"
    assert "a0 and b0: identical bytes, " in text
    assert "This is evidence, not a verdict." in text
    html = (home / "similar.html").read_text()
    assert "a0 (Name of a0) and b0 (Name of b0)" in html
    assert "<mark>" in html


def test_equal_answers_to_few_blanks_accuse_nobody(run, home):
    a_class(home, {one.student: one.source.encode() for one in honest(80, blanks=4)})

    result = run("class", "similar", "hw1", "--plain")

    assert "No pair shares more than chance explains." in result.out
    assert similar(run)["pairs"] == []


def test_the_report_shows_the_clusters_of_the_last_comparison(run, home):
    source = of_family(1)[0].encode()
    a_class(home, {**honest_sources(30), "one": source, "two": source})
    run("class", "similar", "hw1")

    run("class", "report", "--html", "reports")
    run("class", "report", "--html", "anonymous", "--anonymous")

    assert "<td>Name of one, Name of two</td>" in (home / "reports" / "index.html").read_text()
    assert "similar" not in (home / "anonymous" / "index.html").read_text()


def test_files_that_cannot_be_compared_are_named(run, home):
    source, _ = of_family(1)
    nasty = {"empty": b" \n", "huge": b"x = 1\n" * 180_000, "latin": "# é\n".encode("latin-1"),
             "broken": b"def f(:\n", "binary": bytes(range(256)), "one": source.encode(),
             "other": source.encode("utf-16"), "third": source.encode()}
    a_class(home, {**honest_sources(40), **nasty})

    module = similar(run, "--html", "similar.html")

    assert students(module) == [{"one", "third"}]
    assert module["left_out"] == [
        "Left out, because the file is empty: empty.",
        "Left out, because the file is longer than 200,000 bytes: huge."]
    assert module["submissions"] == 46


def test_a_damaged_submission_is_named(run, home):
    store = a_class(home, honest_sources(3))
    next(store.folder.glob("blobs/*/*")).write_bytes(b"damaged")

    module = similar(run)

    assert "the stored submission is missing or damaged" in module["left_out"][0]
    assert module["submissions"] == 2


def test_earlier_submissions_and_other_classes_are_compared(run, home, tmp_path):
    mine = of_family(1)[0].encode()
    (tmp_path / "2024" / "zed").mkdir(parents=True)
    (tmp_path / "2024" / "zed" / "kernel.py").write_bytes(mine)
    a_class(tmp_path / "2025", {"yan": mine})
    a_class(home, {**honest_sources(60), "one": mine})

    module = similar(run, "--against", str(tmp_path / "2024"), "--against", str(tmp_path / "2025"),
                     "--html", "similar.html")

    assert sorted(map(sorted, students(module))) == [["2024/zed", "one"], ["2025/yan", "one"]]
    assert module["submissions"] == 61
    assert "2024/zed" in (home / "similar.html").read_text()


@pytest.mark.parametrize(("files", "sentence"), [
    ([], "cannot be read"), (["notes.txt"], "is not recognized"),
    (["track1/copy/zed/kernel.py"], "")])
def test_a_folder_without_submissions_is_refused(run, home, tmp_path, files, sentence):
    for name in files:
        (tmp_path / "old" / name).parent.mkdir(parents=True)
        (tmp_path / "old" / name).write_text("x = 1\n")
    a_class(home, honest_sources(3))

    result = run("class", "similar", "hw1", "--against", str(tmp_path / "old"))

    assert (result.code, sentence in result.err) == (2 if sentence else 0, True)


def test_students_of_one_group_are_not_listed(run, home):
    source = of_family(1)[0].encode()
    sources = {**honest_sources(40), "one": source, "two": source}
    a_class(home, sources, "student,group\n" + "".join(
        f"{student},{'team' if student in ('one', 'two') else ''}\n" for student in sources))

    module = similar(run)

    assert (module["pairs"], module["pairs_of_one_group"]) == ([], 1)


def test_journals_that_were_one_are_listed(run, home):
    store = a_class(home, honest_sources(20))
    journal = support.journal({"event": "started", "module": MODULE}, {"event": "graded"})
    for student in ("s003", "s007"):
        support.hand_in(store, student, honest(20)[int(student[1:])].source, attempt="2",
                        journal=store.add({"journal.jsonl": journal}))

    module = similar(run)

    assert students(module) == [{"s003", "s007"}]
    assert module["pairs"][0]["kind"] == "journals with common records"
