"""Predicts the time of a launch on a target from its machine code."""
