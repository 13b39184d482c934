"""Whether a model fits, by arithmetic: catalogue, tokens, memory, parallelism. Pure."""
