"""How many images the front end of a replica can prepare side by side, from how its engine is started.

It is the figure that is hardest to see from outside while there is enough of it: taken too low it costs up to 2.8 times
the replicas, taken too high it makes one to three requests of a hundred late. So it is derived here, or declared, and
replaced by what is measured once all workers were busy (`capacity.py`).
"""

from vlm_operator.scaling.policy import Source, Workers


def derived_workers(
    *, processes: int | None = None, workers_per_process: int | None = None, cores: float | None = None
) -> Workers:
    """The workers of an engine that is started with so many front-end processes and workers in each of them.

    A worker needs a core while it works, so the CPU limit of the container bounds them. Without any of the figures one
    worker is assumed, which is what engines start with.
    """
    if processes is None and workers_per_process is None and cores is None:
        return Workers()
    count = float(max(1, processes or 1) * max(1, workers_per_process or 1))
    if cores is not None:
        count = max(1.0, min(count, cores))
    return Workers(count=count, source=Source.DERIVED)
