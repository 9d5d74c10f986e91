"""The benchmarks of `tritonlab bench`: sizes, timers and the PyTorch baselines beside them."""
