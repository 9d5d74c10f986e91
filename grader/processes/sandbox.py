"""The sandbox of a grade: which handlers its children run, and what its zygote warms."""

from __future__ import annotations

from collections.abc import Collection

from grader.sandbox import Handlers, Measure, Sandbox

HANDLERS = Handlers(
    roles={
        "worker": "grader.worker.main:WorkerHandler",
        "executor": "grader.executor.main:ExecutorHandler",
        "compiler": "grader.executor.compile_service:CompileHandler",
        "gpu": "grader.executor.gpu_service:GpuHandler",
    },
    first=(
        "grader.submission.triton_namespace:note_plain_imports",  # before Triton is imported
        "grader.engine.interpreter.selftest:check",
    ),
    warm=("grader.worker.main:warm", "grader.executor.main:warm"),
    idle=("grader.executor.compile_service:warm", "grader.executor.gpu_service"),
    # Few modules need pytest, which imports as much again to run a test, or torch's compiler,
    # which takes as long to import as torch.
    expected={"tests": ("grader.worker.pytest_runner:warm",),
              "graphs": ("grader.worker.graphs:warm",)},
)


class GradingSandbox(Sandbox):
    """A sandbox for worker, executor, compiler and GPU process. Arguments as of ``Sandbox``."""

    def __init__(self, without: Collection[Measure] = ()) -> None:
        super().__init__(HANDLERS, without)
