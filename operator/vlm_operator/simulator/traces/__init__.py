"""Traces as others write them, one module per format, read into the columns that a replay takes.

Nothing here opens a file: readers get streams, and tell what cannot be used in a sentence that begins with its name.
"""
