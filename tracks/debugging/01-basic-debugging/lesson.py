"""Worked example: diagnosis of a kernel that mirrors rows and is wrong for most shapes."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys

import torch

COMPILE_ONLY = "--compile" in sys.argv  # this file runs itself with this option
HAS_GPU = torch.cuda.is_available()
if not HAS_GPU and not COMPILE_ONLY:
    os.environ["TRITON_INTERPRET"] = "1"  # set before Triton is imported

import triton  # noqa: E402 - after TRITON_INTERPRET is set
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
SHAPES = [(1, 8), (1, 5), (2, 8), (4, 8), (5, 8), (8, 8), (5, 5), (7, 100)]


@triton.jit
def mirror_kernel(
    x_ptr, out_ptr,           # [n_rows, n_cols]
    n_rows, n_cols,
    BLOCK: tl.constexpr,      # power of two >= n_cols
    REPAIRED: tl.constexpr,   # False keeps the bug
    WATCHED: tl.constexpr,    # the program that prints; none if negative
    ASSERTED: tl.constexpr,   # whether the programs check their own offsets
):
    """out[m, n] = x[m, n_cols - 1 - n]. One program owns row m."""
    row = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols

    source = row * n_rows + (n_cols - 1 - cols)
    if REPAIRED:
        source = row * n_cols + (n_cols - 1 - cols)

    # Debugging code. All conditions but the inner `if` are constexpr, so the code of an ordinary
    # launch contains none of it.
    if WATCHED >= 0:
        tl.static_assert(BLOCK >= 2, "a block of one element has nothing to mirror")
        tl.static_print("elements of a block:", BLOCK)  # printed once, at compile time
        if row == WATCHED:  # device_print takes no condition
            tl.device_print("source", source)  # printed by every program that reaches it
    if ASSERTED:
        own = (source >= row * n_cols) & (source < (row + 1) * n_cols)
        tl.device_assert(own | (cols >= n_cols), "an element comes from another row")

    x = tl.load(x_ptr + source, mask=mask)
    tl.store(out_ptr + row * n_cols + cols, x, mask=mask)


def mirror(x: torch.Tensor, repaired: bool = False, watched: int = -1, asserted: bool = False,
           fill: float = -1.0) -> torch.Tensor:
    """Reverses every row of x. The result starts as `fill`, to show which elements are written."""
    n_rows, n_cols = x.shape
    out = torch.full_like(x, fill)
    mirror_kernel[(n_rows,)](
        x, out, n_rows, n_cols, BLOCK=triton.next_power_of_2(n_cols), REPAIRED=repaired,
        WATCHED=watched, ASSERTED=asserted, debug=asserted
    )
    return out


def labeled(n_rows: int, n_cols: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Returns a matrix whose elements encode their position: 100 * row + column."""
    rows = torch.arange(n_rows, device=DEVICE)[:, None]
    return (100 * rows + torch.arange(n_cols, device=DEVICE)).to(dtype)


def wrong_places(x: torch.Tensor, repaired: bool = False) -> list[list[int]]:
    """Returns the indices of all wrong elements in row-major order."""
    return (mirror(x, repaired) != x.flip(1)).nonzero().tolist()


def show_symptom() -> None:
    x = labeled(4, 8)
    print("1. The symptom. Row 1 of a 4 x 8 matrix; each number encodes its position:")
    for name, matrix in (("x", x), ("got", mirror(x)), ("expected", x.flip(1))):
        print(f"   {name:>8} " + " ".join(f"{int(v):4d}" for v in matrix[1]))


def compile_it() -> None:
    """Compiles the kernel for an H100; no GPU is needed."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    types = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n_rows": "i32", "n_cols": "i32"}
    signature = {name: types.get(name, "constexpr") for name in mirror_kernel.arg_names}
    constants = {"BLOCK": 8, "REPAIRED": False, "WATCHED": 3, "ASSERTED": True}
    places = {(mirror_kernel.arg_names.index(name),): value for name, value in constants.items()}
    for debug in (False, True):
        made = triton.compile(ASTSource(mirror_kernel, signature, places),
                              target=GPUTarget("cuda", 90, 32), options={"debug": debug})
        kept = "is in the code" if "__assertfail" in made.asm["ptx"] else "is removed"
        print(f"compiled with debug={debug}: the assertion {kept}")


def ask_the_compiler() -> subprocess.CompletedProcess[str]:
    """Compiles this file's kernel in a new process, without TRITON_INTERPRET."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_ALWAYS_COMPILE": "1", "TRITON_DEFAULT_FP_FUSION": "1"}
    return subprocess.run([sys.executable, __file__, "--compile"], env=environment,
                          capture_output=True, text=True, check=False)


