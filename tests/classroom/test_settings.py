"""Settings of a class: what class.toml may hold, and the sentence for each mistake."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tests.classroom import support
from tritonlab.classroom import settings
from tritonlab.classroom.settings import days_late
from tritonlab.errors import TritonlabError

HW = '[assignments.hw1]\nmodules = ["track1/softmax"]\n'


def test_times_are_of_the_timezone_of_the_class(tmp_path):
    loaded, _ = support.write(tmp_path)

    due = loaded.assignment("hw1").due

    assert due == datetime(2026, 10, 12, 23, 59, tzinfo=ZoneInfo("America/New_York"))


def test_all_or_nothing_is_a_word_and_weights_are_a_table(tmp_path):
    word, _ = support.write(tmp_path, f'name = "a"\n{HW}weights = "all-or-nothing"\n')
    table, _ = support.write(tmp_path, f'name = "a"\n{HW}weights = {{ edge = 1 }}\n')

    assert word.assignment("hw1").weights.all_or_nothing
    assert table.assignment("hw1").weights.edge == 1


@pytest.mark.parametrize(("text", "sentence"), [
    ("name = 3", "name: Expected `str`, got `int`"),
    ("name = ", "is not valid TOML"),
    ("", "lacks 'name'"),
    ('name = "a"\nschema = 2', "has a schema other than 1"),
    ('name = "a"\ntimezon = "UTC"', "unknown key 'timezon'; did you mean 'timezone'?"),
    ('name = "a"\ntimezone = "Mars"', "unknown timezone, 'Mars'"),
    ('name = "a"\nrequire_isolation = 3', "require_isolation: Invalid enum value 3"),
    ('name = "a"\nassignments = 3', "has no table [assignments.NAME]"),
    ('name = "a"\n[assignments."../x"]\nmodules = []', "has an assignment called '../x'"),
    ('name = "a"\n[assignments.hw1]', "lacks 'modules'"),
    (f'name = "a"\n{HW}due = "soon"', "hw1.due is not a time"),
    (f'name = "a"\n{HW}wieghts = 3', "'assignments.hw1.wieghts'; did you mean 'weights'?"),
    (f'name = "a"\n{HW}weights = "none"', "is 'none'; it is a table or"),
    (f'name = "a"\n{HW}weights = {{ egde = 3 }}', "'assignments.hw1.weights.egde'; did you mean"),
    (f'name = "a"\n{HW}take = "worst"', "'worst'; it is one of best, last, last-before-due"),
    (f'name = "a"\n{HW}due = 2026-13-45T10:00:00', "on line 4 that is not a time such as"),
    (f'name = "a"\n{HW}late = {{ percent_per_day = 101 }}', "Expected `float` <= 100"),
    (f'name = "a"\n{HW}points = -1', "Expected `float` > 0"),
])
def test_a_mistake_gets_one_sentence(tmp_path, text, sentence):
    with pytest.raises(TritonlabError) as caught:
        support.write(tmp_path, text)

    assert sentence in caught.value.message
    assert caught.value.next_step == "Edit it, then repeat the command."


def test_an_unknown_assignment_names_the_nearest(tmp_path):
    loaded, _ = support.write(tmp_path)

    with pytest.raises(TritonlabError, match=r"no assignment 'hw2'\. Did you mean hw1\?"):
        loaded.assignment("hw2")


def test_the_class_is_the_nearest_folder_above(tmp_path, monkeypatch):
    support.write(tmp_path)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)

    monkeypatch.chdir(below)

    assert settings.find() == tmp_path


@pytest.mark.parametrize(("seconds", "days"), [(0, 0), (1, 1), (86_400, 1), (86_401, 2)])
def test_a_day_begun_is_a_day(seconds, days):
    due = datetime(2026, 10, 12, tzinfo=ZoneInfo("UTC"))

    assert days_late(due, datetime.fromtimestamp(due.timestamp() + seconds, due.tzinfo)) == days
