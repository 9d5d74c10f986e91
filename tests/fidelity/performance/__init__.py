"""Kernels with planted performance defects beside good ones: each must be named, none invented."""
