"""The roster: exports of platforms, damaged rows, and which student a text names."""

from __future__ import annotations

import re

import pytest

from tests.support import class_layouts
from tritonlab.classroom.roster import Match, Roster, Student
from tritonlab.errors import TritonlabError

OURS = "student,name,email,sis_id,login,section,github,group\n" \
       "alice,Alice Smith,alice@uni.edu,1001,asmith,A,octoalice,Team 1\n" \
       "bob,Bob O'Brien,bob@uni.edu,1002,bobrien,B,bob-dev,Team 1\n"


def named(*names: str) -> Roster:
    return Roster(tuple(Student(f"s{number}", name) for number, name in enumerate(names)))


def test_our_own_file_is_read_in_any_order_of_columns():
    lines = [line.split(",") for line in OURS.splitlines()]
    turned = "\n".join(",".join(reversed(cells)) for cells in lines)

    roster = Roster.parse(turned)

    assert roster == Roster.parse(OURS)
    assert roster.students[0] == Student("alice", "Alice Smith", "alice@uni.edu", "1001", "asmith",
                                         "A", "octoalice", "Team 1")
    assert roster.problems == ()


@pytest.mark.parametrize("data", [
    OURS.encode("utf-8-sig"), OURS.replace("\n", "\r\n").encode(), OURS.encode("utf-16"),
    OURS.replace(",", ";").encode(), OURS.replace(",", "\t").encode("utf-16"),
    b"sep=,\r\n" + OURS.encode()], ids=["BOM", "CRLF", "UTF-16", "semicolons", "Excel", "sep"])
def test_files_of_spreadsheets_are_read(tmp_path, data):
    (tmp_path / "roster.csv").write_bytes(data)

    assert Roster.read(tmp_path / "roster.csv") == Roster.parse(OURS)


def test_an_older_encoding_is_read_and_reported(tmp_path):
    (tmp_path / "roster.csv").write_bytes("student,name\nz,Zoë\n".encode("cp1252"))

    roster = Roster.read(tmp_path / "roster.csv")

    assert roster.students[0].name == "Zoë"
    assert roster.problems == ("The roster is not UTF-8; it was read as Windows-1252.",)


@pytest.mark.parametrize(("text", "student"), [
    ('Student,ID,SIS User ID,SIS Login ID,Section,HW1 (77)\n    Points Possible,,,,,10\n'
     '"Smith, Alice",340934,1001,asmith,A,7\n"Student, Test",9,,d41d8c,A,\n',
     Student("asmith", "Smith, Alice", sis_id="1001", login="asmith", section="A",
             aliases=("canvas:340934",))),
    ("First Name,Last Name,SID,Email,Role,Section\nAlice,Smith,1001,a@uni.edu,Student,A\n"
     "Tea,Cher,1,t@uni.edu,Instructor,\n",
     Student("1001", "Alice Smith", "a@uni.edu", "1001", section="A", first="Alice", last="Smith")),
    ("Identifier,Full name,ID number,Email address,Status,Grade,Feedback comments\n"
     "Participant 771,Alice Smith,1001,a@uni.edu,Submitted,,\n",
     Student("1001", "Alice Smith", "a@uni.edu", "1001", aliases=("moodle:771",))),
    ("First name,Last name,Username,ID number,Email address,Groups\n"
     "Alice,Smith,asmith,1001,a@uni.edu,Team 1\n",
     Student("asmith", "Alice Smith", "a@uni.edu", "1001", "asmith", group="Team 1",
             first="Alice", last="Smith")),
    ("identifier,github_username,github_id,name\nalice,octoalice,5,Alice Smith\n",
     Student("alice", "Alice Smith", github="octoalice")),
    ("username,first_name,last_name,email,section,github_id,role\n"
     "octoalice,Alice,Smith,a@uni.edu,A,5,student\ntea,Tea,Cher,,,6,teacher\n",
     Student("octoalice", "Alice Smith", "a@uni.edu", section="A", github="octoalice",
             first="Alice", last="Smith")),
    ("id,first_name,last_name,email,lms_user_id\nalice,Alice,Smith,a@uni.edu,4\n",
     Student("alice", "Alice Smith", "a@uni.edu", first="Alice", last="Smith")),
], ids=["Canvas", "Gradescope", "Moodle's worksheet", "Moodle's participants", "GitHub Classroom",
        "Classroom 50", "nbgrader"])
def test_exports_of_platforms_are_read(text, student):
    assert Roster.parse(text).students == (student,)


@pytest.mark.parametrize(("text", "problem"), [
    ("student,name\nalice,A\n,B\n", "Line 3 is left out: it has no id."),
    ("student\nalice\nbob\nAlice\n", "Line 4 is left out: 'Alice' is already on line 2."),
    ("student\nalice\n../x\n", "Line 3 is left out: the id '../x' has a slash"),
    ("student,email\nalice,a@x\nbob,A@X\n", "Lines 2, 3 have the same email, 'a@x'"),
    ("student,shoe size\nalice,4\n", "The column 'shoe size' is unknown and not used"),
    ("student,name\nalice\n", "Line 2 has 1 cells; the header has 2."),
    ("student,email,mail\nalice,a@x,b@x\n", "The column 'mail' is not used"),
])
def test_a_row_that_cannot_be_used_is_reported_with_its_line(text, problem):
    roster = Roster.parse(text)

    assert any(sentence.startswith(problem) for sentence in roster.problems)
    assert roster.get("alice")


