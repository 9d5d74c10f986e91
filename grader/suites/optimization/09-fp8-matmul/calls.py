"""Asks for reports of formats with a scripted clock, and plants GPUs.

No GPU is here. Where one is planted, torch answers as if there were one of that capability, and
kernels run on tensors of the processor all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

FIELDS = ("name", "ms", "tflops", "error")


@contextmanager
def planted(capability: Sequence[int]) -> Iterator[None]:
    """Inside, torch tells of a GPU of this compute capability."""
    with mock.patch.object(torch.cuda, "is_available", lambda: True), \
            mock.patch.object(torch.cuda, "device_count", lambda: 1), \
            mock.patch.object(torch.cuda, "get_device_capability",
                              lambda device=None: tuple(capability)):
        yield


def product_on(module: Any, capability: Sequence[int]) -> list[float]:
    """The results of a small product where a GPU of this capability is found."""
    a_q, b_q_t = (torch.full((4, 32), value).to(torch.float8_e4m3fn) for value in (0.5, 2.0))
    one = torch.ones(())
    with planted(capability):
        return module.matmul_fp8(a_q, b_q_t, one, one).flatten().tolist()


class _Conversions(TorchDispatchMode):
    """Counts what makes another dtype of a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.made = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else torch's own compiler would be loaded."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.made += "_to_copy" in str(func)
        return func(*args, **(kwargs or {}))


def report(module: Any, sizes: Sequence[int], times: Sequence[float],
           capability: Sequence[int]) -> dict[str, Any]:
    """What ``format_report`` answers where the clock gives these times in turn.

    ``rows`` are its fields, ``timed`` says of each time whether TF32 was allowed while it was
    taken, how many dtypes were converted by the work and how often it quantised. ``restored``:
    whether TF32 is afterwards what it was before.
    """
    left, timed, quantised = list(times), [], []
    quantize = module.quantize_fp8

    def counted(*args: Any, **more: Any) -> Any:
        quantised.append(1)
        return quantize(*args, **more)

    def clock(work: Any, repeats: int = 20) -> float:
        before, conversions = len(quantised), _Conversions()
        with conversions:
            work()
        timed.append([bool(torch.backends.cuda.matmul.allow_tf32), conversions.made,
                      len(quantised) - before])
        return left.pop(0) if left else 1.0

    allowed = torch.backends.cuda.matmul.allow_tf32
    with ExitStack() as here:
        here.enter_context(planted(capability))
        for name, value in (("the_gpu", lambda: torch.device("cpu")), ("time_ms", clock),
                            ("quantize_fp8", counted)):
            here.enter_context(mock.patch.object(module, name, value))
        torch.manual_seed(1)
        rows = module.format_report(*sizes)
    restored = torch.backends.cuda.matmul.allow_tf32 == allowed
    torch.backends.cuda.matmul.allow_tf32 = allowed
    return {"rows": [[getattr(row, field) for field in FIELDS] for row in rows], "timed": timed,
            "restored": restored}


def report_here(module: Any, sizes: Sequence[int]) -> Any:
    """What it answers on this machine, as the file is."""
    return [row.name for row in module.format_report(*sizes)]
