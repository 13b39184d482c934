"""The errors a user of this package can meet. Each message is a sentence that can be shown without a traceback."""

from pathlib import Path


class ControlPlaneError(Exception):
    """Base of all errors of this package."""


class PrerequisiteError(ControlPlaneError):
    """Something outside the project is needed; the message says what to do about it."""


class StartError(ControlPlaneError):
    """A program of the control plane did not come up. Its logs were kept."""

    def __init__(self, message: str, *, logs: tuple[Path, ...] = ()) -> None:
        self.logs = logs
        named = "".join(f"\n  {path}" for path in logs)
        super().__init__(f"{message} Logs kept:{named}" if logs else message)


class WaitTimeoutError(ControlPlaneError):
    """Something awaited did not happen in time; the message says what was seen last."""


class ApiError(ControlPlaneError):
    """The API server answered with an error status."""

    def __init__(self, *, status: int, reason: str, message: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(f"{status} {reason}: {message}")
