"""T02 and T01: sectors of which little is used, and data that come from memory again."""

from __future__ import annotations

from collections.abc import Sequence

from grader.diagnosis.perf_lints.launch import SHARE, Defect, LaunchCost
from grader.recording.launch_stats import SECTOR, Traffic

GRANULE = 64  # bytes that memory hands out at least, for a sector that is asked for alone
# Every second element is a half; a column of floats uses an eighth. Between programs that take
# turns at the same sectors, caches give back what a half loses, and no more.
POOR_SECTORS = 0.55  # of the bytes of its sectors that an access uses, where they come once
POOR_SHARED_SECTORS = 0.3  # where other accesses use the rest
# At the edge of L2 the count itself is this far off (a brute-force cache agrees within 17 %).
READ_AGAIN = 0.25  # of the bytes that have to move
STAYS = 0.25  # of L2: tensors of this size, such as weights, are found there again


def _efficiency(launch: LaunchCost, t: Traffic) -> float:
    """The share of its sectors that an access uses; one more for a start between two is free."""
    needed = max(float(t.ideal_sectors), t.sectors - launch.accesses(t))
    return t.ideal_sectors / needed if needed else 1.0


def poor_sectors(launch: LaunchCost) -> list[Defect]:
    if launch.products > 2 * max(launch.caches, launch.memory):
        return []
    found = []
    for t in sorted(launch.survey.traffic, key=lambda t: -t.sectors):
        used = _efficiency(launch, t)
        shared = t.redundancy > 1.1
        if (t.kind == "atomic" or used > (POOR_SHARED_SECTORS if shared else POOR_SECTORS)
                or t.sectors - t.ideal_sectors < SHARE * launch.sectors
                or (not shared and _rest_is_used(launch, t))):
            continue
        indexed = t.line in launch.indexed
        verb = {"load": "read", "store": "written"}[t.kind]
        found.append(Defect(
            "uncoalesced access" if indexed else "strided access", "T02", t.line,
            f"{t.bytes:,} bytes of `{t.tensor}` are {verb} in {t.sectors:,} sectors of 32 bytes: "
            f"{t.bytes / (t.sectors * SECTOR):.0%} of what moves is used",
            "Neighbouring lanes go wherever the indices say; sort the indices, or fetch whole rows "
            "for each." if indexed else
            "Let neighbouring lanes take neighbouring elements in memory; where rows meet columns, "
            "move a tile and transpose it in the program."))
    return found


def _rest_is_used(launch: LaunchCost, t: Traffic) -> bool:
    """Whether other lines use the other elements of the same sectors, as of interleaved pairs."""
    alike = [other for other in launch.survey.traffic
             if other.tensor == t.tensor and other.kind == t.kind]
    sectors = max(other.unique_sectors for other in alike)
    return len(alike) > 1 and sum(other.bytes for other in alike) >= 0.8 * sectors * SECTOR


def read_again(launch: LaunchCost, found: Sequence[Defect]) -> list[Defect]:
    """Bytes that come from DRAM more than once, where DRAM is what the launch waits for.

    A tensor needs to come once, and as a whole at most; without its size nothing can be said of it.
    What fits L2 with much else stays there.
    """
    if any(defect.name == "idle lanes" for defect in found):
        return []  # lone elements of one sector come one after the other, out of L1
    survey = launch.survey
    excused = {defect.line for defect in found if defect.code == "T02"} | set(launch.indexed)
    loads = [t for t in survey.traffic if t.kind == "load"]
    needed = again = 0
    for tensor in {t.tensor for t in loads}:
        own = [t for t in loads if t.tensor == tensor]
        asked = sum(t.sectors for t in own) * SECTOR
        once = min(asked, launch.sizes.get(tensor, asked) + SECTOR)
        if any(t.line in excused for t in own):
            needed += asked * GRANULE // SECTOR
        else:
            needed += once
            again += asked - once if once > STAYS * launch.target.l2 else 0
    excess = min(again, survey.loaded.low - needed)
    must = needed + survey.stored.low
    if excess <= READ_AGAIN * must or launch.bound_by_products:
        return []
    worst = max(loads, key=lambda t: sum(
        o.sectors for o in loads if o.tensor == t.tensor) * SECTOR - launch.sizes.get(t.tensor, 0))
    lines = [t.line for t in loads if t.tensor == worst.tensor and t.line is not None]
    where = f" at {len(lines)} lines," if len(lines) > 1 else ""
    return [Defect(
        "data read again", "T01", max(lines, default=None),
        f"{survey.loaded.low:,} bytes or more come from memory, where {needed:,} would do: "
        f"`{worst.tensor}` is read{where} again after it has left the caches",
        "Keep what was read in registers, or do the work in one pass, as with a running maximum "
        "and sum.")]
