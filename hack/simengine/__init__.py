"""Simulated engines at the addresses of pods, and the forward proxy that leads to them.

    with SimEngines() as engines:
        operator = RunningOperator(cluster, "operator", (f"--pod-proxy={engines.proxy_url}",)).start()
        engines["198.18.0.5"].in_flight = 2

What an engine does is in `engine`, the thread that serves them all in `server`; the README has a table of both.
"""

from simengine.engine import SimEngine
from simengine.server import SimEngines

__all__ = ["SimEngine", "SimEngines"]
