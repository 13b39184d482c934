"""Measurements: ratios within one run, printed as tables and written as JSON. Nothing here is ever asserted in a test."""
