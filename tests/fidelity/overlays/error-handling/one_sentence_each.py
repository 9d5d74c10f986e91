"""Right but different: each check is a function that gives sentences; tiles in groups."""
import itertools
from typing import Literal, TypeVar

del _Problems
del _check_tensor
del _is_matrix
del _shape
del _kind
del _shared_bytes
del _checking


class InputValidationError(TritonKernelError, ValueError):

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = [*problems]

    def __reduce__(self) -> tuple[type[InputValidationError], tuple[list[str]]]:
        return type(self), (self.problems,)  # a copy would be made of the joined text otherwise


TYPE, VALUE = "type", "value"


def validate_matmul(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None = None, *,
                    allowed: tuple[torch.dtype, ...] = FLOATS) -> MatmulProblem:
    named = [("a", a), ("b", b)] + [("out", out)] * (out is not None)
    told = list(itertools.chain.from_iterable(_about(*one, a, b, allowed) for one in named))
    if told:
        kinds, sentences = zip(*told, strict=True)
        raise (InputValidationError if VALUE in kinds else InputTypeError)(sentences)
    return MatmulProblem(M=len(a), N=b.shape[-1], K=len(b), dtype=b.dtype, device=b.device)


def _about(name, value, a, b, allowed):
    if not isinstance(value, torch.Tensor):
        return [(TYPE, f"{name}: expected a tensor, got an object of {type(value).__name__}")]
    told = []
    if value.dtype not in allowed:
        told.append((TYPE, f"{name}: expected one of {allowed}, got {value.dtype}"))
    elif isinstance(a, torch.Tensor) and value.dtype is not a.dtype:
        told.append((TYPE, f"{name}: expected a's {a.dtype}, got {value.dtype}"))
    if isinstance(a, torch.Tensor) and value.device != a.device:
        told.append((VALUE, f"{name}: expected a's {a.device}, got {value.device}"))
    if value.ndim != 2:
        told.append((VALUE, f"{name}: expected 2-D, got {value.ndim}-D, {tuple(value.shape)}"))
        return told
    wanted = {"a": (None, None),
              "b": (a.shape[1] if _flat(a) else None, None),
              "out": (a.shape[0] if _flat(a) else None, b.shape[1] if _flat(b) else None)}[name]
    if any(size not in (None, got) for size, got in zip(wanted, value.shape, strict=True)):
        told.append((VALUE, f"{name}: expected {wanted}, got {tuple(value.shape)}"))
    if name == "out" and any(_meets(value, one) for one in (a, b)):
        told.append((VALUE, "out: expected other memory than a's and b's, got some of theirs"))
    return told


def _flat(value):
    return isinstance(value, torch.Tensor) and value.ndim == 2


def _meets(one, other):
    if not isinstance(other, torch.Tensor) or "meta" in (one.device.type, other.device.type):
        return False
    return one.numel() > 0 < other.numel() and (
        one.data_ptr() <= _last_byte(other) and other.data_ptr() <= _last_byte(one))


def _last_byte(tensor):
    last = tensor[-1, -1] if tensor.ndim == 2 else tensor.flatten()[-1]
    return last.data_ptr() + tensor.element_size() - 1


def pick_block(n: int) -> int:
    match n:
        case bool() | float() | str() | None:
            raise InputTypeError([f"n: expected int, got {type(n).__name__}: {n}"])
        case int() if n >= 0:
            return (64, 256, 1_024)[(n >= 1_000) + (n >= 100_000)]
    raise InputValidationError([f"n: expected no negative number, got {n}"])


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,      # [M, K], [K, N], [M, N]
    M, N, K,
    stride_am, stride_ak,     # distances in elements to the next row, to the next column
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_M: tl.constexpr,    # rows of a tile of C, a power of two like the next two
    BLOCK_N: tl.constexpr,    # columns of a tile of C
    BLOCK_K: tl.constexpr,    # columns of A and rows of B per step, at least 16
):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    first = pid // (4 * num_pid_n) * 4
    height = min(num_pid_m - first, 4)
    pid_m = first + pid % (4 * num_pid_n) % height
    pid_n = pid % (4 * num_pid_n) // height

    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)  # row * stride passes 2**31
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_m = offs_m < M
    in_n = offs_n < N

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for first_k in range(0, K, BLOCK_K):
        offs_k = tl.cast(first_k, tl.int64) + tl.arange(0, BLOCK_K)
        in_k = offs_k < K
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak,
                    mask=in_m[:, None] & in_k[None, :], other=0.0)  # neutral for a sum
        b = tl.load(b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn,
                    mask=in_k[:, None] & in_n[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")  # no TF32; no matter in 16 bits

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_m[:, None] & in_n[None, :])


_states = [False]  # the last one counts


@contextmanager
def checked_outputs() -> Iterator[None]:
    _states.append(True)
    try:
        yield
    finally:
        _states.pop()


def matmul_robust(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    configs: Sequence[Config] = DEFAULT,
    policy: Literal["raise", "fallback"] = "raise",
    launch: Callable[[torch.Tensor, torch.Tensor, torch.Tensor, Config], None] | None = None,
) -> torch.Tensor:
    problem = _validated(a, b, configs, policy)
    out = torch.empty((problem.M, problem.N), dtype=problem.dtype, device=problem.device)
    if out.numel() == 0:
        return out  # no row or no column: no program, no launch

    for left, config in zip(reversed(range(len(configs))), configs, strict=True):
        attempt = functools.partial(launch or launch_matmul, a, b, out, config)
        try:
            safe_launch(attempt, op="matmul")
            break
        except KernelResourceError as error:
            if left > 0:
                continue
            if policy == "raise":
                raise
            warnings.warn(f"matmul: torch.matmul takes the place of the kernel: {error}",
                          RuntimeWarning, stacklevel=2)
            matmul_robust.fallbacks += 1
            out = torch.matmul(a, b)  # nothing of what a failed launch may have written is kept
    if _states[-1]:
        _check_finite(out)
    return out
