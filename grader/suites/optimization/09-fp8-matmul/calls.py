"""Calls reports of formats with a scripted clock, and simulates GPUs.

A simulated GPU exists only in the answers of torch about GPUs; kernels run on CPU tensors.
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
    """Makes torch report a GPU of this compute capability."""
    with mock.patch.object(torch.cuda, "is_available", lambda: True), \
            mock.patch.object(torch.cuda, "device_count", lambda: 1), \
            mock.patch.object(torch.cuda, "get_device_capability",
                              lambda device=None: tuple(capability)):
        yield


def product_on(module: Any, capability: Sequence[int]) -> list[float]:
    """Returns a small product with a simulated GPU of this capability."""
    a_q, b_q_t = (torch.full((4, 32), value).to(torch.float8_e4m3fn) for value in (0.5, 2.0))
    one = torch.ones(())
    with planted(capability):
        return module.matmul_fp8(a_q, b_q_t, one, one).flatten().tolist()


class _Conversions(TorchDispatchMode):
    """Counts conversions to another dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.made = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Prevents torch's compiler from being imported."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.made += "_to_copy" in str(func)
        return func(*args, **(kwargs or {}))


def report(module: Any, sizes: Sequence[int], times: Sequence[float],
           capability: Sequence[int]) -> dict[str, Any]:
    """Returns the result of ``format_report`` with a clock that returns these times in turn.

    ``rows`` are its fields. ``timed`` has, per timing, whether TF32 was allowed, how many tensors
    were converted and how many quantized. ``restored`` is whether the TF32 setting was restored.
    """
    left, timed, quantized = list(times), [], []
    quantize = module.quantize_fp8

    def counted(*args: Any, **more: Any) -> Any:
        quantized.append(1)
        return quantize(*args, **more)

    def clock(work: Any, repeats: int = 20) -> float:
        before, conversions = len(quantized), _Conversions()
        with conversions:
            work()
        timed.append([bool(torch.backends.cuda.matmul.allow_tf32), conversions.made,
                      len(quantized) - before])
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
    """Returns the names of the rows on this machine, without simulation."""
    return [row.name for row in module.format_report(*sizes)]
