"""Signals to the processes of a grade, at random moments and at chosen stages."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
import time

from grader.sandbox import processes
from tests.fidelity.chaos import module
from tests.fidelity.chaos.bench import ANSWER, Bench, at_work, end, orphans, text, zygote_of

# A grade of it takes a little longer, so that there is something to hit.
SLOW = module.spoiled("in the call", "import time\ntime.sleep(0.03)")
_BEGINNING_S = 1.0  # of a process in the place of one that was killed
EXTERNAL = frozenset({"R02", "R03"})  # to the grader it looks as if the kernel had done it


def torment(bench: Bench, kills: int, number: int = signal.SIGKILL) -> tuple[list[str], int]:
    """Send a signal to ``kills`` judges at random moments; problems, and how many were hit.

    Half of the moments lie in the last seventh of a grade, where the result is written down.
    """
    chance = random.Random(bench.seed)
    problems: list[str] = []
    hit = finished = 0
    whole = bench.whole_s
    while hit < kills and finished <= 2 * kills:
        late = chance.random() < 0.5
        moment = chance.uniform(0.85, 1.0) if late else chance.uniform(0.0, 1.0)
        before = bench.recorded()
        with orphans() as left, (bench.folder / "out").open("w+b") as out, \
                (bench.folder / "err").open("w+b") as err:
            bench.kernel.write_text(module.HEALTHY)
            process = bench.start("grade", "--again", module.NAME, "--json", stdout=out, stderr=err)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(moment * whole)
            alive = process.poll() is None
            hit, finished = hit + alive, finished + (not alive)
            end(process, number)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                left.append(f"signal {number} did not end it within 10 s")
                process.kill()
                process.wait()
            with contextlib.suppress(json.JSONDecodeError):
                bench.acknowledged += bool(json.loads(text(out))["saved"])
            if number == signal.SIGINT:
                left += _told(text(err), process.returncode, bench.recorded() - before)
        found = [*left, *bench.store(), *bench.leftovers()]
        problems += [f"signal {number} after {moment * whole:.2f} s: {what}" for what in found]
    return problems, hit


def _told(said: str, code: int, more: int) -> list[str]:
    """Whether what a command says after Ctrl-C is true, if it had begun at all."""
    if code == -signal.SIGINT or not said.strip():
        return []  # Python itself had not started yet, or the grade had just ended
    wrong = not more if "is recorded" in said else more and "Nothing was recorded" in said
    return [f"{more} records, and it said {said[-200:]!r}"] if wrong or "Traceback" in said else []


def judge(bench: Bench, kills: int) -> list[str]:
    return torment(bench, kills)[0]


def judge_of_a_cold_zygote(bench: Bench) -> list[str]:
    """Kill the judge while the zygote is still importing torch."""
    with orphans() as left:
        process = bench.start("grade", "--again", module.NAME)
        while process.poll() is None and zygote_of(process.pid) is None:
            time.sleep(0.001)
        time.sleep(0.2)
        end(process)
        process.communicate()
    return [*left, *bench.store(), *bench.leftovers()]


def ended_by(number: int, bench: Bench, kills: int) -> list[str]:
    return torment(bench, kills, number)[0]


# ---------------------------------------------------------------------------------------------
# On a warm sandbox


def child(bench: Bench, number: int, times: int) -> list[str]:
    """Hit a worker, an executor or a compiler: it is as if the kernel had ended, or hung."""
    chance = random.Random(bench.seed)
    problems = []
    # Whichever it is of worker, executor and compilers, nobody waits longer for any; in the place
    # of one that has ended, another has to begin, alone while two would have shared its work.
    limit = max(bench.limits.values()) if number == signal.SIGSTOP else _BEGINNING_S
    for _ in range(times):
        ended = bench.warm.grade(SLOW, during=lambda: _hit_child(bench, chance, number))
        problems += bench.expected(ended, {0, 1}, EXTERNAL, limit, cold=False)
        problems += [*bench.warm.left(), *bench.leftovers(), *bench.store()]
        problems += _next_one_is_fine(bench)
    return problems


def _hit_child(bench: Bench, chance: random.Random, number: int) -> None:
    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline:
        if found := at_work(processes.children(bench.warm.zygote)):
            time.sleep(chance.uniform(0.0, 0.1))
            processes.send(chance.choice(found), number)
            return
        time.sleep(0.001)


def zygote(bench: Bench, number: int, times: int) -> list[str]:
    """Hit the zygote: nothing is known of the kernel then, and the next grade has a new one."""
    chance = random.Random(bench.seed)
    problems = []
    limit = bench.limits[ANSWER] if number == signal.SIGSTOP else 0.0
    assert bench.warm  # started now, and so not taken for something left behind
    for _ in range(times):
        def hit() -> None:
            time.sleep(chance.uniform(0.0, 0.3))
            processes.send(bench.warm.zygote, number)

        with orphans() as left:
            ended = bench.warm.grade(SLOW, during=hit)
            problems += bench.expected(ended, {0, 1, 3}, EXTERNAL, limit, cold=True)
            if ended.code == 0 and not ended.replaced:  # hit after its last request
                problems += bench.expected(bench.warm.grade(), {0, 3}, (), limit, cold=True)
            problems += _next_one_is_fine(bench)
        problems += [*left, *bench.warm.left(), *bench.leftovers(), *bench.store()]
    return problems


def _next_one_is_fine(bench: Bench) -> list[str]:
    ended = bench.warm.grade()
    return [] if ended.code == 0 else [f"the next grade ended with {ended.described()}"]


# ---------------------------------------------------------------------------------------------
# Ctrl-C at a stage

COLD = ("importing the command", "loading torch", "starting the zygote", "closing the sandbox")


def interrupted(bench: Bench, stage: str, times: int = 1) -> list[str]:
    """Press Ctrl-C at a stage: one sentence, exit code 130, and the sentence is true."""
    if stage not in COLD:
        assert bench.warm  # started now, and so not taken for something left behind
    before = bench.recorded()
    with orphans() as left:
        if stage in COLD:
            ended = bench.grade(hooks={"signal": [stage, times]})
        else:
            # What is printed as JSON is printed at once; a report for people takes many lines.
            words = ["--json"] if stage != "showing the report" else []
            bench.kernel.write_text(SLOW)
            ended = bench.warm.run("grade", "--again", module.NAME, *words, signal=(stage, times))
    recorded = bench.recorded() > before
    problems = [*left, *bench.store(), *bench.leftovers()]
    problems += bench.expected(ended, {130}, cold=stage in COLD)
    sentence = "The result is recorded." if recorded else "Nothing was recorded."
    if sentence not in ended.err:
        problems.append(f"{recorded=}, and it said {ended.err.strip()!r}")
    if ended.err.strip().count("\n"):
        problems.append(f"more than one line: {ended.err!r}")
    if stage not in COLD:
        problems += [*bench.warm.left(), *_next_one_is_fine(bench)]
    return problems
