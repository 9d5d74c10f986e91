"""Right but different: a region with its sums, terse messages."""

del SUPPORTED
del LAUNCH_US
del COMPILE_S
del TUNE_S
del MAX_RECORDED
del rmsnorm_gelu_linear_kernel
del check_arguments
del FusedMLP
del milliseconds
del synchronize
del graphs_made

BLOCK_M, BLOCK_N, BLOCK_K = 32, 32, 32

DESIGN = {
    "rmsnorm_gelu_linear": {
        "flops": "2 * M * N * K",
        "bytes": "e * (M * K + K + N * K + N + M * N)",
        "bound": "compute",
        "grid": "cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)",
        "tile": "BLOCK_M * BLOCK_N",
    },
}


# ---------------------------------------------------------------------------------------------
# The operator


@triton.jit
def rgl_kernel(
    x_ptr, norm_w_ptr, w_ptr, b_ptr, y_ptr,
    stride_xm, stride_xk, stride_nw, stride_wn, stride_wk, stride_b, stride_ym, stride_yn,
    M, N, K,
    eps,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    pid = tl.program_id(0)
    n_tiles = tl.cdiv(N, BLOCK_N)
    offs_m = (pid // n_tiles).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = (pid % n_tiles).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_m = offs_m < M
    mask_n = offs_n < N

    ss = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        offs_k = k + tl.arange(0, BLOCK_K).to(tl.int64)
        mask_k = offs_k < K
        x = tl.load(x_ptr + offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk,
                    mask=mask_m[:, None] & mask_k[None, :], other=0.0).to(tl.float32)
        ss += tl.sum(x * x, axis=1)
    scale = 1.0 / tl.sqrt(ss / K + eps)

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        offs_k = k + tl.arange(0, BLOCK_K).to(tl.int64)
        mask_k = offs_k < K
        x = tl.load(x_ptr + offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk,
                    mask=mask_m[:, None] & mask_k[None, :], other=0.0).to(tl.float32)
        nw = tl.load(norm_w_ptr + offs_k * stride_nw, mask=mask_k, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + offs_n[:, None] * stride_wn + offs_k[None, :] * stride_wk,
                    mask=mask_n[:, None] & mask_k[None, :], other=0.0)
        z = x * scale[:, None] * nw[None, :]
        a = 0.5 * z * (1.0 + tl.erf(z * 0.7071067811865476))
        acc = tl.dot(a.to(w.dtype), tl.trans(w), acc, input_precision="ieee")
    bias = tl.load(b_ptr + offs_n * stride_b, mask=mask_n, other=0.0).to(tl.float32)
    acc += bias[None, :]
    tl.store(y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :] * stride_yn,
             acc.to(y_ptr.dtype.element_ty), mask=mask_m[:, None] & mask_n[None, :])


@torch.library.triton_op("tritonlab::rmsnorm_gelu_linear", mutates_args=())
def rmsnorm_gelu_linear(x: torch.Tensor, norm_w: torch.Tensor, w: torch.Tensor, b: torch.Tensor,
                        eps: float) -> torch.Tensor:
    """gelu(rmsnorm(x) * norm_w) @ w.T + b for x (M, K), norm_w (K,), w (N, K), b (N,): (M, N).

    To be registered with torch as the operator "tritonlab::rmsnorm_gelu_linear".

    Raises:
        TypeError: a dtype is not supported, or not that of x.
        ValueError: shapes do not fit, devices differ, or eps is negative.
    """
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x has to be float32, float16 or bfloat16, not {x.dtype}")
    for name, t in (("norm_w", norm_w), ("w", w), ("b", b)):
        if t.dtype != x.dtype:
            raise TypeError(f"{name} has to have the dtype of x, {x.dtype}, not {t.dtype}")
        if t.device != x.device:
            raise ValueError(f"{name} has to be on {x.device}, not on {t.device}")
    if x.ndim != 2:
        raise ValueError(f"x has to be (M, K), not {tuple(x.shape)}")
    if w.ndim != 2:
        raise ValueError(f"w has to be (N, K), not {tuple(w.shape)}")
    M, K = x.shape
    N = w.shape[0]
    if w.shape[1] != K:
        raise ValueError(f"w has to be (N, {K}), not {tuple(w.shape)}")
    if norm_w.ndim != 1 or norm_w.shape[0] != K:
        raise ValueError(f"norm_w has to be ({K},), not {tuple(norm_w.shape)}")
    if b.ndim != 1 or b.shape[0] != N:
        raise ValueError(f"b has to be ({N},), not {tuple(b.shape)}")
    if eps < 0:
        raise ValueError(f"eps has to be at least 0, not {eps}")
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if y.numel():
        grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)
        torch.library.wrap_triton(rgl_kernel)[grid](
            x, norm_w, w, b, y,
            x.stride(0), x.stride(1), norm_w.stride(0), w.stride(0), w.stride(1), b.stride(0),
            y.stride(0), y.stride(1),
            M, N, K, eps, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K)
    return y


