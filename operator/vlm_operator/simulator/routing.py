"""Who gets a request."""

from enum import StrEnum


class Routing(StrEnum):
    """How requests are spread over the replicas that serve."""

    RANDOM = "random"
    """As a plain Service does."""
    LEAST_OUTSTANDING = "least-outstanding"
    """The one with the fewest requests in flight."""
    FEWEST_UNSTARTED = "fewest-unstarted"
    """The one with the fewest requests that have no first token yet; of those, the one with the fewest in flight."""
