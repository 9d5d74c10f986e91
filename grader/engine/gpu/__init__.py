"""A real GPU: its memory between red zones, its clock, its ceilings."""
