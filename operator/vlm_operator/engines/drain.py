"""How a replica of an engine comes to an end without cutting what it still works on."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Draining:
    """The three steps: it leaves the Service, it finishes its work, its processes end."""

    leave_seconds: int = 10
    """Between the word that it is to go and the engine's hearing of it: until then clients may still send requests."""
    teardown_seconds: int = 20
    """From its last answer until its processes have ended."""
    timeout_flag: str | None
    """Argument of the engine with the seconds in which it finishes its work when told to stop. None: it cuts its streams."""
    load_path: str
    """Where the engine tells its work in flight, on its port."""
    in_flight: Callable[[str], int | None]
    """Requests in flight according to an answer from there; None when it does not say, which is to be taken for busy."""

    def grace_seconds(self, timeout_seconds: int) -> int:
        """The grace period of a pod that is given so long to finish its work."""
        return self.leave_seconds + timeout_seconds + self.teardown_seconds
