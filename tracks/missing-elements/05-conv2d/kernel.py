"""Two-dimensional convolution as an implicit matrix product: the window matrix is never stored.

    out[n, o, oh, ow] = bias[o] + sum over c, kh, kw of
        x[n, c, oh * stride_h - pad_h + kh * dil_h, ow * stride_w - pad_w + kw * dil_w]
        * weight[o, c, kh, kw],                       with 0 outside of the image

Shapes:  x (N, C, H, W), weight (OC, C, KH, KW), bias (OC,) or None, in float32, float16 or
         bfloat16; the result is a new contiguous tensor (N, OC, OH, OW) of that dtype.
Given:   all names, the order of the steps, the argument checks.
Missing: 35 blanks, in nine steps with one idea each.
           A setup         TODO 1 and 2         F weight tile    TODO 23 to 26
           B pixels        TODO 3 to 9          G store          TODO 27 to 30
           C windows       TODO 10 to 12        H host           TODO 31 to 34
           D taps          TODO 13 to 19        I output size    TODO 35
           E image tile    TODO 20 to 22
         A blank is three dots, `...`; a comment marks each missing import or decorator.
Graded:  values  as accurate as float32 accumulation, for images and windows that are not square,
                 every stride, padding and dilation, and partial tiles
         memory  no access is out of bounds, and every element of the result is stored once;
                 images and weights may have any strides; the kernel takes these as arguments, so
                 that nothing has to be copied
         cost    tiles of at least 16 x 16 results, so that pixels and weights are reused;
                 float16 products run on tensor cores
         errors  invalid arguments raise an exception before anything is launched

`python kernel.py` runs four public cases, `tritonlab grade track1/conv2d` runs all of them.
"""

from __future__ import annotations

# TODO 1: which imports define the names torch, triton and tl that the code below uses?


# TODO 2: what turns the plain Python function below into a kernel for the GPU?
def conv2d_kernel(
    x_ptr, w_ptr, bias_ptr, out_ptr,  # [N, C, H, W], [OC, C, KH, KW], [OC], [N, OC, OH, OW]
    N, C, H, W, OC, OH, OW, KH, KW,
    stride_h, stride_w, pad_h, pad_w, dil_h, dil_w,
    sx_n, sx_c, sx_h, sx_w,           # elements from one index of x to the next, by dimension
    sw_o, sw_c, sw_h, sw_w,
    so_n, so_c, so_h, so_w,
    HAS_BIAS: tl.constexpr,
    BLOCK_M: tl.constexpr,            # output pixels per program
    BLOCK_N: tl.constexpr,            # output channels per program
    BLOCK_K: tl.constexpr,            # taps per step, at least 16 for tl.dot
):
    """out[m, o] = bias[o] + sum_k A[m, k] * B[k, o]. One program owns BLOCK_M x BLOCK_N results.

    Loads at most C * KH * KW * (BLOCK_M + BLOCK_N) elements, and BLOCK_N of the bias.
    """
    # Row m of the product is an output pixel, column o an output channel. A program owns a tile.
    pid_m = ...  # TODO 3: which tile of pixels does this program own? (as int64, for TODO 21)
    pid_n = ...  # TODO 4: which tile of output channels? (in 64 bits)
    offs_m = ...  # TODO 5: which pixels are in that tile, numbered across all images?
    offs_n = ...  # TODO 6: which output channels?

    img = ...  # TODO 7: in which image is each pixel?
    oh = ...  # TODO 8: in which row of the output?
    ow = ...  # TODO 9: in which column?
    top = ...  # TODO 10: in which row of the input does its window begin? (may be negative)
    left = ...  # TODO 11: in which column?
    acc = ...  # TODO 12: with which value, shape and dtype does the accumulator start?

    # Column k of the left operand is a tap: an input channel and a position in the window.
    for k_start in ...:  # TODO 13: at which taps do the steps begin, if each takes BLOCK_K of them?
        offs_k = ...  # TODO 14: which taps belong to this step?
        ic = ...  # TODO 15: which input channel does each tap read? (convert to 64 bits)
        kh = ...  # TODO 16: which row of the window? (convert to 64 bits)
        kw = ...  # TODO 17: which column? (convert to 64 bits)

        ih = ...  # TODO 18: which row of the input does each pixel read at each tap?
        iw = ...  # TODO 19: which column?
        x_mask = ...  # TODO 20: for which pixels and taps does an element exist? (6 conditions)
        x_ptrs = ...  # TODO 21: at which address? (a product with a stride may exceed 2**31 - 1)
        x = ...  # TODO 22: what is loaded, and what is the value of the padding?

        w_ptrs = ...  # TODO 23: at which address is the weight of each tap and output channel?
        w_mask = ...  # TODO 24: for which taps and output channels does it exist?
        w = ...  # TODO 25: what is loaded, and what is the value of the padding?

        # tl.dot rounds float32 to TF32 unless `input_precision="ieee"` is given.
        acc = ...  # TODO 26: what are the sums after this step?

    if HAS_BIAS:
        acc += ...  # TODO 27: which bias does each channel have, and along which axis?

    out_ptrs = ...  # TODO 28: at which address is each sum stored?
    out_mask = ...  # TODO 29: which of these results exist?
    ...  # TODO 30: what is stored, and in which dtype?


