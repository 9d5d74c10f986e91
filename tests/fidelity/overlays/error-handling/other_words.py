"""Right but different: other words, named tuples, addresses one by one, a warning of its own."""

import numbers
from contextlib import contextmanager, nullcontext
from typing import Literal, NamedTuple, TypeVar

del _Problems
del _check_tensor
del _is_matrix
del _shape
del _kind
del _shared_bytes
del matmul_robust.fallbacks
del _validated
del _check_finite


class InputValidationError(TritonKernelError, ValueError):
    def __init__(self, problems=()):
        super().__init__(problems)
        self.problems = list(problems)

    def __str__(self):
        return "\n".join(["these arguments do not fit:", *self.problems])


class KernelResourceError(TritonKernelError):
    required = limit = 0
    resource = "device memory"


class MatmulProblem(NamedTuple):
    M: int
    N: int
    K: int
    dtype: torch.dtype
    device: torch.device


def validate_matmul(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None = None, *,
                    allowed: tuple[torch.dtype, ...] = FLOATS) -> MatmulProblem:
    found = {"a": [], "b": [], "out": []}
    values = []
    given = {"a": a, "b": b} | ({} if out is None else {"out": out})
    tensors = {name: one for name, one in given.items() if isinstance(one, torch.Tensor)}
    for name, one in given.items():
        if name not in tensors:
            found[name].append(f"{name}: expected tensor, got {type(one)!r}")
    for name, one in tensors.items():
        if one.dtype not in allowed:
            found[name].append(f"{name}: expected a dtype of {list(allowed)}, got {one.dtype}")
        if "a" in tensors and one.dtype != a.dtype:
            found[name].append(f"{name}: expected the dtype {a.dtype}, got {one.dtype}")
        if one.ndim != 2:
            values.append((name, f"a matrix, got {one.ndim} dimensions: {list(one.shape)}, "
                                 f"{one.ndim} instead of 2"))
        if "a" in tensors and one.device != a.device:
            values.append((name, f"to find it on {a.device}, got {one.device}"))
    flat = [one for one in tensors.values() if one.ndim == 2]
    if "a" in tensors and "b" in tensors and a.ndim == b.ndim == 2:
        if a.size(1) != b.size(0):
            values.append(("b", f"{a.size(1)} rows, got {b.size(0)}"))
        if "out" in tensors and len(flat) == 3 and out.shape != (a.size(0), b.size(1)):
            values.append(("out", f"{(a.size(0), b.size(1))}, got {tuple(out.shape)}"))
    for name in ("a", "b"):
        if "out" in tensors and name in tensors and _addresses(out) & _addresses(tensors[name]):
            values.append(("out", f"nothing in common with {name}, got the same addresses"))
    for name, text in values:
        found[name].append(f"{name}: expected {text}")
    if problems := [text for name in given for text in found[name]]:
        raise InputValidationError(problems) if values else InputTypeError(problems)
    return MatmulProblem(a.size(0), b.size(1), a.size(1), a.dtype, a.device)


def _addresses(tensor):
    if tensor.is_meta:
        return set()
    places = {tensor.data_ptr()} if tensor.numel() else set()
    for size, step in zip(tensor.shape, tensor.stride(), strict=True):
        places = {place + i * step * tensor.element_size()
                  for place in places for i in range(size)}
    return {place + byte for place in places for byte in range(tensor.element_size())}


def pick_block(n: int) -> int:
    if not isinstance(n, numbers.Integral) or n is True or n is False:
        raise InputTypeError([f"n: expected a whole number, got {type(n).__name__} {n}"])
    if n < 0:
        raise InputValidationError([f"n: expected n >= 0, got {n}"])
    for block, below in ((64, 1_000), (256, 100_000)):
        if n < below:
            return block
    return 1_024


def safe_launch(launch: Callable[[], T], *, op: str,
                synchronize: Callable[[], None] | None = None) -> T:
    with _named(op):
        result = launch()
        (synchronize or nullcontext)()
    return result


@contextmanager
def _named(op):
    try:
        yield
    except triton.OutOfResources as error:
        made = KernelResourceError(f"{op} needs {error.required} of {error.name}")
        made.required, made.limit, made.resource = error.required, error.limit, error.name
        raise made from error
    except triton.CompilationError as error:
        raise KernelCompilationError(f"{op} does not compile") from error
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise KernelResourceError(f"{op} has no memory") from error
        if isinstance(error, CUDA_ERRORS) or str(error).startswith(CUDA_TEXTS):
            raise KernelExecutionError(f"{op} failed on the device") from error
        raise


class SlowPath(RuntimeWarning):
    pass


def matmul_robust(a: torch.Tensor, b: torch.Tensor, *, configs: Sequence[Config] = DEFAULT,
                  policy: Literal["raise", "fallback"] = "raise", launch=None) -> torch.Tensor:
    M, N, _, dtype, device = validate_matmul(a, b)
    if policy != "raise" and policy != "fallback":
        raise InputValidationError((f"policy: expected a known one, got {policy!r}",))
    todo = iter(configs)
    config = next(todo, None)
    if config is None:
        raise InputValidationError(("configs: expected at least one, got an empty sequence",))
    out = torch.empty(M, N, dtype=dtype, device=device)
    while M and N and config is not None:
        try:
            safe_launch(lambda one=config, out=out: (launch or launch_matmul)(a, b, out, one),
                        op="matmul")
            config = None
        except KernelResourceError as error:
            config = next(todo, None)
            if config is None:
                if policy == "raise":
                    raise
                out = _slow(a, b, error)
    if _checking.get() and not torch.isfinite(out.float()).all():
        raise KernelExecutionError("matmul gave something that is not finite")
    return out


def _slow(a, b, error):
    matmul_robust.fallbacks = matmul_robust.fallbacks + 1
    warnings.warn(SlowPath(f"matmul by torch, for want of {error.resource}"), stacklevel=3)
    return a @ b


setattr(matmul_robust, "fallbacks", 0)  # noqa: B010 - as some checkers of types want it
