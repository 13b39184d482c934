"""The formats that are known; a new one is a module and a line here."""

from collections.abc import Callable

from vlm_operator.simulator.traces import azure, mooncake, plain, servegen
from vlm_operator.simulator.traces.base import Given, Loaded

FORMATS: dict[str, Callable[[Given, int], Loaded]] = {
    "csv": plain.read,
    "azure": azure.read,
    "mooncake": mooncake.read,
    "servegen": servegen.read,
}
"""Readers by name. The number is the seed of what is drawn, where a format says only how likely requests are."""
