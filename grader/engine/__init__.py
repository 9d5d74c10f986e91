"""EXECUTE: what a launch does, interpreted, compiled, estimated at full size, or on a GPU."""
