"""Seeds of tests that are told by chance: the same for the same `--fault-seed`."""

from random import Random

import pytest


def seeds(config: pytest.Config, count: int) -> list[int]:
    """So many seeds, in order."""
    return sorted(Random(config.option.fault_seed).sample(range(1_000_000), count))
