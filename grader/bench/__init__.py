"""The benchmarks of `tritonlab bench`: sizes, clocks and the PyTorch baselines beside them."""
