"""Two-dimensional convolution as one matrix product, whose left factor is never stored.

    out[n, o, y, x] = bias[o] + sum over c, i, j of
        image[n, c, y * stride_h - pad_h + i * dil_h, x * stride_w - pad_w + j * dil_w]
        * weight[o, c, i, j],                       with 0 for what lies outside the image

Shapes:  image (N, C, H, W), weight (OC, C, KH, KW), bias (OC,) or None, in float32, float16 or
         bfloat16; the result is a new contiguous tensor (N, OC, OH, OW) of that dtype.
Given:   all names, the order of the steps, the checks of the arguments.
Missing: 35 blanks, in nine groups with one idea each.
           A set-up        TODO 1 and 2         F weight tile    TODO 23 to 26
           B pixels        TODO 3 to 9          G store          TODO 27 to 30
           C windows       TODO 10 to 12        H host           TODO 31 to 34
           D taps          TODO 13 to 19        I output size    TODO 35
           E image tile    TODO 20 to 22
         A blank is `...`; an import or a decorator that is missing is a comment line.
Judged:  values  as near to the exact ones as float32 sums allow: images and windows that are not
                 square, every stride, padding and dilation, tiles that are not full
         memory  no program touches an element that is not there; every element is written once;
                 images, weights and biases may have any strides; host code may copy them for
                 that, and the strides of the kernel make it unnecessary
         cost    tiles of at least 16 x 16 results, so that pixels and weights are used again;
                 float16 is multiplied by tensor cores
         errors  bad arguments are refused before anything is launched

`python kernel.py` runs four public cases, `tritonlab grade track1/conv2d` runs all of them.
"""

from __future__ import annotations

# TODO 1: the code below uses the names torch, triton and tl. Which lines make them known?


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

    Loads C * KH * KW * (BLOCK_M + BLOCK_N) elements at most: nothing outside image and weight.
    """
    # Row m of the product is an output pixel, column o an output channel. A program owns a tile.
    pid_m = ...  # TODO 3: which tile of pixels is this program's? (in 64 bits: see TODO 21)
    pid_n = ...  # TODO 4: which tile of output channels? (in 64 bits, too)
    offs_m = ...  # TODO 5: which pixels are in that tile, if all images are numbered through?
    offs_n = ...  # TODO 6: which channels?

    img = ...  # TODO 7: in which image does each pixel lie?
    oh = ...  # TODO 8: in which row of the output?
    ow = ...  # TODO 9: in which column?
    top = ...  # TODO 10: in which row of the input does its window begin? (it may be negative)
    left = ...  # TODO 11: in which column?
    acc = ...  # TODO 12: in which shape and type are the sums kept, and with what do they begin?

    # Column k of the left factor is a tap: an input channel and a place in the window.
    for k_start in ...:  # TODO 13: at which taps does a step begin, if each takes BLOCK_K of them?
        offs_k = ...  # TODO 14: which numbers have the taps of this step?
        ic = ...  # TODO 15: which input channel does each tap read? (then to 64 bits)
        kh = ...  # TODO 16: which row of the window? (then to 64 bits)
        kw = ...  # TODO 17: which column? (then to 64 bits)

        ih = ...  # TODO 18: which row of the input does each pixel meet at each tap?
        iw = ...  # TODO 19: which column?
        x_mask = ...  # TODO 20: for which pixels and taps is there an element? (6 conditions)
        x_ptrs = ...  # TODO 21: where in memory does it lie? (products with strides may pass 2**31)
        x = ...  # TODO 22: what is read there, and what stands for all the rest?

        w_ptrs = ...  # TODO 23: where does the weight of each tap and output channel lie?
        w_mask = ...  # TODO 24: for which taps and channels is there one?
        w = ...  # TODO 25: what is read there, and what stands for all the rest?

        # float32 is rounded to TF32 in a product unless `input_precision="ieee"` forbids it.
        acc = ...  # TODO 26: what does this step add to the sums?

    if HAS_BIAS:
        acc += ...  # TODO 27: which number belongs to each channel, along which axis?

    out_ptrs = ...  # TODO 28: where does each sum go?
    out_mask = ...  # TODO 29: which of them have an element there?
    ...  # TODO 30: how are they stored, and in which type?


Pair = int | tuple[int, int]


def conv2d(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
    stride: Pair = 1, padding: Pair = 0, dilation: Pair = 1,
) -> torch.Tensor:
    """The convolution of torch.nn.functional.conv2d with one group, as a new contiguous tensor.

    Args:
        x: images, (N, C, H, W).
        weight: one filter for each output channel, (OC, C, KH, KW).
        bias: one number for each output channel, (OC,).
        stride: distance between windows in pixels; one number, or one for height and for width.
        padding: rows and columns of zeros around each image.
        dilation: distance between the taps of a window in pixels.

    Raises:
        TypeError: an argument has the wrong type, or the dtypes are unsupported or differ.
        ValueError: ranks, sizes or devices do not fit, or a window is larger than the image.
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
    bias = None if bias is None else bias.contiguous()  # the kernel takes no stride for it

    out = ...  # TODO 31: which memory takes the result, whatever the strides of x?
    if out.numel() == 0:
        return out  # no image: no program, no launch

    # Blocks are powers of two, `tl.dot` needs at least 16 taps. The more results a program owns,
    # the more often it uses what it loads, but its sums and addresses have to fit the registers of
    # 4 warps: 128 pixels, 64 channels and 32 taps do not. Begin small: to compile far larger tiles
    # takes minutes.
    block_m, block_n, block_k = ...  # TODO 32: how many pixels, channels and taps make a tile?
    grid = ...  # TODO 33: how many tiles are there along each axis?
    # In the order of the kernel's parameters: 4 tensors, 9 sizes, 6 steps, 12 strides, then by
    # name whether there is a bias, and the three blocks.
    ...  # TODO 34: how is the kernel started on that grid?
    return out


def window_positions(size: int, taps: int, stride: int, pad: int, dil: int) -> int:
    """At how many places a window lies within ``size`` pixels and ``pad`` more at both ends.

    Below 1 where the window is larger than that.
    """
    return ...  # TODO 35: how many are there? (the window spans more than `taps` where dil > 1)


def pair(name: str, value: Pair, least: int) -> tuple[int, int]:
    """One number for the height and one for the width, each at least ``least``.

    Raises:
        TypeError: value is neither a whole number nor a tuple or list of them.
        ValueError: there are not two of them, or one is below ``least``.
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
    """Refuse tensors that the contract does not cover, before anything is allocated or launched.

    Raises:
        TypeError: one is not a tensor, or the dtypes are unsupported or differ.
        ValueError: ranks, channels, the size of the bias or the devices do not fit.
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
