"""Right but different: failures in a table, and recursion over configurations."""

del _validated


def _resources(error):
    told = (getattr(error, "required", 0), getattr(error, "limit", 0),
            getattr(error, "name", None) or "memory of the device")
    return KernelResourceError(f"out of {told[2]}", *told)


NAMES = {
    triton.CompilationError: lambda error: KernelCompilationError("refused by the compiler"),
    triton.OutOfResources: _resources,
    torch.OutOfMemoryError: _resources,
    torch.AcceleratorError: lambda error: KernelExecutionError("the GPU gave up"),
    torch.cuda.CudaError: lambda error: KernelExecutionError("the GPU gave up"),
}


def safe_launch(launch: Callable[[], T], *, op: str,
                synchronize: Callable[[], None] | None = None) -> T:
    try:
        value = launch()
        if synchronize:
            synchronize()
    except Exception as error:
        made = next((make for kind, make in NAMES.items() if isinstance(error, kind)), None)
        if made is None and isinstance(error, RuntimeError) and (
                str(error).startswith(CUDA_TEXTS)):
            made = NAMES[torch.AcceleratorError]
        if made is None:
            raise
        named = made(error)
        named.args = (f"{op}: {named}",)
        raise named from error
    return value


def matmul_robust(a: torch.Tensor, b: torch.Tensor, *, configs: Sequence[Config] = DEFAULT,
                  policy: Literal["raise", "fallback"] = "raise", launch=None) -> torch.Tensor:
    wrong = []
    if policy not in {"raise", "fallback"}:
        wrong.append(f"policy: expected raise or fallback, got {policy}")
    if len(configs) == 0:
        wrong.append("configs: expected one or more, got ()")
    if wrong:
        raise InputValidationError(wrong)
    problem = validate_matmul(a, b)
    if 0 in (problem.M, problem.N):
        return a.new_empty(problem.M, problem.N)
    try:
        result = _attempt(a, b, problem, list(configs), launch or launch_matmul)
    except KernelResourceError as error:
        if policy == "raise":
            raise
        matmul_robust.fallbacks += 1
        warnings.warn(f"matmul_robust: fell back, since {error.resource} is too little",
                      category=RuntimeWarning, stacklevel=2)
        result = torch.matmul(a, b)
    if _checking.get():
        _check_finite(result)
    return result


def _attempt(a, b, problem, configs, launch):
    first, *others = configs
    out = a.new_empty(problem.M, problem.N)
    try:
        safe_launch(lambda: launch(a, b, out, first), op="matmul_robust")
        return out
    except KernelResourceError:
        if not others:
            raise
    return _attempt(a, b, problem, others, launch)


def _check_finite(result: torch.Tensor) -> None:
    if not bool(torch.isfinite(result).all()):
        raise KernelExecutionError("the result is not finite")
