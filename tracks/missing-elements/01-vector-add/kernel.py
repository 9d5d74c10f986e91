"""Vector addition: add two tensors element by element, out[i] = x[i] + y[i].

Shapes:  x and y have one shape (any, also 0-d), one dtype (float32, float16, bfloat16, int32 or
         int64) and one device; the result is a new contiguous tensor that has all three.

Given:   all names, the order of the steps, the checks of the arguments, and what is done for views
         and for empty tensors.
Missing: 15 blanks, in four groups with one idea each.
           A set-up        TODO 1 and 2       B addressing   TODO 3 to 7
           C memory        TODO 8 to 11       D host         TODO 12 to 15
         A blank is `...`; an import or a decorator that is missing is a comment line.

Judged:  values  each sum is rounded correctly, for every size, dtype, layout and special value
         memory  no program touches an element that is not there; every element is written once
         cost    one launch and 3 * n * itemsize bytes, which is the least that the job needs
         errors  bad arguments are refused before anything is launched

`python kernel.py` runs four public cases, `tritonlab grade track1/vector-add` runs all of them.
"""

from __future__ import annotations

# TODO 1: the code below uses the names torch, triton and tl. Which lines make them known?
#         One is the library of the tensors, one has the decorator and the launch arithmetic,
#         one is the language inside kernels.


# TODO 2: what turns the plain Python function below into a kernel for the GPU?
def vector_add_kernel(
    x_ptr, y_ptr, out_ptr,     # [n_elements], contiguous
    n_elements,
    BLOCK_SIZE: tl.constexpr,  # elements per program, a power of two
):
    """out[i] = x[i] + y[i]. One program owns BLOCK_SIZE contiguous elements.

    Moves 3 * n_elements * itemsize bytes: two loads and one store per element.
    """
    pid = ...  # TODO 3: which number identifies this program? (64 bits, for TODO 4)
    block_start = ...  # TODO 4: how many elements belong to the programs before this one?
    lanes = ...  # TODO 5: how are the elements of one block numbered?
    offs = ...  # TODO 6: which tensor index does each element of the block own?
    mask = ...  # TODO 7: which of these indices exist?

    x = ...  # TODO 8: where are the elements of x, and which of them may be read?
    y = ...  # TODO 9: where are the elements of y, and which of them may be read?

    total = ...  # TODO 10: what is the result for one tile?

    ...  # TODO 11: where does it go, and which elements are stored?


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x + y element by element, as a new contiguous tensor of their shape, dtype and device.

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: the shapes or the devices differ; there is no broadcasting.
    """
    check_arguments(x, y)
    x, y = x.contiguous(), y.contiguous()  # the kernel knows nothing of strides

    # A power of two: tiles have no other size. A program has 4 * 32 threads unless the launch says
    # otherwise, and a thread moves at most 16 bytes with one instruction.
    block_size = ...  # TODO 12: how many elements should one program own?
    out = ...  # TODO 13: which memory takes the result, and what must it agree with x in?
    n_elements = out.numel()
    if n_elements == 0:
        return out  # nothing to add: no program, no launch

    grid = ...  # TODO 14: how many tiles cover all elements, and what kind of object is a grid?
    ...  # TODO 15: how is the kernel started on that grid, and what does it take?
    return out


def check_arguments(x: torch.Tensor, y: torch.Tensor) -> None:
    """Refuse what the contract does not cover, before anything is allocated or launched.

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: the shapes or the devices differ.
    """
    for name, tensor in (("x", x), ("y", y)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
    supported = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64)
    for name, tensor in (("x", x), ("y", y)):
        if tensor.dtype not in supported:
            names = ", ".join(str(dtype) for dtype in supported)
            raise TypeError(f"{name}: expected one of {names}, got {tensor.dtype}")
    if y.dtype != x.dtype:
        raise TypeError(f"y: expected {x.dtype}, the dtype of x, got {y.dtype}")
    if y.shape != x.shape:
        expected, got = tuple(x.shape), tuple(y.shape)
        raise ValueError(f"y: expected shape {expected}, the shape of x, got {got}")
    if y.device != x.device:
        raise ValueError(f"y: expected device {x.device}, the device of x, got {y.device}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
