"""Reads a certificate and grades its claims again."""
