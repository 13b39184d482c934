"""`make bench-scaling`: the operator's scaling against that of other projects, on traces, under every routing."""
