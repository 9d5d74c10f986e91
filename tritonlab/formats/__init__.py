"""Formats of one grade for other tools: pure functions of the report's plain data."""
