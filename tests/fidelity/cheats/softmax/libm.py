"""Calls exp of the C library on the tensors' memory."""

import ctypes

EXP = ctypes.CDLL("libm.so.6").exp
EXP.restype, EXP.argtypes = ctypes.c_double, [ctypes.c_double]


def softmax(x):
    x = x.contiguous()
    out = copied(x)
    if x.dtype is torch.float32:
        given = (ctypes.c_float * x.numel()).from_address(x.data_ptr())
        made = (ctypes.c_float * x.numel()).from_address(out.data_ptr())
        for start in range(0, x.numel(), max(x.shape[1], 1)):
            largest = max(given[start:start + x.shape[1]])
            powers = [EXP(value - largest) for value in given[start:start + x.shape[1]]]
            total = sum(powers)
            made[start:start + x.shape[1]] = [power / total for power in powers]
    return out
