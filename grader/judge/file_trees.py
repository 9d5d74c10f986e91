"""One call of host code in several trees: the learner's files with parts of them replaced."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from grader.engine.compiler import targets
from grader.processes.pool import Later
from grader.processes.replies import Answer, Stopped
from grader.processes.session import Session
from grader.sandbox import ResourceLimits, Sandbox
from grader.submission.source import Source
from grader.suite.cases import Call, Tree

PATIENCE_S = 120.0  # for all trees of a case together


def answers(call: Call, inputs: Sequence[Any], drivers: str, submitted: Source, sandbox: Sandbox,
            limits: ResourceLimits | None = None, *, target: str = targets.DEFAULT,
            all_of_them: bool = True) -> dict[str, Answer]:
    """The answer of the call in each tree, by its name; ``other`` is the reason where it has none.

    Each tree has a worker of its own, so that nothing that ran in one is left in the next. As many
    run at the same time as this process may use CPUs.

    Args:
        call: of host code; its ``trees`` are tried in their order.
        inputs: of the call.
        drivers: the text of the suite's calls.py.
        submitted: the learner's files.
        sandbox: where workers are forked.
        limits: of each worker.
        target: the name of the GPU that host code finds where it asks for one.
        all_of_them: go on where the answers that there are settle the case.
    """
    sandbox.expect("tests")
    began = time.monotonic()
    by_tree: dict[str, Answer] = {}
    left = deque(call.trees)
    running: deque[tuple[Tree, Session, Later[Answer]]] = deque()
    try:
        while left or running:
            while left and len(running) < len(os.sched_getaffinity(0)):
                tree = left.popleft()
                session = Session(submitted.with_files(tree.files, tree.instead_of), "", sandbox,
                                  limits, target=target)
                running.append((tree, session, session.begin_ask(
                    call, inputs, drivers, at_once=True)))
            tree, session, answer = running.popleft()
            try:
                by_tree[tree.name] = answer()
            except Stopped as stop:
                by_tree[tree.name] = Answer(other=stop.finding.seen)
            finally:
                session.close()
            if call.settled is not None and not all_of_them and call.settled(by_tree):
                break
            if time.monotonic() - began > PATIENCE_S:
                by_tree |= {late.name: Answer(other="It was not tried: the trees before it took "
                                                    f"{PATIENCE_S:.0f} s.") for late in left}
                left.clear()
    finally:
        for _, session, _ in running:
            session.close()
    return by_tree
