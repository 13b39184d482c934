"""What is reported about a deployment: status, conditions and events, as values.

Pure: the runtime writes them, and only where they changed.
"""
