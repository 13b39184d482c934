"""vLLM: its arguments, its pod and the check that a replica passes before it serves."""
