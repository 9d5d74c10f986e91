"""What a survey may follow: indices whose values the executor has."""

from __future__ import annotations

import pytest

from grader.recording.launch_stats import Survey, Unsurveyable
from grader.recording.model import Fill, View
from tests.support.surveys import Recorded

N = 1 << 20


@pytest.mark.parametrize(("filled", "kind"), [(N, Survey), (N // 2, Unsurveyable)],
                         ids=["whole", "half"])
def test_an_index_is_known_where_host_code_filled_all_of_it(filled, kind):
    with Recorded() as recorded:
        index, out = recorded.alloc(N, dtype="int64"), recorded.alloc(N)
        recorded.events.append(Fill(View(index.storage, "int64", (filled,), (1,), 0), 0.0))
        recorded.launch("gather_kernel", N // 1024, idx_ptr=index, out_ptr=out, n=N, BLOCK=1024,
                        table_ptr=recorded.virtual(1 << 26))

        (surveyed,) = recorded.survey()

    assert isinstance(surveyed, kind)
