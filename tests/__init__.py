"""Tests of tritonlab; the folders mirror the packages."""
