"""Estimates DRAM and L2 traffic of full-size launches from a sample of their programs."""