# ---------------------------------------------------------------------------------------------
# A model that uses it, compiled whole and by regions


def hot_path(x, a, norm_w, w, b, eps):
    h = x + a
    return h + rmsnorm_gelu_linear(h.flatten(0, -2), norm_w, w, b, eps).view(h.shape)


class Block(torch.nn.Module):
    """h = x + attention(x); h + rmsnorm_gelu_linear(h), for (batch, length, width).

    Its parameters are `norm_w` (width,), `w` (width, width) and `b` (width,), in the block itself
    or in a module of it; `attention` is an `Attention`. It has one graph, without a break.
    """

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.attention = Attention()
        self.norm_w = torch.nn.Parameter(torch.ones(width))
        self.w = torch.nn.Parameter(torch.randn(width, width) / width**0.5)
        self.b = torch.nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return hot_path(x, self.attention(x), self.norm_w, self.w, self.b, self.eps)


def compile_regionally(
    model: torch.nn.Sequential, backend: str | Callable[..., Any] = "inductor"
) -> Callable[[torch.Tensor], torch.Tensor]:
    """What calls ``model``, a row of blocks, with only the hot path of a block as a graph.

    The hot path is what lies behind attention. All blocks use the same graph, with their own
    weights; two graphs serve all lengths. All else runs as it is.
    """
    hot = torch.compile(hot_path, backend=backend, fullgraph=True, dynamic=True)

    def call(x):
        for block in model:
            x = hot(x, block.attention(x), block.norm_w, block.w, block.b, block.eps)
        return x

    return call


# ---------------------------------------------------------------------------------------------
# What compiling costs, and when it pays


def run_schedule(fn: Callable[[int], Any], lengths: Sequence[int], *, warmup: int = 0,
                 iterations: int = 4) -> ScheduleReport:
    """For each length: call ``fn(length)`` once, ``warmup`` times untimed, ``iterations`` times.

    A call has ended when the GPU, if there is one, has done its work.

    Raises:
        ValueError: there is no timed call, or a negative number of calls to warm up.
    """
    if iterations < 1:
        raise ValueError(f"iterations has to be at least 1, not {iterations}")
    if warmup < 0:
        raise ValueError(f"warmup has to be at least 0, not {warmup}")

    def timed(length):
        wait()
        began = time.perf_counter()
        fn(length)
        wait()
        return 1e3 * (time.perf_counter() - began)

    def wait():
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    stats = torch._dynamo.utils.counters["stats"]
    before = stats["unique_graphs"]
    first, steady = [], []
    for length in lengths:
        first.append(timed(length))
        for _ in range(warmup):
            fn(length)
        steady.append(statistics.median(timed(length) for _ in range(iterations)))
    return ScheduleReport(tuple(first), tuple(steady), stats["unique_graphs"] - before)


def keep_compiled_in(folder: str | Path) -> dict[str, str]:
    """Have Inductor and Triton keep what they compile from now on in ``folder``, or below it.

    Returns the environment variables that were set, and their values.
    """
    folder = Path(folder).absolute()
    found = {
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
    }
    os.environ.update(found)
    return found


def choose_mode(
    workload: Workload,
) -> Literal["eager", "default", "reduce-overhead", "max-autotune"]:
    """The least that takes away what the job's time is made of, if that pays for compiling it.

    Take 10 us of the host for each launch without a recorded graph, 20 s to compile, and 10 minutes
    to compile and tune.
    """
    host = workload.launches * 10e-6 * workload.calls
    gpu = workload.launches * workload.kernel_us * 1e-6 * workload.calls
    if host > gpu:
        if host < 20:
            return "eager"
        return "reduce-overhead" if workload.shapes <= 8 else "default"
    touch = gpu * (1 - workload.library_share)
    if workload.library_share <= 0.9 and 0.05 * gpu > 600:
        return "max-autotune"
    if touch < 20 or workload.library_share > 0.9:
        return "eager"
    return "default"
