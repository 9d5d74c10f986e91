"""Cases that ask host code for an answer."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from grader.diagnosis import messages
from grader.diagnosis.explain import result_of
from grader.judge import oversized
from grader.judge.context import Context
from grader.judge.contract import broken_refusal, unanswered, wrong_answer
from grader.processes.pool import Later
from grader.processes.replies import Answer, Stopped
from grader.processes.session import Session
from grader.report import CaseResult
from grader.suite import Case
from grader.suite.cases import Call, Tree

PATIENCE_S = 120.0  # for all trees of a case together


def judge(case: Case, ctx: Context) -> CaseResult:
    """Judges the answer of host code, in the learner's files or in several trees.

    Raises:
        grader.processes.replies.Stopped: the worker did not survive it.
    """
    call = case.call
    assert call is not None
    inputs = ctx.draw(case)
    if call.trees:
        return result_of(case, wrong_answer(call, _answers(call, inputs, ctx), inputs))
    answer = ctx.ask(call, inputs)
    if case.raises and not answer.findings:
        return result_of(case, broken_refusal(case, answer.error))
    return result_of(case, unanswered(call, answer) or wrong_answer(call, answer.value, inputs))


def _answers(call: Call, inputs: Sequence[Any], ctx: Context) -> dict[str, Answer]:
    """The answer of a call in each of its trees, by name; ``other`` is the reason where none came.

    Each tree has a worker of its own, so that nothing that ran in one is left in the next. As many
    run at the same time as this process may use CPUs. Where messages are not whole, it ends with
    the answers that settle the case.
    """
    ctx.sandbox.expect("tests")
    began = time.monotonic()
    by_tree: dict[str, Answer] = {}
    left = deque(call.trees)
    running: deque[tuple[Tree, Session, Later[Answer]]] = deque()
    try:
        while left or running:
            while left and len(running) < len(os.sched_getaffinity(0)):
                tree = left.popleft()
                session = Session(ctx.submitted.with_files(tree.files, tree.instead_of), "",
                                  ctx.sandbox, oversized.limits(ctx.suite),
                                  target=ctx.gate.target.name, time_limit=ctx.time_limit)
                running.append((tree, session, session.begin_ask(
                    call, inputs, ctx.suite.calls, at_once=True)))
            tree, session, answer = running.popleft()
            try:
                by_tree[tree.name] = answer()
            except Stopped as stop:
                by_tree[tree.name] = Answer(other=stop.finding.seen)
            finally:
                session.close()
            if call.settled is not None and not ctx.whole_messages and call.settled(by_tree):
                break
            if time.monotonic() - began > PATIENCE_S:
                too_late = Answer(other=messages.words("not tried", seconds=PATIENCE_S))
                by_tree |= {late.name: too_late for late in left}
                left.clear()
    finally:
        for _, session, _ in running:
            session.close()
    return by_tree
