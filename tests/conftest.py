"""How Hypothesis works in all tests: nothing depends on how fast the machine is."""

from hypothesis import HealthCheck, settings

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50)
settings.load_profile("any-machine")
