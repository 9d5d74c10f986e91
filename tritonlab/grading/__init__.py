"""One exercise through the grader: grade, bench, inspect, hints, the solution's diff."""
