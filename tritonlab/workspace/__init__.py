"""The learner's folder: start, reset, submissions and output files, without losing work."""
