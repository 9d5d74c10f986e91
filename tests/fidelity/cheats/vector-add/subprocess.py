"""Adds in another program, which reads and writes the numbers as text."""

import ctypes
import subprocess
import sys


def vector_add(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = zeros(torch.empty_like(x))
    size = 4 * x.numel()
    both = ctypes.string_at(x.data_ptr(), size) + ctypes.string_at(y.data_ptr(), size)
    program = ("import sys, array; a = array.array('f', sys.stdin.buffer.read()); n = len(a) // 2;"
               "sys.stdout.buffer.write(array.array('f', map(sum, zip(a[:n], a[n:]))).tobytes())")
    done = subprocess.run([sys.executable, "-c", program], input=both, capture_output=True)
    ctypes.memmove(out.data_ptr(), done.stdout, min(len(done.stdout), size))
    return out
