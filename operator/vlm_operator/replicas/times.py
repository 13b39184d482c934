"""Kubernetes timestamps (RFC 3339) and seconds since the epoch."""

from datetime import UTC, datetime


def epoch(timestamp: str | None) -> float | None:
    """Seconds since the epoch."""
    return datetime.fromisoformat(timestamp).timestamp() if timestamp else None


def timestamp(seconds: float) -> str:
    """The timestamp with whole seconds, as Kubernetes writes it."""
    return datetime.fromtimestamp(int(seconds), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
