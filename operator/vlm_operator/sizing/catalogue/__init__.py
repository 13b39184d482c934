"""The models, GPUs and quantisation methods that are known, each value with its source."""
