"""Tests of the formats of one grade."""
