"""The data that crosses the trust boundary: recordings, host values, launch statistics."""
