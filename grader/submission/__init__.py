"""Reads a submission without running it: source, placeholders, TODOs, dataflow."""