@pytest.mark.parametrize(("text", "reason"), [
    ("", "is empty"), ("student\n", "has no students"), ("shoe,size\n1,2\n", "no column that"),
    ('student\n"a\0b"\n', "not CSV|no students")])
def test_an_unusable_roster_is_an_error(text, reason):
    with pytest.raises(TritonlabError, match=reason):
        Roster.parse(text)


def test_a_missing_roster_is_an_error(tmp_path):
    with pytest.raises(TritonlabError, match="cannot be read"):
        Roster.read(tmp_path / "none.csv")


@pytest.mark.parametrize(("text", "how"), [
    ("alice", "id"), ("ALICE", "id"), ("asmith", "login"), ("1001", "sis_id"),
    ("Alice@Uni.edu", "email"), ("OctoAlice", "github"), ("smithalice", "lastfirst"),
    ("Alice Smith", "name"), ("Smith, Alice", "name"), ("alice  SMITH", "name"),
    ("Älíce Smith", "name"), ("alicesmith", "lastfirst")])
def test_a_text_names_a_student(text, how):
    match = Roster.parse(OURS).match(text)

    assert match.student is not None
    assert (match.student.id, match.how) == ("alice", how)


@pytest.mark.parametrize(("name", "text"), [
    ("Bob O'Brien", "obrienbob"), ("Bob O’Brien", "Bob O'Brien"), ("Søren Łukasz", "Soren Lukasz"),
    ("Mary Ann van der Berg", "vanderbergmaryann"), ("Anne-Marie Kim", "kimannemarie"),
    ("Anne-Marie Kim", "Annemarie Kim"), ("Jürgen Weiß", "weissjurgen"),
    ("Jose\u0301 Nu\u0303ez", "José Nũez")])
def test_names_match_without_accents_punctuation_and_order(name, text):
    assert named("Somebody Else", name).match(text).student == Student("s1", name)


@pytest.mark.parametrize("text", ["Alicia Smith", "Alise", "smith", "Alice B. Smith", "ali", ""])
def test_what_only_resembles_a_student_matches_nobody(text):
    assert Roster.parse(OURS).match(text).student is None


def test_the_nearest_students_are_listed():
    assert Roster.parse(OURS).match("Alicia Smith") == Match(nearest=("alice (Alice Smith)",))


def test_a_name_of_two_students_matches_neither():
    match = named("Kim Lee", "Lee Kim").match("leekim")

    assert match == Match(how="ambiguous", nearest=("s0 (Kim Lee)", "s1 (Lee Kim)"))


def test_a_login_that_is_the_github_name_of_another_matches_neither():
    roster = Roster((Student("s1", login="bob"), Student("s2", github="bob")))

    assert roster.match("bob").how == "ambiguous"


def test_an_id_goes_before_the_columns_of_others():
    roster = Roster((Student("bob"), Student("s2", github="bob")))

    assert roster.match("bob") == Match(Student("bob"), "id")


@pytest.mark.parametrize(("ids", "student"), [
    (["email:BOB@uni.edu"], "bob"), (["sis_id:1002", "email:bob@uni.edu"], "bob"),
    (["email:none@uni.edu"], "alice"), (["repository:cs149-hw1-bob-dev"], "bob"),
    (["github:bob-dev", "repository:x-dev"], "bob")])
def test_identifiers_of_a_platform_go_before_the_text(ids, student):
    match = Roster.parse(OURS).match("Alice Smith", ids)

    assert match.student is not None
    assert match.student.id == student


def test_identifiers_that_disagree_match_nobody():
    match = Roster.parse(OURS).match("Alice Smith", ["sis_id:1001", "email:bob@uni.edu"])

    assert match.how == "ambiguous"


def test_a_namesake_with_another_number_is_not_the_student():
    """Who dropped the course may have the name of somebody who did not."""
    roster = Roster((Student("a", "Bob Smith", aliases=("canvas:1",)),))

    assert roster.match("smithbob", ["canvas:2"]) == Match(nearest=("a (Bob Smith)",))
    assert roster.match("smithbob", ["canvas:1"]).how == "canvas"


def test_a_number_of_one_platform_is_not_one_of_another():
    roster = Roster((Student("a", "Al Kim", sis_id="77"), Student("b", "Bo Kim")))

    match = roster.match("kimbo", ["canvas:77"])

    assert (match.student, match.how) == (roster.students[1], "lastfirst")


@pytest.mark.parametrize(("number", "name", "student"), [
    ("771", "Alice Smith", "alice"), ("771", "Participant 771", "alice"), ("771", "Zed Zoë", None),
    ("771", "Bob Jones", None), ("999", "Bob Jones", "bob")])
def test_a_participant_s_number_of_another_assignment_does_not_mislead(number, name, student):
    roster = Roster((Student("alice", "Alice Smith", aliases=("moodle:771",)),
                     Student("bob", "Bob Jones", aliases=("moodle:772",))))

    match = roster.match(name, (f"moodle:{number}",))

    assert (match.student and match.student.id) == student


def test_the_members_of_a_group_are_listed():
    roster = Roster.parse(OURS)

    assert roster.members("team 1") == roster.students
    assert roster.members("") == ()


def test_a_written_roster_is_read_again(tmp_path):
    roster = class_layouts.roster(60)

    again = Roster.read(class_layouts.write_roster(tmp_path / "roster.csv", roster))

    assert again.problems == ()
    assert [str(one) for one in again] == [str(one) for one in roster]
    assert all(re.fullmatch(r"gh-s\d{4}x", one.github) for one in again)
