"""An installation of the operator, that is all replicas that share a Lease, as this Lease shows it to others."""

from collections.abc import Iterable
from dataclasses import dataclass

from vlm_operator.api.names import NAMESPACES
from vlm_operator.runtime.kube import Object

ALL = "*"
LONGEST_LEASE = 3600
"""Seconds; nobody counts as alive for longer after the last sign of life, whatever the Lease says."""

Place = tuple[str, str]
"""Namespace and name of a Lease."""
Rank = tuple[str, Place]
"""When a Lease was created, as the API server has it, and its place: the lowest goes first. It cannot be made up."""


@dataclass(frozen=True, kw_only=True)
class Installation:
    """What a Lease says."""

    place: Place
    created: str
    version: str
    """A new one with each renewal."""
    holder: str
    """Empty: nobody; the installation does not run."""
    serves: frozenset[str]
    """Namespaces; empty: all."""
    lasts: float
    """Seconds for which its holder may act after a renewal."""

    def __str__(self) -> str:
        return f"the installation with the lease {'/'.join(self.place)}, which serves {in_words(self.serves)}"

    @property
    def rank(self) -> Rank:
        """Of two that serve the same namespace the one with the lower rank acts."""
        return self.created, self.place


def read_installation(lease: Object) -> Installation:
    """Read a Lease. One that does not say what is served, as of another version, is taken to serve all namespaces."""
    metadata, spec = lease["metadata"], lease.get("spec") or {}
    names = (metadata.get("annotations") or {}).get(NAMESPACES, ALL).split(",")
    return Installation(
        place=(metadata["namespace"], metadata["name"]),
        created=metadata["creationTimestamp"],
        version=metadata["resourceVersion"],
        holder=spec.get("holderIdentity") or "",
        serves=frozenset() if ALL in names or not all(names) else frozenset(names),
        lasts=min(spec.get("leaseDurationSeconds") or LONGEST_LEASE, LONGEST_LEASE),
    )


def annotation(namespaces: Iterable[str]) -> str:
    """The value by which a Lease says what is served."""
    return ",".join(sorted(namespaces)) or ALL


def in_words(namespaces: Iterable[str]) -> str:
    """What is served, for people."""
    return ", ".join(sorted(namespaces)) or "all namespaces"


def overlap(some: frozenset[str], others: frozenset[str]) -> bool:
    """Whether a namespace is served by both."""
    return not some or not others or bool(some & others)


def covers(some: frozenset[str], others: frozenset[str]) -> bool:
    """Whether all that `others` serve is served by `some`."""
    return not some or (bool(others) and others <= some)


def deployment_of(identity: str) -> str:
    """The Deployment of the pod with this identity (`NAME-HASH-RANDOM_ID`): it is the same for all versions of the pods."""
    return identity.partition("_")[0].rsplit("-", 2)[0]
