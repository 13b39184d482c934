"""The two commands: `vlm-operator` in the cluster, `kubectl vlm` on a laptop."""
