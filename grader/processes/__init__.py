"""The judge's client of one submission's sandboxed processes: requests, replies, retries."""
