"""Offline compilation: what Triton makes of a launch for a named GPU, on a machine without one."""
