"""Worked example: residual_scale, x + s * y, as an operator; its graphs counted, breaks found."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Any

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # set before Triton is imported
    logging.getLogger("torch").setLevel(logging.ERROR)  # hides a warning about a missing GPU

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
LENGTHS = (8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 112, 128)


@triton.jit
def residual_scale_kernel(x_ptr, y_ptr, out_ptr, n, s, BLOCK: tl.constexpr):
    """out[i] = x[i] + s y[i]. One program owns BLOCK elements."""
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=mask).to(tl.float32)
    tl.store(out_ptr + offs, (x + s * y).to(out_ptr.dtype.element_ty), mask=mask)


# The opaque way. The schema comes from the annotations; `mutates_args` is a promise that only
# `opcheck` tests. The compiler does not trace the function, so it needs a fake implementation.
@torch.library.custom_op("lesson::residual_scale", mutates_args=())
def residual_scale(x: torch.Tensor, y: torch.Tensor, s: float) -> torch.Tensor:
    """Returns x + s * y for two contiguous tensors of one shape and dtype."""
    out = torch.empty_like(x)
    if out.numel():
        grid = (triton.cdiv(out.numel(), 1024),)
        residual_scale_kernel[grid](x, y, out, out.numel(), s, BLOCK=1024)
    return out


@residual_scale.register_fake
def describe(x: torch.Tensor, y: torch.Tensor, s: float) -> torch.Tensor:
    """The fake implementation: the same allocation, no launch, and no access to values."""
    return torch.empty_like(x)


class Layer(torch.nn.Module):
    """x + s * tanh(x * w), and a variant that reads a value in between."""

    def __init__(self, width: int, looks: bool = False) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(width, device=DEVICE))
        self.looks = looks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(x * self.w)
        if self.looks and y.amax().item() > 2:  # waits for the GPU
            y = y / 2
        return residual_scale(x, y, 0.5)


class Counting:
    """A backend that counts graphs and runs them without generating code."""

    def __init__(self) -> None:
        self.operations: list[int] = []

    def __call__(self, graph: torch.fx.GraphModule, example_inputs: Any) -> Callable[..., Any]:
        self.operations.append(sum(node.op.startswith("call_") for node in graph.graph.nodes))
        return graph.forward


def graphs_of(model: Callable[[torch.Tensor], Any], inputs: list[torch.Tensor],
              dynamic: bool | None = None) -> list[int]:
    """Returns the number of operations of each graph that the compiler makes."""
    torch._dynamo.reset()
    counting = Counting()
    compiled = torch.compile(model, backend=counting, dynamic=dynamic)
    for x in inputs:
        compiled(x)
    return counting.operations


def milliseconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    if HAS_GPU:
        torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - began)


def main() -> None:
    x = torch.randn(4, 32, device=DEVICE)

    print("1. opcheck: what was promised, tried")
    tried = torch.library.opcheck(torch.ops.lesson.residual_scale.default, (x, x + 1, 0.5))
    for name, result in tried.items():
        print(f"   {name:28}{result}")

    print("\n2. Graphs of a call, and the operations of each")
    layers = torch.nn.Sequential(*(Layer(32) for _ in range(4)))
    print(f"   one layer                   {graphs_of(layers[0], [x])}")
    print(f"   four layers                 {graphs_of(layers, [x])}")
    print(f"   a layer that looks          {graphs_of(Layer(32, looks=True), [x])}")

    # `explain` collects the graphs and breaks of the compiler.
    report = torch._dynamo.explain(Layer(32, looks=True))(x)
    line = report.break_reasons[0].user_stack[-1]
    print(f"   it breaks at line {line.lineno}: {line.line}")

    print("\n3. Graphs for twelve lengths")
    inputs = [torch.randn(length, 32, device=DEVICE) for length in LENGTHS]
    for dynamic in (False, None, True):
        made = len(graphs_of(layers[0], inputs, dynamic))
        print(f"   dynamic={dynamic!s:20}{made}" + "   and eager from then on" * (made == 8))

    print("\n4. What it costs, in ms   first call   steady")
    backends: list[tuple[str, dict[str, Any]]] = [("eager", {})]
    if HAS_GPU:
        backends += [(mode, {"mode": mode}) for mode in (
            "default", "reduce-overhead", "max-autotune")]
    else:
        backends += [("counting", {"backend": Counting()})]
    for name, options in backends:
        torch._dynamo.reset()
        call = layers if name == "eager" else torch.compile(layers, **options)
        first = milliseconds(lambda call=call: call(x))
        for _ in range(10):
            call(x)
        steady = sorted(milliseconds(lambda call=call: call(x)) for _ in range(20))[10]
        print(f"   {name:23}{first:>11.2f}{steady:>9.2f}")


if __name__ == "__main__":
    with torch.no_grad():  # otherwise requires_grad is a guard and needs another graph
        main()
