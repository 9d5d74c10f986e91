"""Whether the tolerance accepts every right order of operations and no wrong kernel.

Kernels are emulated on the CPU, in the orders of summation and with the mistakes that real ones
have, on inputs that make mistakes visible. The usual rules are counted beside it.
"""
