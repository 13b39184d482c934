"""Helpers of the tests that need a cluster."""
