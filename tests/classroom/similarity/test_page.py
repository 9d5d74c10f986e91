"""The page of similar submissions: marked, escaped, self-contained, and anonymous."""

import random
import re
from dataclasses import replace

import pytest

from tests.classroom.similarity.disguises import DISGUISES
from tests.classroom.similarity.population import given, honest, of_family
from tests.support import browsing
from tritonlab.classroom.similarity.compare import ClassSource, compare
from tritonlab.classroom.similarity.page import ModulePage, page

HOSTILE = "</span><script>alert(1)</script>"


def shown(similarity, sources, title="hw1", **more):
    return page(title, [ModulePage("track1/softmax", similarity, sources)], **more)


@pytest.fixture(scope="module")
def similarity_and_sources():
    source, _ = of_family(1)
    source = source.replace("import torch", f"# Ada Lovelace {HOSTILE}\nada_rows = 1\nimport torch",
                            1)
    others = honest(60)
    others[0] = replace(others[0], chain=frozenset("a"))
    others[1] = replace(others[1], chain=frozenset("a"))
    entries = [*others, ClassSource("ada@uni.example", source),
               ClassSource(HOSTILE, DISGUISES["renamed"](source, random.Random(1)))]
    return compare(entries, given()), {one.student: one.source for one in entries}


def test_the_page_marks_shared_code_on_both_sides(similarity_and_sources):
    html = shown(*similarity_and_sources)

    assert html.count("<details class=\"card\">") == 2
    first = html.partition("<details class=\"card\">")[2].partition("<details class=\"card\">")[0]
    left, right = first.split("<h4>")[1:]
    for side in (left, right):
        assert re.search(r"<mark>[^<]*tl\.exp\(", side)
    assert "not a verdict" in html


def test_the_page_escapes_and_loads_nothing(similarity_and_sources):
    html = shown(*similarity_and_sources, f"hw1 {HOSTILE}")

    assert "<script" not in html
    assert "http" not in html.replace("http-equiv", "")
    assert "&lt;script&gt;" in html


def test_labels_replace_names(similarity_and_sources):
    html = shown(*similarity_and_sources, label=lambda student: f"<{len(student)}>")

    assert "ada@uni.example" not in html
    assert "&lt;15&gt;" in html


def test_sources_keep_their_lines(similarity_and_sources):
    similarity, sources = similarity_and_sources
    html = shown(similarity, sources)
    body = html.partition("<h3>Pairs</h3>")[2]

    spans = re.findall(r"<b>(\d+)</b><span>(.*?)</span>\n", body)

    lines = sources[similarity.pairs[0].students[0]].split("\n")
    texts = [re.sub("<[^>]*>", "", text) for _, text in spans[:len(lines)]]
    assert [number for number, _ in spans[:len(lines)]] == [str(n + 1) for n in range(len(lines))]
    assert [line.replace("&#39;", "'").replace("&#34;", '"').replace("&lt;", "<")
            .replace("&gt;", ">").replace("&amp;", "&") for line in texts] == lines


def test_a_class_without_pairs_has_a_page_that_says_so():
    submissions = honest(20)

    html = shown(compare(submissions, given()), {})

    assert "What is common here is common in this class." in html


def test_a_page_of_many_pairs_stays_small():
    source, _ = of_family(1)
    entries = [*honest(200), *(ClassSource(f"copy{number}", source) for number in range(15))]
    similarity = compare(entries, given())

    html = shown(similarity, {one.student: one.source for one in entries})

    assert len(similarity.pairs) == 105
    assert "55 further pairs have weaker evidence." in html
    assert len(html) < 2_000_000


def test_a_browser_shows_both_sides(similarity_and_sources, tmp_path):
    path = tmp_path / "similar.html"
    path.write_text(shown(*similarity_and_sources))

    with browsing.browser() as browser, browsing.opened(browser, path) as seen:
        seen.page.click("details.card > summary")
        left, right = (one.bounding_box() for one in seen.page.query_selector_all(
            "details[open] .sides > div"))

        assert left["y"] == right["y"]
        assert left["x"] + left["width"] <= right["x"]
