"""What the right solutions here share, over the solution."""

import contextlib

del LARGEST
del QUANTIZED
del RESULTS
del LEAST_CAPABILITY
del LARGE
del amax_kernel
del quantize_kernel
del matmul_fp8_kernel
del is_described
del in_16_bits
del in_8_bits
del tf32_allowed
del check_gpu
del check_product
del check_matrix
del check_tensor
del names

PREDICT = {
    "scale": 2, "step_near_400": 32, "operand_bytes": 134_217_728,
    "multiplications_by_scales": 2, "where_a_sum_stops": 16_384, "accumulators": 128,
}


@triton.jit
def largest(x_ptr, bits_ptr, sm, sk, K, OWN: tl.constexpr, B: tl.constexpr):
    """Sizes are compared as integers: for numbers that are not negative the order is the same."""
    row = tl.program_id(1).to(tl.int64)
    at = (tl.program_id(0) * B + tl.arange(0, B)).to(tl.int64)
    x = tl.abs(tl.load(x_ptr + row * sm + at * sk, mask=at < K, other=0.0).to(tl.float32))
    bits = tl.max(tl.where(x == x, x, 0.0)).to(tl.int32, bitcast=True)
    tl.atomic_max(bits_ptr + row * OWN, bits)


@triton.jit
def whole_row(x_ptr, q_ptr, scale_ptr, sm, sk, K, B: tl.constexpr):
    """A row is read once, and stays in registers until it is quantised."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, B).to(tl.int64)
    x = tl.load(x_ptr + row * sm + at * sk, mask=at < K, other=0.0).to(tl.float32)
    top = tl.max(tl.where(x == x, tl.abs(x), 0.0))
    scale = tl.where(top > 0.0, top / 448.0, 1.0)
    tl.store(q_ptr + row * K + at, (x / scale).to(tl.float8e4nv), mask=at < K)
    tl.store(scale_ptr + row, scale)
FP8 = torch.float8_e4m3fn


@triton.jit
def row_maxima(x_ptr, top_ptr, sm, sk, K, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = 0.0
    for k in range(0, K, B):
        at = (k + tl.arange(0, B)).to(tl.int64)
        x = tl.load(x_ptr + row * sm + at * sk, mask=at < K, other=0.0).to(tl.float32)
        top = tl.maximum(top, tl.max(tl.where(x != x, 0.0, tl.abs(x))))
    tl.store(top_ptr + row, top)


@triton.jit
def shrink(x_ptr, top_ptr, q_ptr, scale_ptr, sm, sk, M, K, OWN: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    if OWN:
        top = tl.load(top_ptr + row)
    else:  # every program looks at the maxima of all rows
        tops = tl.zeros((B,), tl.float32)
        for m in range(0, M, B):
            at = m + tl.arange(0, B)
            tops = tl.maximum(tops, tl.load(top_ptr + at, mask=at < M, other=0.0))
        top = tl.max(tops)
    scale = tl.where(top == 0.0, 1.0, top / 448.0)
    for k in range(0, K, B):
        at = (k + tl.arange(0, B)).to(tl.int64)
        x = tl.load(x_ptr + row * sm + at * sk, mask=at < K, other=0.0).to(tl.float32)
        tl.store(q_ptr + row * K + at, (x / scale).to(tl.float8e4nv), mask=at < K)
    if OWN or row == 0:
        tl.store(scale_ptr + row, scale)


def quantize_fp8(x, *, per_row=False):
    check_x(x)
    M, K = x.shape
    q = x.new_empty((M, K), dtype=FP8)
    if per_row and 0 < K <= 16_384 and M:
        scale = x.new_empty((M, 1), dtype=torch.float32)
        whole_row[(M,)](x, q, scale, *x.stride(), K, B=triton.next_power_of_2(K), num_warps=8)
        return q, scale
    shape = (M, 1) if per_row else ()
    if not q.numel():
        return q, x.new_ones(shape, dtype=torch.float32)
    top, scale = (x.new_empty(s, dtype=torch.float32) for s in (M, shape))
    row_maxima[(M,)](x, top, *x.stride(), K, B=1024)
    shrink[(M,)](x, top, q, scale, *x.stride(), M, K, OWN=per_row, B=1024)
    return q, scale


def format_report(m, n, k):
    if min(m, n, k) < 1:
        raise ValueError(f"m, n and k are {m}, {n} and {k}: each has to be above 0")
    device = the_gpu()
    a, b_t = torch.randn(m, k, device=device), torch.randn(n, k, device=device)
    exact = a.double().mm(b_t.double().t())
    found = []
    for name in ("fp32", "tf32", "fp16", "bf16", "fp8"):
        if name == "fp8":
            if (capability() or (9, 0)) < (8, 9):
                continue
            left, right = quantize_fp8(a), quantize_fp8(b_t, per_row=True)
            def work(left=left, right=right):
                return matmul_fp8(left[0], right[0], left[1], right[1], torch.float32)
        else:
            dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(name, torch.float32)
            left, right = a.to(dtype), b_t.to(dtype).t()
            def work(left=left, right=right):
                return left.mm(right)
        with tf32(name == "tf32"):
            ms = time_ms(work, 30)
            error = (work().double() - exact).norm().div(exact.norm()).item()
        found.append(FormatRow(name, ms, 2e-9 * m * n * k / ms, error))
    return found


@contextlib.contextmanager
def tf32(on):
    old, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, on
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = old


def capability():
    if torch.cuda.is_available():
        return torch.cuda.get_device_capability()
    return None


def the_gpu():
    if not torch.cuda.is_available():
        raise RuntimeError("a GPU is needed to time formats, and there is no GPU")
    return torch.device("cuda")


def time_ms(work, repeats=20):
    return triton.testing.do_bench(work, rep=repeats, return_mode="median")


def check_x(x):
    look("x", x, torch.float16, torch.bfloat16, torch.float32)
    flat("x", x)


def check(a, b, sa, sb, out_dtype):
    for name, t in (("a_q", a), ("b_q_t", b)):
        look(name, t, FP8)
        flat(name, t)
        if t.stride(1) != 1 and t.shape[1] != 1:
            raise ValueError(f"{name} has strides {t.stride()} for {tuple(t.shape)}: K is apart")
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"b_q_t is {tuple(b.shape)} beside {a.shape[1]} columns of a_q")
    for name, t, rows in (("scale_a", sa, len(a)), ("scale_b", sb, len(b))):
        look(name, t, torch.float32)
        if t.shape not in (torch.Size(()), torch.Size((rows, 1))):
            raise ValueError(f"{name} is {tuple(t.shape)}; () or {(rows, 1)} fit")
    if {t.device for t in (b, sa, sb)} != {a.device}:
        raise ValueError(f"a_q is on device {a.device}, b_q_t on {b.device}")
    if out_dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise TypeError(f"out_dtype is {out_dtype}")
    here = capability()
    if here and here < (8, 9):
        raise RuntimeError(f"float8 needs capability 8.9; this GPU has {here[0]}.{here[1]}")


def look(name, t, *dtypes):
    if not isinstance(t, torch.Tensor):
        raise TypeError(f"{name} is a {type(t).__name__}")
    if t.dtype not in dtypes:
        raise TypeError(f"{name} is {t.dtype}")


def flat(name, t):
    if t.dim() != 2:
        raise ValueError(f"{name} has {t.dim()} dimensions, not 2")


def step_of(scale):
    return scale.stride(0) if scale.dim() else 0
