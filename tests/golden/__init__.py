"""Golden of behavior: what the grader reports for known files at a fixed seed, kept as JSON."""