Pair = int | tuple[int, int]


def conv2d(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
    stride: Pair = 1, padding: Pair = 0, dilation: Pair = 1,
) -> torch.Tensor:
    """Returns torch.nn.functional.conv2d with groups=1, as a new contiguous tensor.

    Args:
        x: images, (N, C, H, W).
        weight: one filter for each output channel, (OC, C, KH, KW).
        bias: one number for each output channel, (OC,).
        stride: distance between windows in pixels; one number, or (height, width).
        padding: rows and columns of zeros around each image.
        dilation: distance between the taps of a window in pixels.

    Raises:
        TypeError: an argument has the wrong type, or the dtypes are unsupported or differ.
        ValueError: ranks, sizes or devices do not match, or a window is larger than the image.
    """
    check_tensors(x, weight, bias)
    stride_h, stride_w = pair("stride", stride, least=1)
    pad_h, pad_w = pair("padding", padding, least=0)
    dil_h, dil_w = pair("dilation", dilation, least=1)
    n, c, h, w = x.shape
    oc, _, kh, kw = weight.shape
    oh = window_positions(h, kh, stride_h, pad_h, dil_h)
    ow = window_positions(w, kw, stride_w, pad_w, dil_w)
    if oh < 1 or ow < 1:
        raise ValueError(f"weight: expected a window that fits into the padded image, got one of "
                         f"{(kh, kw)} for {(h, w)}, which leaves OH = {oh}, OW = {ow}")
    bias = None if bias is None else bias.contiguous()  # the kernel takes no stride of the bias

    out = ...  # TODO 31: what tensor holds the result? It must be contiguous even if x is not.
    if out.numel() == 0:
        return out  # no images, nothing to launch

    # Block sizes are powers of two, and `tl.dot` needs at least 16 taps. The more results a program
    # owns, the more often it uses each element that it loads, but sums and addresses must fit into
    # the registers of 4 warps: 128 pixels, 64 channels and 32 taps do not. Begin with 32 x 32
    # results and 16 taps, then try larger tiles; compiling very large ones takes minutes.
    block_m, block_n, block_k = ...  # TODO 32: how many pixels, output channels and taps per tile?
    grid = ...  # TODO 33: how many tiles are there along each axis?
    # The kernel takes, in this order, 4 tensors, 9 sizes, 6 numbers for stride, padding and
    # dilation, and 12 tensor strides; HAS_BIAS and the block sizes are passed by name.
    ...  # TODO 34: how is the kernel launched on that grid?
    return out


def window_positions(size: int, taps: int, stride: int, pad: int, dil: int) -> int:
    """Returns the number of positions of a window in ``size`` pixels with ``pad`` at both ends.

    The result is below 1 if the window does not fit.
    """
    return ...  # TODO 35: how many are there? (a window spans more than `taps` if dil > 1)


def pair(name: str, value: Pair, least: int) -> tuple[int, int]:
    """Returns the values for height and width, each at least ``least``.

    Raises:
        TypeError: value is neither a whole number nor a tuple or list of them.
        ValueError: there are not two values, or one is below ``least``.
    """
    both = value if isinstance(value, (tuple, list)) else (value, value)
    if any(not isinstance(number, int) or isinstance(number, bool) for number in both):
        raise TypeError(f"{name}: expected a whole number or two of them, got {value!r}")
    if len(both) != 2:
        raise ValueError(f"{name}: expected one number or two, got {len(both)} in {value!r}")
    if min(both) < least:
        raise ValueError(f"{name}: expected at least {least}, got {value!r}")
    return both[0], both[1]


def check_tensors(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
    """Rejects unsupported tensors, before anything is allocated or launched.

    Raises:
        TypeError: one is not a tensor, or the dtypes are unsupported or differ.
        ValueError: ranks, channels, the size of the bias or the devices do not match.
    """
    tensors = {"x": x, "weight": weight} if bias is None else {
        "x": x, "weight": weight, "bias": bias}
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
    supported = (torch.float32, torch.float16, torch.bfloat16)
    for name, tensor in tensors.items():
        if tensor.dtype not in supported:
            names = ", ".join(str(dtype) for dtype in supported)
            raise TypeError(f"{name}: expected one of {names}, got {tensor.dtype}")
        if tensor.dtype != x.dtype:
            raise TypeError(f"{name}: expected {x.dtype}, the dtype of x, got {tensor.dtype}")
        if tensor.device != x.device:
            raise ValueError(f"{name}: expected device {x.device}, the device of x, got "
                             f"{tensor.device}")
    for name, tensor, rank in (("x", x, 4), ("weight", weight, 4)):
        if tensor.dim() != rank:
            raise ValueError(f"{name}: expected {rank} dimensions, got {tensor.dim()} in shape "
                             f"{tuple(tensor.shape)}")
    if weight.shape[1] != x.shape[1]:
        raise ValueError(f"weight: expected {x.shape[1]} input channels, as x has, got "
                         f"{weight.shape[1]} in shape {tuple(weight.shape)}")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias: expected shape {tuple(weight.shape[:1])}, one number for each "
                         f"output channel, got {tuple(bias.shape)}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
