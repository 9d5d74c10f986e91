"""Calls that take more than one step: gradients, the module, what is kept between the two passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

NAMES = ("x", "weight", "bias")
COLUMNS, ROWS = 96, 40


# ---------------------------------------------------------------------------------------------
# Drivers: every launch of what they call is recorded


def backward(module: Any, x: Any, weight: Any, bias: Any, dy: Any, eps: float = 1e-5) -> Any:
    return _gradients(module.layer_norm, (x, weight, bias), dy, eps, NAMES)


def backward_to_x(module: Any, x: Any, weight: Any, bias: Any, dy: Any, eps: float = 1e-5) -> Any:
    (dx,) = _gradients(module.layer_norm, (x, weight, bias), dy, eps, ("x",))
    return dx


def backward_to_parameters(module: Any, x: Any, weight: Any, bias: Any, dy: Any,
                           eps: float = 1e-5) -> Any:
    return _gradients(module.layer_norm, (x, weight, bias), dy, eps, ("weight", "bias"))


def backward_beside_a_frozen_weight(module: Any, x: Any, weight: Any, bias: Any, dy: Any,
                                    eps: float = 1e-5) -> Any:
    return _gradients(module.layer_norm, (x, weight, bias), dy, eps, ("x", "bias"))


def backward_beside_a_frozen_bias(module: Any, x: Any, weight: Any, bias: Any, dy: Any,
                                  eps: float = 1e-5) -> Any:
    return _gradients(module.layer_norm, (x, weight, bias), dy, eps, ("x", "weight"))


def module_forward(module: Any, x: Any, weight: Any, bias: Any, eps: float = 1e-5) -> Any:
    made = module.TritonLayerNorm(weight.shape[0], eps, device=x.device, dtype=weight.dtype)
    return torch.func.functional_call(made, {"weight": weight, "bias": bias}, (x,)).detach()


def new_module_forward(module: Any, x: Any) -> Any:
    """With the parameters that a new module has."""
    made = module.TritonLayerNorm(x.shape[-1], device=x.device, dtype=x.dtype)
    return made(x).detach()


def module_backward(module: Any, x: Any, weight: Any, bias: Any, dy: Any,
                    eps: float = 1e-5) -> Any:
    made = module.TritonLayerNorm(weight.shape[0], eps, device=x.device, dtype=weight.dtype)

    def called(x: Any, weight: Any, bias: Any, eps: float) -> Any:
        return torch.func.functional_call(made, {"weight": weight, "bias": bias}, (x,))

    return _gradients(called, (x, weight, bias), dy, eps, NAMES)


def _gradients(function: Any, given: Sequence[Any], dy: Any, eps: float,
               wanted: Sequence[str]) -> tuple[Any, ...]:
    """The gradients of the inputs that are named; the others do not ask for any."""
    inputs = [tensor.detach().requires_grad_(name in wanted)
              for name, tensor in zip(NAMES, given, strict=True)]
    y = function(*inputs, eps)
    if not isinstance(y, torch.Tensor) or y.grad_fn is None:
        raise RuntimeError("the result has no grad_fn, so nothing can be differentiated by it")
    asked = [tensor for tensor in inputs if tensor.requires_grad]
    gradients = _grad(y, asked, dy)
    missing = [name for name, one in zip(wanted, gradients, strict=True) if one is None]
    if missing:
        raise RuntimeError(f"backward gave None for {' and '.join(missing)}, asked for {wanted}")
    return tuple(gradients)


def _grad(y: Any, inputs: Sequence[Any], dy: Any, create_graph: bool = False) -> Any:
    """Returns gradients as ``torch.autograd.grad`` does; None for an input that y does not use.

    ``torch.autograd.grad`` imports SymPy to compare the shapes of y and dy, which takes longer than
    all calls of this file.
    """
    return torch.autograd.graph._engine_run_backward(
        (y,), (dy,), create_graph, create_graph, tuple(inputs), True, accumulate_grad=False)


# ---------------------------------------------------------------------------------------------
# Questions: launches run at once


def _example(**how: Any) -> tuple[Any, Any, Any]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(ROWS, COLUMNS, generator=generator)
    return (x.requires_grad_(), torch.ones(COLUMNS, requires_grad=True),
            torch.zeros(COLUMNS, requires_grad=True))


def saved(module: Any) -> dict[str, Any]:
    """The bytes of all memory that the graph of a result keeps for its backward pass."""
    y = module.layer_norm(*_example())
    kept = {}
    for node in _nodes(y.grad_fn):
        for tensor in _tensors(node):
            storage = tensor.untyped_storage()
            kept[storage.data_ptr()] = storage.nbytes()
    return {"bytes": sum(kept.values()), "pieces": sorted(kept.values(), reverse=True),
            "least": 4 * (ROWS * COLUMNS + COLUMNS) + 8 * ROWS}


def _nodes(first: Any) -> Iterator[Any]:
    found, left = [], [first]
    while left:
        node = left.pop()
        if node is not None and node not in found:
            found.append(node)
            left += [one for one, _ in node.next_functions]
    return iter(found)


def _tensors(node: Any) -> Iterator[Any]:
    """What a node keeps: by save_for_backward, as an attribute of ctx, or as torch's own nodes do.

    The leaves themselves, which a node that accumulates knows as its variable, are none of it.
    """
    names = [name for name in dir(node) if name.startswith("_saved_")]
    values = [getattr(node, "saved_tensors", ()), *getattr(node, "__dict__", {}).values(),
              *(getattr(node, name) for name in names)]
    while values:
        value = values.pop()
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            values += value
        elif isinstance(value, dict):
            values += value.values()


def without_rows(module: Any) -> dict[str, Any]:
    """All gradients where x has no row: it holds no number of which anything could be computed."""
    x = torch.empty(0, 8, requires_grad=True)
    inputs = (x, torch.ones(8, requires_grad=True), torch.zeros(8, requires_grad=True))
    dx, dw, db = _grad(module.layer_norm(*inputs), inputs, torch.empty(0, 8))
    return {"dx": list(dx.shape), "dw": dw.tolist(), "db": db.tolist()}


def first_of_three(module: Any) -> dict[str, Any]:
    """How far all gradients of a first result are off, after two more forward passes.

    The second has the shape of the first and other numbers, the third other columns as well.
    """
    generator = torch.Generator().manual_seed(1)
    given = [tuple(torch.randn(*shape, generator=generator).requires_grad_()
                   for shape in ((rows, columns), (columns,), (columns,)))
             for rows, columns in ((5, 24), (5, 24), (5, 16))]
    dy = torch.randn(5, 24, generator=generator)
    first, *_ = [module.layer_norm(*inputs) for inputs in given]
    gradients = _grad(first, given[0], dy)
    exact = [tensor.detach().double().requires_grad_() for tensor in given[0]]
    right = _grad(torch.nn.functional.layer_norm(exact[0], (24,), *exact[1:]), exact, dy.double())
    return {f"d{name}": float((one - wanted).abs().max())
            for name, one, wanted in zip("xwb", gradients, right, strict=True)}


def twice(module: Any) -> dict[str, bool]:
    """What becomes of an attempt to differentiate a gradient."""
    x, weight, bias = _example()
    y = module.layer_norm(x, weight, bias)
    dy = x.detach().clone().requires_grad_()
    try:
        (dx,) = _grad(y, (x,), dy, create_graph=True)
        if not dx.requires_grad:
            return {"raised": False, "differentiable": False}
        dx.sum().backward()
    except RuntimeError:
        return {"raised": True, "differentiable": True}
    return {"raised": False, "differentiable": True}


def makes_modules(module: Any, dtypes: Sequence[str]) -> list[dict[str, Any]]:
    """What new modules hold, and whether they take and give the state of ``torch.nn.LayerNorm``."""
    found = []
    for name in dtypes:
        dtype = getattr(torch, name)
        made = module.TritonLayerNorm(7, 1e-3, dtype=dtype)
        theirs = torch.nn.LayerNorm(7, 1e-3, dtype=dtype)
        state = made.state_dict()
        with torch.no_grad():
            for number, parameter in enumerate(theirs.parameters()):
                parameter.fill_(number + 2)
        found.append({
            "is_module": isinstance(made, torch.nn.Module),
            "state": {key: [str(value.dtype).removeprefix("torch."), list(value.shape)]
                      for key, value in state.items()},
            "values": {key: value.double().tolist() for key, value in state.items()},
            "parameters": sorted(key for key, value in made.named_parameters()
                                 if value.requires_grad),
            "takes": _told(made.load_state_dict, theirs.state_dict()),
            "taken": {key: value.double().tolist() for key, value in made.state_dict().items()},
            "gives": _told(theirs.load_state_dict, made.state_dict()),
        })
    return found


def _told(function: Any, state: Mapping[str, Any]) -> str:
    try:
        function(state)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    return ""


def on_meta(module: Any) -> list[str]:
    """Where the parameters of a module lie that is made for torch's meta device."""
    made = module.TritonLayerNorm(7, device="meta")
    return [str(value.device) for value in made.parameters()]
