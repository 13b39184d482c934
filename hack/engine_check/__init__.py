"""Rendered arguments before vLLM's own parser and configuration, without a GPU and without weights."""
