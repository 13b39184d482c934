"""A trace of requests replayed against replicas that a scaling policy sizes: the operator's own, or that of another project.

`replay` in `replay.py` runs one; `physics.py` says how a replica spends time. Needs the extra `simulate` (numba).
"""
