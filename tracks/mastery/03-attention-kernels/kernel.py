"""FlashAttention forward: double every element of a tensor, out[i] = 2 * x[i].

WRITE ME: the goal in one sentence, with the formula.

Shapes:  x has any shape, in float32, float16 or bfloat16; the result is a new contiguous tensor of
         that shape, dtype and device.
Given:   the signature.
Asked:   everything else: kernel, launch, and the refusal of what the contract excludes.
Judged:  values  each result is rounded correctly, for every size, dtype and layout
         memory  no program touches an element that is not there; every element is written once
         cost    one launch and 2 * n * itemsize bytes, which is the least that the job needs
         errors  bad arguments are refused before anything is launched

`python kernel.py` runs four public cases, `tritonlab grade track4/attention-kernels` runs all of them.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


def attention(x: torch.Tensor) -> torch.Tensor:
    """2 * x element by element, as a new contiguous tensor of its shape, dtype and device.

    Raises:
        TypeError: x is no tensor, or its dtype is not supported.
    """
    ...


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
