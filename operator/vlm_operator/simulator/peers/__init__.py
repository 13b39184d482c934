"""Scaling policies of other projects, written anew from what they publish: the opponents in the simulator.

Each module names its sources; `registry.py` makes a peer from its name. What they see is kind to them: gauges are exact
and never lost, counts in front of the replicas are complete, and no request is needed to read them. What their projects
do to survive an outage of their metrics is therefore left out. So is scaling to and from nothing: the least is one
replica here. Bounds on the size are the caller's.
"""
