"""The other configurations of an autotuner: any of them may be the fastest on a GPU.

All are tried on the first case of a grade and some on each later one, so that each meets many
shapes. What trials leave behind is looked at in the first case of a function, and where it works in
place in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from grader.diagnosis import codes
from grader.judge.context import Context, RecordedCall
from grader.judge.contract import broken_contract
from grader.judge.values import wrong_values
from grader.processes.replies import unusable
from grader.report import Finding

MOST = 16  # of an autotuner that are tried
AT_ONCE = 3  # with one case, after the first
TRIALS = 4  # of a first call; what one leaves behind shows after as many


def check(call: RecordedCall, ctx: Context) -> list[Finding]:
    """Checks the other configurations of a call that is right with the first, and its trials.

    Raises:
        grader.processes.replies.Stopped: a process did not survive it.
    """
    suite, n_configs = ctx.part(call.case), call.outcome.configurations
    numbers = list(range(1, min(n_configs, MOST)))
    if ctx.tried_configurations:
        turn = len(ctx.tried_configurations) % max(1, len(numbers))
        numbers = [*numbers[turn:], *numbers[:turn]][:AT_ONCE]
    ctx.tried_configurations += numbers
    for number in numbers:
        if findings := _with_configuration(number, call, ctx):
            first = codes.in_order(findings)[0]
            return [first.within("configuration", number=number + 1, count=n_configs)]
    if n_configs == 1 or (suite.entry in ctx.first_calls and not suite.in_place):
        return []
    ctx.first_calls.add(suite.entry)
    trials = min(n_configs, TRIALS)
    return [finding.within("trials", count=trials)
            for finding in _after_trials(call, ctx)[:1]]


def _with_configuration(number: int, call: RecordedCall, ctx: Context) -> Sequence[Finding]:
    case, inputs, session = call.case, call.inputs, ctx.session(call.case)
    outcome = session.record(inputs, config=number)
    findings = unusable(outcome)
    if outcome.recording is None or findings:
        return findings
    ctx.gate.add(case.name, outcome.recording, call.outcome.configurations)
    run = session.replay(outcome.recording, inputs)
    return (run.findings or broken_contract(ctx.part(case), case, outcome.recording, inputs)
            or wrong_values(case, run.results, inputs, ctx, outcome.recording))


def _after_trials(call: RecordedCall, ctx: Context) -> Sequence[Finding]:
    """Checks the results of a first call with trials; a call that cannot be made is passed over.

    Hooks may store into tensors that no kernel may store into, and bring back what they held.
    """
    inputs, session = call.inputs, ctx.session(call.case)
    outcome = session.record(inputs, trials=TRIALS)
    if outcome.recording is None or outcome.findings:
        return []
    run = session.replay(outcome.recording, inputs)
    if run.findings:
        return codes.in_order(run.findings) if ctx.part(call.case).in_place else []
    return wrong_values(call.case, run.results, inputs, ctx, outcome.recording)
