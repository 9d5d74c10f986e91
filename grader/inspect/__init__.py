"""The report of `tritonlab inspect`: compiled code, traffic by line, roofline, defects."""