def printed_by(program: int, n_rows: int, n_cols: int) -> str:
    """Returns what the kernel prints for one program; a GPU prints to the terminal instead."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        mirror(labeled(n_rows, n_cols), watched=program)
        if HAS_GPU:
            torch.cuda.synchronize()  # flushes the prints of the GPU
    lines = [line for line in text.getvalue().splitlines() if "elements of a block" not in line]
    return "\n".join(lines)  # without the output of static_print


def ask_six_questions(compiler: subprocess.CompletedProcess[str]) -> None:
    """Answers one question per phase, each by a run."""
    print("\n2. Which phase? The first question with the answer yes decides.")
    x = labeled(4, 8)

    def answer(phase: str, question: str, is_so: bool, evidence: str) -> None:
        print(f"   {phase:<9} {question:<44} {'yes' if is_so else 'no':<4} {evidence}")

    refused = compiler.returncode != 0
    answer("compile", "does Triton refuse the kernel?", refused,
           compiler.stderr.strip().splitlines()[-1] if refused else "it compiles for an H100")
    mirror(x)
    answer("launch", "does the call raise an exception?", False, "it returned")
    rows, columns = torch.arange(4)[:, None], torch.arange(8)
    read = rows * 4 + (8 - 1 - columns)  # the formula of the kernel, with its bug
    low, high = int(read.min()), int(read.max())
    answer("memory", "is an offset outside 0 to 31?", low < 0 or high > 31,
           f"they are {low} to {high}")
    left = int((mirror(x, fill=-1.0) == -1.0).sum())
    answer("boundary", "is an element never written?", left > 0, f"{left} still hold -1")
    wrong = [wrong_places(labeled(4, 8, dtype))
             for dtype in (torch.float32, torch.float16, torch.int32)]
    answer("dtype", "are values wrong for some dtypes only?", wrong[1:] != wrong[:-1],
           f"{len(wrong[0])}, {len(wrong[1])}, {len(wrong[2])} wrong in three dtypes")
    answer("value", "are values wrong for all dtypes?", all(wrong),
           f"{len(wrong[0])} of {x.numel()}")


def show_shapes(repaired: bool) -> None:
    """Prints one line per shape: which are right, and what do they have in common?"""
    print("   rows  columns    wrong   first wrong")
    for n_rows, n_cols in SHAPES:
        places = wrong_places(labeled(n_rows, n_cols), repaired)
        first = str(places[0]) if places else "none"
        print(f"   {n_rows:4d}  {n_cols:7d}  {len(places):3d}/{n_rows * n_cols:3d}   {first}")


def reason_backwards() -> None:
    """Traces the first element of each row back to the address that it came from."""
    print("\n4. Where did the wrong numbers come from? Column 0 of each row, for 4 x 8:")
    print("   row    got   at index  expected   at index  too low by")
    x = labeled(4, 8)
    got, expected = mirror(x)[:, 0], x.flip(1)[:, 0]
    for row in range(4):
        found, wanted = (int((x.flatten() == v[row]).nonzero()) for v in (got, expected))
        print(f"   {row:3d} {int(got[row]):6d} {found:10d} {int(expected[row]):9d} {wanted:10d} "
              f"{wanted - found:11d}")
    print("   Row r is read (8 - 4) * r elements too early: the row stride is 8, and the kernel")
    print("   uses 4, the number of rows.")


def look_inside(compiler: subprocess.CompletedProcess[str]) -> None:
    print("\n5. Which offsets does program 3 read? The kernel prints them:")
    if HAS_GPU:
        print("   ", end="", flush=True)
        printed_by(3, 4, 8)
    else:
        print("   " + printed_by(3, 4, 8).replace("\n", "\n   "))
    print("   Row 3 has the offsets 24 to 31. The line that computes `source` is wrong: it")
    print("   multiplies `row` by `n_rows`. At compile time, tl.static_print printed:")
    print("   " + compiler.stdout.splitlines()[0])


def assert_it(compiler: subprocess.CompletedProcess[str]) -> None:
    print("\n6. Would tl.device_assert have caught it?")
    for line in compiler.stdout.splitlines():
        if line.startswith("compiled"):
            print(f"   {line}")
    if HAS_GPU:
        print("   On a GPU, a failed assertion ends all CUDA work, so it is not run here.")
        return
    try:
        mirror(labeled(4, 8), asserted=True)
        said = "no error, although the condition is false"
    except Exception as error:
        said = str(error).strip().splitlines()[-1]
    print(f"   interpreted with debug=True: {said}")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernel runs {where}.\n")
    compiler = ask_the_compiler()
    show_symptom()
    ask_six_questions(compiler)
    print("\n3. For which shapes?")
    show_shapes(repaired=False)
    print("   Right: one row, or as many rows as columns. Otherwise all rows but row 0 are wrong.")
    print("   So the start of row 0 is right, and the distance between rows is wrong.")
    reason_backwards()
    look_inside(compiler)
    assert_it(compiler)
    print("\n7. Diagnosis: value, wrong-stride, in the line with `row * n_rows`. Repaired:")
    show_shapes(repaired=True)
    print("   Keep the shapes of step 3 as a test. A test of 8 x 8 alone passes with the bug.")


if __name__ == "__main__":
    if COMPILE_ONLY:
        compile_it()
    else:
        main()
