"""Vector addition: add two tensors element by element, out[i] = x[i] + y[i].

Shapes:  x and y have the same shape (any, including 0-d), the same dtype (float32, float16,
         bfloat16, int32 or int64) and the same device; the result is a new contiguous tensor of
         that shape, dtype and device.

Given:   all names, the order of the steps, the argument checks, the code for views and for empty
         tensors.
Missing: 15 blanks, in four steps with one idea each.
           A setup         TODO 1 and 2       B addressing   TODO 3 to 7
           C memory        TODO 8 to 11       D host         TODO 12 to 15
         A blank is three dots, `...`; a comment marks each missing import or decorator.

Graded:  values  each sum is correctly rounded, for every size, dtype, layout and special value
         memory  no access is out of bounds, and every element of the result is stored once
         cost    one launch and 3 * n * itemsize bytes, the minimum for this operation
         errors  invalid arguments raise an exception before anything is launched

`python kernel.py` runs four public cases, `tritonlab grade track1/vector-add` runs all of them.
"""

from __future__ import annotations

# TODO 1: which imports define the names torch, triton and tl that the code below uses?
#         torch has the tensors, triton the decorator and helpers such as cdiv, and tl is the
#         usual name of triton.language.


# TODO 2: what turns the plain Python function below into a kernel for the GPU?
def vector_add_kernel(
    x_ptr, y_ptr, out_ptr,     # [n_elements], contiguous
    n_elements,
    BLOCK_SIZE: tl.constexpr,  # elements per program, a power of two
):
    """out[i] = x[i] + y[i]. One program owns BLOCK_SIZE contiguous elements.

    Moves 3 * n_elements * itemsize bytes: two loads and one store per element.
    """
    pid = ...  # TODO 3: which number identifies this program? (as int64: TODO 4 must not overflow)
    block_start = ...  # TODO 4: at which element does the tile of this program begin?
    local_offs = ...  # TODO 5: which positions does a tile have, as a block of numbers?
    offs = ...  # TODO 6: at which offset in the tensors is each element of the tile?
    mask = ...  # TODO 7: which of these offsets exist?

    x = ...  # TODO 8: at which addresses is this tile of x, and which elements are loaded?
    y = ...  # TODO 9: at which addresses is this tile of y?

    total = ...  # TODO 10: what is the result of this tile?

    ...  # TODO 11: at which addresses is it stored, and which elements of it?


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Returns x + y, element by element, as a new contiguous tensor.

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: the shapes or the devices differ; there is no broadcasting.
    """
    check_arguments(x, y)
    x, y = x.contiguous(), y.contiguous()  # the kernel takes no strides

    # The size of a block must be a power of two. A program has 4 warps of 32 threads unless the
    # launch sets num_warps, and one instruction moves at most 16 bytes per thread.
    block_size = ...  # TODO 12: how many elements should one program own?
    out = ...  # TODO 13: what tensor holds the result, and which properties must it share with x?
    n_elements = out.numel()
    if n_elements == 0:
        return out  # nothing to add, nothing to launch

    grid = ...  # TODO 14: how many tiles cover all elements, and what type is a grid?
    ...  # TODO 15: how is the kernel launched on that grid, and with which arguments?
    return out


def check_arguments(x: torch.Tensor, y: torch.Tensor) -> None:
    """Rejects unsupported arguments, before anything is allocated or launched.

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
