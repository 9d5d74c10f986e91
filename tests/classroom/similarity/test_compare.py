"""Who is listed: planted copies, and nobody who works alone."""

import functools
import random
from dataclasses import replace

import pytest

from tests.classroom.similarity import population
from tests.classroom.similarity.disguises import DISGUISES
from tests.classroom.similarity.population import given, honest, of_family
from tests.support.tiers import by_default
from tritonlab.classroom.similarity import canonical, fragments
from tritonlab.classroom.similarity.compare import ClassSource, Sameness, compare
from tritonlab.course import course

READ = functools.lru_cache(4096)(fragments.read)
MOST_BY_ONE_AUTHOR = 35  # pairs of variants that are listed: one author wrote them from each other
MOST_MISSED = 0.03  # of copies of variants
# Of copies of eight students who took the same unusual approach, as eight of a hundred did.
# One of them has nothing of her own.
MISSED = {"renamed": 2, "split into helpers": 3, "padded": 2, "all of these": 2}


@pytest.fixture(autouse=True)
def read_once(monkeypatch):
    """Most submissions of a class are in several others too."""
    monkeypatch.setattr(fragments, "read", READ)


def family(count, seed=1):
    return [ClassSource(f"f{number:02}", *of_family(number, seed)) for number in range(count)]


def listed(similarity):
    return {frozenset(pair.students) for pair in similarity.pairs}


@pytest.mark.parametrize(("count", "blanks", "alike", "seed"), by_default(8, [
    *((count, blanks, 0, seed) for count in (5, 12, 30, 120) for blanks in (6, 19)
      for seed in (1, 2)),
    (300, 19, 0, 3), (300, 6, 0, 3), (270, 19, 30, 4), (90, 19, 12, 5)]))
def test_students_who_work_alone_are_not_listed(count, blanks, alike, seed):
    similarity = compare([*honest(count, blanks, seed), *family(alike, seed)], given())

    assert similarity.pairs == ()


@pytest.mark.parametrize("name", DISGUISES)
def test_a_copy_of_an_unusual_solution_is_found_under_a_disguise(name):
    draw = random.Random(name)
    others, mine = honest(100, seed=6), family(8)
    missed = []
    for one in mine:
        copy = ClassSource("copy", DISGUISES[name](one.source, draw))
        if {one.student, "copy"} not in listed(compare([*others, *mine, copy], given())):
            missed.append(one.student)

    assert len(missed) <= MISSED.get(name, 1), missed


@pytest.mark.parametrize(("name", "kind"), [
    ("as it is", Sameness.BYTES), ("reformatted", Sameness.FORMAT),
    ("comments rewritten", Sameness.FORMAT), ("renamed", Sameness.NAMES),
    ("reordered", Sameness.NAMES), ("split into helpers", Sameness.CODE),
    ("padded", Sameness.CODE), ("all of these", Sameness.CODE)])
def test_the_strongest_kind_of_evidence_names_the_disguise(name, kind):
    others, (one,) = honest(60), family(1)
    copy = ClassSource("copy", DISGUISES[name](one.source, random.Random(1)))

    (pair,) = compare([*others, one, copy], given()).pairs

    assert pair.students == ("f00", "copy")
    assert pair.kind is kind


def test_a_leaked_solution_is_one_cluster_whatever_its_disguises():
    (leak,) = family(1)
    names = ["as it is", "renamed", "reordered", "reformatted", "comments rewritten"]
    copies = [ClassSource(f"c{n}", DISGUISES[names[n % 5]](leak.source, random.Random(n)))
              for n in range(12)]

    similarity = compare([*honest(150), leak, *copies], given())

    assert [set(one.students) for one in similarity.clusters] == [
        {"f00", *(one.student for one in copies)}]


def test_equal_answers_that_many_give_are_named_as_common():
    source, _ = population.student(3)
    same = [ClassSource(f"same{number:02}", source) for number in range(40)]

    similarity = compare([*honest(60, seed=2), *same], given())

    assert similarity.pairs == ()
    group = similarity.groups[0]
    assert {*group.students} >= {one.student for one in same}
    assert "What is common here is common in this class." in group.text


def test_a_class_that_hands_in_the_exercise_as_it_is_has_no_pair():
    exercise = given()[0]

    similarity = compare([ClassSource(f"s{number}", exercise) for number in range(3)], given())

    assert similarity.pairs == ()
    assert [group.kind for group in similarity.groups] == [Sameness.BYTES]


def test_copied_wrong_answers_are_counted_with_the_rare_failure():
    others = [replace(one, failure=one.failure and "N01 a") for one in honest(60)]
    (one,) = family(1)
    wrong = one.source.replace("m = m_new", "m = m_new + 1")
    pair_of = [ClassSource("one", wrong, "N02 b c"),
               ClassSource("other", DISGUISES["all of these"](wrong, random.Random(1)), "N02 b c")]

    (pair,) = compare([*others, *pair_of], given()).pairs

    assert [evidence.kind for evidence in pair.evidence][:2] == [Sameness.CODE, Sameness.FAILURE]
    assert "as 2 of 62 submissions do" in pair.evidence[1].text


