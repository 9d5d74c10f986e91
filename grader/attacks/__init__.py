"""The attacks of `tritonlab doctor --attack`, each run as a learner's file would run."""
