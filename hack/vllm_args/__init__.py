"""Facts about the arguments of vLLM, generated from its releases."""
