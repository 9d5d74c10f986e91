"""Runs kernels on NumPy, one program after another, with every memory access watched."""
