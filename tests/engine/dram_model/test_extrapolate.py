"""A survey: what a launch does at its real size, told from a few of its programs."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from grader.recording.launch_stats import Interval, Survey, Unsurveyable
from tests.support.surveys import KERNELS, Recorded

pytestmark = pytest.mark.course

REAL = 1 << 27  # elements of a vector
ROWS, COLUMNS = 16384, 4096
MOST_S = 4.0  # CPU time; surveys take up to 2 s beside other work
MOST_MB = 600


@pytest.fixture
def recorded():
    with Recorded() as made:
        yield made


def add(to: Recorded, n: int, *, length: int | None = None, block: int = 1024) -> None:
    to.launch("add_kernel", -(-n // block), resident=132 * 16, x_ptr=to.virtual(n),
              y_ptr=to.virtual(n), out_ptr=to.alloc(length or n), n=n, BLOCK_SIZE=block)


def softmax(to: Recorded) -> None:
    to.launch("softmax_kernel", ROWS, x_ptr=to.virtual(ROWS, COLUMNS),
              out_ptr=to.alloc(ROWS, COLUMNS), stride_m=COLUMNS, n_cols=COLUMNS,
              BLOCK_SIZE=COLUMNS)


def transpose(to: Recorded, block_m: int, block_n: int) -> None:
    to.launch("transpose_kernel", COLUMNS // block_n, ROWS // block_m,
              x_ptr=to.virtual(ROWS, COLUMNS), out_ptr=to.alloc(COLUMNS, ROWS), M=ROWS, N=COLUMNS,
              BM=block_m, BN=block_n)


def matmul(to: Recorded, size: int, group: int) -> None:
    a, b = (to.virtual(size, size, dtype="float16") for _ in range(2))
    to.launch("matmul_kernel", (size // 128) ** 2, resident=132, a_ptr=a, b_ptr=b,
              c_ptr=to.alloc(size, size, dtype="float16"), M=size, N=size, K=size, sam=size,
              sbk=size, scm=size, BM=128, BN=128, BK=64, GROUP=group)


def strided(to: Recorded, stride: int, n: int = 1 << 24) -> None:
    to.launch("strided_kernel", n // 1024, x_ptr=to.virtual(stride * n), out_ptr=to.alloc(n), n=n,
              STRIDE=stride, BLOCK=1024)


def gather(to: Recorded, index: torch.Tensor | None = None, n: int = 1 << 20) -> None:
    given = to.real(index) if index is not None else to.virtual(n, dtype="int64")
    to.launch("gather_kernel", n // 1024, idx_ptr=given, table_ptr=to.virtual(1 << 26),
              out_ptr=to.alloc(n), n=n, BLOCK=1024)


def exactly(nbytes: int) -> Interval:
    return Interval(nbytes, nbytes)


def by_kind(made: Survey, kind: str) -> tuple[int, int, int]:
    """Bytes, sectors, and the least number of sectors."""
    mine = [t for t in made.traffic if t.kind == kind]
    return (sum(t.bytes for t in mine), sum(t.sectors for t in mine),
            sum(t.ideal_sectors for t in mine))


# ---------------------------------------------------------------------------------------------
# Closed forms


def test_a_vector_sum_moves_its_three_vectors_once(recorded):
    add(recorded, REAL)

    made = recorded.one()

    assert (made.loaded, made.stored) == (exactly(8 * REAL), exactly(4 * REAL))
    assert by_kind(made, "load") == (8 * REAL, REAL // 4, REAL // 4)
    assert by_kind(made, "store") == (4 * REAL, REAL // 8, REAL // 8)
    assert made.programs == REAL // 1024 > 100 * made.sampled
    assert set(made.executions.values()) == {1.0}


def test_a_tail_is_counted_as_the_one_program_that_it_is(recorded):
    n = REAL - 1000
    add(recorded, n)

    made = recorded.one()

    assert by_kind(made, "load")[0] == 8 * n
    assert made.loaded.low == pytest.approx(8 * n, abs=64)


def test_a_tail_of_a_grid_of_two_axes_is_counted_along_both(recorded):
    rows, columns = 4000, 3000  # the last tile is 32 wide in steps of 64
    recorded.launch("transpose_kernel", -(-columns // 64), -(-rows // 64),
                    x_ptr=recorded.virtual(rows, columns), out_ptr=recorded.alloc(columns, rows),
                    M=rows, N=columns, BM=64, BN=64)

    made = recorded.one()

    assert by_kind(made, "load")[0] == by_kind(made, "store")[0] == 4 * rows * columns


def test_a_softmax_of_whole_rows_reads_and_writes_the_matrix_once(recorded):
    softmax(recorded)

    made = recorded.one()

    assert (made.loaded, made.stored) == (exactly(4 * ROWS * COLUMNS),) * 2


@pytest.mark.parametrize(("tile", "coalescing"), [((32, 32), 1.0), ((1, 1024), 0.125)],
                         ids=["by tiles", "row by row"])
def test_transposes_differ_in_sectors_and_not_in_dram_bytes(recorded, tile, coalescing):
    transpose(recorded, *tile)

    made = recorded.one()

    (store,) = [t for t in made.traffic if t.kind == "store"]
    assert store.coalescing == coalescing
    assert (made.loaded, made.stored) == (exactly(4 * ROWS * COLUMNS),) * 2


@pytest.mark.parametrize("stride", [1, 2, 8, 16])
def test_strided_reads_move_every_sector_that_they_touch(recorded, stride):
    n = 1 << 24
    strided(recorded, stride)

    made = recorded.one()

    assert made.loaded == exactly(4 * n * stride)


def test_a_matmul_issues_what_its_tiles_ask_for(recorded):
    size = 8192
    matmul(recorded, size, 8)

    made = recorded.one()

    tiles, turns = (size // 128) ** 2, size // 64
    assert by_kind(made, "load")[0] == tiles * turns * 2 * 128 * 64 * 2
    assert made.flops == 2 * size ** 3
    assert made.executions == {46: turns, 47: turns, 52: 1.0}
    assert made.stored == exactly(2 * size * size)


def test_a_matmul_in_groups_reads_less_than_one_in_rows(recorded):
    size = 8192
    matmul(recorded, size, 8)
    grouped = recorded.one()
    with Recorded() as rows:
        matmul(rows, size, 1)
        plain = rows.one()

    tile = 128 * size * 2  # bytes of a row or a column of tiles
    wave_in_groups, wave_in_rows = 8 + 17, 3 + 64  # rows and columns of 132 neighbours
    waves = 64 * 64 / 132
    assert grouped.loaded.low == pytest.approx(waves * wave_in_groups * tile, rel=0.15)
    assert grouped.loaded.high < 1.35 * grouped.loaded.low
    assert plain.loaded.low == pytest.approx(waves * wave_in_rows * tile, rel=0.15)
    assert plain.loaded.high < 1.35 * plain.loaded.low


def test_programs_that_end_at_once_count_for_nothing(recorded):
    n = 1 << 24
    recorded.launch("early_kernel", n // 1024, x_ptr=recorded.virtual(n),
                    out_ptr=recorded.alloc(n), n=n, used=n // 2048, BLOCK=1024)

    made = recorded.one()

    assert by_kind(made, "load")[0] == pytest.approx(2 * n, rel=0.02)
    assert list(made.executions.values()) == [pytest.approx(0.5, rel=0.02)]


def test_what_the_first_of_many_programs_does_alone_is_left_out(recorded):
    recorded.launch("noting_kernel", 8192, resident=132 * 16, x_ptr=recorded.virtual(8192, 8192),
                    out_ptr=recorded.alloc(8192, 8192), note_ptr=recorded.alloc(1),
                    n_cols=8192, BLOCK=128)

    made = recorded.one()

    assert (made.loaded, made.stored) == (exactly(4 << 26),) * 2


def test_loops_of_different_length_are_averaged(recorded):
    programs = 2000
    recorded.launch("causal_kernel", programs, x_ptr=recorded.virtual(programs * 256),
                    out_ptr=recorded.alloc(programs * 256), n=programs * 256, BLOCK=256)

    made = recorded.one()

    turns = programs * (programs + 1) // 2
    assert by_kind(made, "load")[0] == pytest.approx(turns * 1024, rel=0.02)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_reads_keys_and_values_of_a_head_once(recorded, causal):
    heads, length, width = 128, 4096, 64
    q, k, v = (recorded.virtual(heads * length * width, dtype="float16") for _ in range(3))
    out = recorded.alloc(heads * length * width, dtype="float16")
    recorded.launch("attention_kernel", length // 128, heads, resident=2 * 132, q_ptr=q, k_ptr=k,
                    v_ptr=v, o_ptr=out, T=length, sh=length * width, CAUSAL=causal, BM=128, BN=64,
                    D=width)

    made = recorded.one()

    nbytes = 2 * heads * length * width
    turns = sum(2 * (i + 1) for i in range(32)) if causal else 32 * 64
    assert by_kind(made, "load")[0] == pytest.approx(
        nbytes + 2 * heads * turns * 64 * width * 2, rel=0.03)
    assert made.loaded.low == pytest.approx(3 * nbytes, rel=0.01)
    assert made.loaded.high < 1.15 * 3 * nbytes
    assert made.stored == exactly(nbytes)


def test_a_loop_that_nothing_cuts_takes_too_long(recorded):
    n = 1 << 16
    recorded.launch("walk_kernel", 1 << 12, x_ptr=recorded.virtual(n << 12),
                    out_ptr=recorded.alloc(1 << 12), n=n)
    start = time.process_time()

    (made,) = recorded.survey()

    assert time.process_time() - start < MOST_S
    assert isinstance(made, Unsurveyable)
    assert "too long" in made.why


def test_several_launches_share_the_time(recorded):
    for _ in range(4):
        softmax(recorded)
    start = time.process_time()

    made = recorded.survey()

    assert time.process_time() - start < MOST_S
    assert [one.loaded for one in made] == [exactly(4 * ROWS * COLUMNS)] * 4


def test_atomics_that_meet_on_one_element_are_counted(recorded):
    n = 1 << 24
    recorded.launch("sum_kernel", n // 1024, x_ptr=recorded.virtual(n),
                    out_ptr=recorded.alloc(1), n=n, BLOCK=1024)

    made = recorded.one()

    assert made.atomics == made.hottest == n // 1024


def test_atomics_that_spread_meet_less_often(recorded):
    n = 1 << 20
    values = torch.arange(n) % 256
    recorded.launch("histogram_kernel", n // 1024, x_ptr=recorded.real(values),
                    out_ptr=recorded.alloc(256, dtype="int32"), n=n, BLOCK=1024)

    made = recorded.one()

    assert (made.atomics, made.hottest) == (n, n // 256)


# ---------------------------------------------------------------------------------------------
# Values


def test_a_gather_goes_where_its_index_says(recorded):
    n = 1 << 20
    gather(recorded, torch.randint(1 << 26, (n,), generator=torch.Generator().manual_seed(0)))
    scattered = recorded.one()
    with Recorded() as other:
        gather(other, torch.arange(n))
        ordered = other.one()

    sectors = 2**23 * (1 - math.exp(-n / 2**23))  # distinct ones of the table that are read
    alone = math.exp(-n / 2**23)  # the share whose other half of 64 bytes is not read
    assert scattered.loaded.low == pytest.approx(8 * n + 32 * sectors * (1 + alone), rel=0.01)
    assert ordered.loaded == exactly(8 * n + 4 * n)


def test_a_gather_by_an_index_without_values_cannot_be_surveyed(recorded):
    gather(recorded)

    (made,) = recorded.survey()

    assert isinstance(made, Unsurveyable)
    assert "depends on values" in made.why


def test_a_gather_by_what_an_earlier_launch_stores_cannot_be_surveyed(recorded):
    n = 1 << 20
    index, out = recorded.alloc(n, dtype="int64"), recorded.alloc(n)
    recorded.launch("iota_kernel", n // 1024, out_ptr=index, n=n, BLOCK=1024)
    recorded.launch("gather_kernel", n // 1024, idx_ptr=index, table_ptr=recorded.virtual(1 << 26),
                    out_ptr=out, n=n, BLOCK=1024)

    first, second = recorded.survey()

    assert isinstance(first, Survey)
    assert isinstance(second, Unsurveyable)
    assert second.kernel == "gather_kernel"


def test_an_input_that_a_launch_overwrites_is_not_known_to_the_next(recorded):
    n = 1 << 20
    index = recorded.real(torch.arange(n))
    table, out = recorded.virtual(1 << 26), recorded.alloc(n)
    for _ in range(2):
        recorded.launch("gather_kernel", n // 1024, idx_ptr=index, table_ptr=table, out_ptr=out,
                        n=n, BLOCK=1024)
        recorded.launch("iota_kernel", n // 1024, out_ptr=index, n=n, BLOCK=1024)

    kinds = [type(made) for made in recorded.survey()]

    assert kinds == [Survey, Survey, Unsurveyable, Survey]


def test_programs_that_wait_for_each_other_cannot_be_surveyed(recorded):
    recorded.launch("lock_kernel", 1000, lock_ptr=recorded.alloc(1, dtype="int32"),
                    out_ptr=recorded.alloc(1000, dtype="int32"), BLOCK=1)

    (made,) = recorded.survey()

    assert isinstance(made, Unsurveyable)


# ---------------------------------------------------------------------------------------------
# Failures


def test_an_access_out_of_bounds_ends_a_survey_with_a_finding(recorded):
    add(recorded, REAL, length=REAL - 1)
    softmax(recorded)

    reply = recorded.reply()

    assert [finding["code"] for finding in reply["findings"]] == ["M02"]
    assert len(reply["launches"]) == 1


@pytest.mark.parametrize("change", [
    {"resident": []}, {"resident": [0]}, {"resident": [True]}, {"resident": "8"},
    {"l2_bytes": 0}, {"l2_bytes": 1.5}, {"l2_bytes": None},
    {"resident": [8, 8]}, {"recording": None},
], ids=str)
def test_a_request_of_another_form_is_refused(recorded, change):
    add(recorded, 1 << 20)

    reply = recorded.reply(**change)

    assert reply["status"] == "malformed"


def test_an_answer_is_read_back_as_it_was(recorded):
    add(recorded, 1 << 20)
    made = recorded.one()

    assert Survey.from_dict(made.to_dict()) == made


@pytest.mark.parametrize("change", [
    {"kernel": 1}, {"grid": [1, 2]}, {"grid": [1, 1, -1]}, {"programs": 1.5}, {"loaded": [2, 1]},
    {"stored": [1]}, {"executions": [[1, float("nan")]]}, {"executions": [[1]]},
    {"executions": [[-1, 1.0]]}, {"traffic": [[1, "load", "x"]]}, {"hottest": True},
    {"flops": -1}, {"more": 1},
], ids=str)
def test_an_answer_of_another_form_is_refused(recorded, change):
    add(recorded, 1 << 20)
    answer = recorded.one().to_dict() | change

    with pytest.raises(ValueError):
        Survey.from_dict(answer)


def test_a_reason_of_another_form_is_refused():
    with pytest.raises(ValueError):
        Unsurveyable.from_dict({"kernel": "k", "why": "w", "more": 1})
    assert Unsurveyable.from_dict({"kernel": "k", "why": "w"}) == Unsurveyable("k", "w")


def test_a_confined_executor_surveys_gigabytes_too(recorded, sandbox, tmp_path):
    add(recorded, 1 << 28)
    strided(recorded, 16, 1 << 26)
    copy = tmp_path / "kernel.py"
    copy.write_text(KERNELS.read_text())
    copy.chmod(0o644)

    with sandbox.fork("executor") as executor:
        loaded = executor.begin({"op": "load", "path": str(copy)}, [], 60)()
        reply = executor.begin(recorded.request(), [recorded.arena], 60)()

    assert loaded["status"] == "ready"
    assert reply["status"] == "done", reply
    assert not reply["findings"]
    assert [Survey.from_dict(made) for made in reply["launches"]] == recorded.survey()


# ---------------------------------------------------------------------------------------------
# Costs


@pytest.mark.parametrize("record", [
    lambda to: add(to, REAL), softmax, lambda to: transpose(to, 32, 32),
    lambda to: transpose(to, 1, 1024), lambda to: matmul(to, 8192, 8),
    lambda to: strided(to, 16),
], ids=["vector sum", "softmax", "tiled transpose", "naive transpose", "matmul", "strided"])
def test_a_survey_takes_at_most_two_seconds(recorded, record):
    record(recorded)
    start = time.process_time()

    recorded.survey()

    assert time.process_time() - start < MOST_S


def test_a_survey_of_gigabytes_takes_little_memory():
    """In a process of its own, whose highest memory use is the survey's."""
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests.engine.dram_model.test_extrapolate import Recorded, add, strided
with Recorded() as to:
    add(to, 1 << 28)
    strided(to, 16, 1 << 26)
    assert sum(size for _, size in to.layout) > 4e9
    to.survey()
status = open("/proc/self/status").read()  # what getrusage tells is inherited from the parent
print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                            check=True)

    assert int(result.stdout) < MOST_MB


def test_what_each_program_reaches_in_one_run_of_its_own_is_told(recorded):
    add(recorded, REAL, block=2048)
    softmax(recorded)
    transpose(recorded, 64, 64)
    strided(recorded, 2)
    flat, rows, tiles, strides = (launch.apart for launch in recorded.survey())

    assert flat == (("load", "x_ptr"), ("load", "y_ptr"), ("store", "out_ptr"))
    assert rows == (("load", "x_ptr"), ("store", "out_ptr"))
    assert tiles == ()
    assert ("store", "out_ptr") in strides
