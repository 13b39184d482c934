"""Inference engines: how a revision of a VLMDeployment becomes a pod.

Pure. `engine(type)` returns the one to ask; nothing outside this package branches on the kind of engine.
"""