def test_equal_failures_alone_are_no_evidence():
    submissions = [replace(one, failure="M02 rare" if number < 2 else "")
                   for number, one in enumerate(honest(300))]

    assert compare(submissions, given()).pairs == ()


def test_rare_comments_and_names_are_quoted():
    others = honest(60)
    remark = "  # my grandmother's recipe for stable exponentials, do not touch"
    advice = "    # the wombat said that a grid needs a comma\n    # one quokka per row\n"
    one, other = (replace(entry, source=entry.source.replace(
        "    grid = ", f"{advice}    quokka_count = 3{remark}\n    grid = ", 1))
        for entry in others[:2])

    (pair,) = compare([one, other, *others[2:]], given()).pairs

    words = next(one for one in pair.evidence if one.kind is Sameness.WORDS)
    assert "my grandmother's recipe for stable exponentials" in words.text
    assert '"quokka_count"' in words.text


def test_journals_that_share_records_are_listed_whatever_the_code():
    one, other, *others = honest(30)
    one = replace(one, chain=frozenset("abc"))
    other = replace(other, chain=frozenset("bcd"))

    (pair,) = compare([one, other, *others], given()).pairs

    assert pair.kind is Sameness.JOURNAL
    assert "2 records" in pair.evidence[0].text


def test_a_journal_that_the_course_hands_out_is_no_evidence():
    submissions = [replace(one, chain=frozenset("a")) for one in honest(10)]

    assert compare(submissions, given()).pairs == ()


def test_earlier_submissions_are_compared_with_the_class_only():
    (one,), another = family(1), honest(1, seed=9)[0]
    earlier = [replace(one, student="2025/x"), replace(another, student="2025/y"),
               replace(another, student="2024/y")]

    similarity = compare([*honest(60), one], given(), earlier)

    assert listed(similarity) == {frozenset({"f00", "2025/x"})}
    assert similarity.n_students == 61


def test_a_copy_that_is_not_python_is_found_too():
    (one,) = family(1)
    broken = one.source.replace("def softmax(", "def softmax((", 1)
    copy = DISGUISES["renamed"](one.source, random.Random(1)).replace(
        "def softmax(", "def softmax((", 1)

    both = [ClassSource("one", broken), ClassSource("other", copy)]

    similarity = compare([*honest(60), *both], given())

    assert listed(similarity) == {frozenset({"one", "other"})}


@pytest.mark.parametrize("source", [
    "", "(", '"""', "'''\n\\", "\\", "\0", "def", "x = (((\ndef f(:\n  '", "é = '\ud800'", "0x\n1e",
    "if:\n\telse" * 50])
def test_anything_can_be_compared(source):
    similarity = compare([ClassSource("a", source), ClassSource("b", source), *honest(3)], given())

    assert similarity.pairs == ()


def test_marks_and_lines_point_at_the_shared_code():
    (one,) = family(1)
    disguised = DISGUISES["renamed"](one.source, random.Random(1))
    copy = ClassSource("copy", f"# first line\n{disguised}")

    (pair,) = compare([*honest(60), one, copy], given()).pairs

    for source, marks, lines in zip((one.source, copy.source), pair.marks, pair.lines, strict=True):
        marked = " ".join(source[start:end] for start, end in marks)
        assert "tl.maximum" in marked
        assert "def check_argument" not in marked
        assert all(any(first <= source.count("\n", 0, start) + 1 <= last for first, last in lines)
                   for start, _ in marks)


def test_a_comparison_does_not_depend_on_the_order_of_students():
    submissions = [*honest(40), *family(1), ClassSource("copy", family(1)[0].source)]

    forth, back = compare(submissions, given()), compare(submissions[::-1], given())

    assert listed(forth) == listed(back) != set()
    assert forth.pairs[0].bits == pytest.approx(back.pairs[0].bits)


@pytest.mark.course
def test_right_variants_and_mutants_of_all_modules_are_told_from_copies(monkeypatch):
    """Each module is a class: of the solution, its variants and its mutants."""
    for owner, name in ((fragments, "read"), (canonical, "formatted"), (canonical, "unnamed")):
        # Most texts take part in five comparisons.
        monkeypatch.setattr(owner, name, functools.cache(getattr(owner, name)))
    false, by_one_author, missed, copies = [], [], [], 0
    for module in course.load().modules:
        known = list(population.texts(module))
        entries = population.course_files(module)
        for students in listed(compare(entries, known)):
            of_variants = all(one.startswith("variant") for one in students)
            (by_one_author if of_variants else false).append((module.slug, *students))
        draw = random.Random(module.slug)
        variants = [one for one in entries if one.student.startswith("variant")]
        disguised = [*DISGUISES] * 2
        while disguised:  # some variants at a time, each with one copy
            copied = [(one, disguised.pop(0))
                      for one in draw.sample(variants, min(4, len(variants), len(disguised)))]
            copies += len(copied)
            pairs = listed(compare([*entries, *(
                ClassSource(f"copy of {one.student}", DISGUISES[name](one.source, draw),
                            one.failure) for one, name in copied)], known))
            missed += [(module.slug, one.student, name) for one, name in copied
                       if {one.student, f"copy of {one.student}"} not in pairs]

    assert false == []
    assert len(by_one_author) <= MOST_BY_ONE_AUTHOR
    assert len(missed) <= MOST_MISSED * copies, missed
