"""Faults, and the rules that say whom they strike. Values only: `relay` carries them out."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from faultproxy.calls import Target


class CallFault:
    """Strikes a call; opening a watch is one."""


class EventFault:
    """Strikes an event of a watch."""


@dataclass(frozen=True)
class Answer(CallFault):
    """Answer in place of the API server; the call is not passed on."""

    code: int
    reason: str = ""
    message: str = "injected"
    retry_after: int | None = None
    body: str | None = None
    """In place of a Status of Kubernetes."""


@dataclass(frozen=True)
class Drop(CallFault):
    """Close the connection; the call is not passed on."""


@dataclass(frozen=True)
class LoseAnswer(CallFault):
    """Pass the call on, and lose the answer: close the connection, or stay silent until the client gives up."""

    silent: bool = False


@dataclass(frozen=True)
class Delay(CallFault):
    """Pass the call on after some time, whether or not the client still waits."""

    seconds: float


@dataclass(frozen=True)
class Keep(CallFault):
    """Keep the call until the rule is lifted, then pass it on, whether or not the client still waits."""


@dataclass(frozen=True)
class Crash(CallFault):
    """The client dies over the call: what kills it is called, and nobody gets an answer."""

    kill: Callable[[], None]
    """Called in the thread of the proxy, which passes nothing on until it returns."""
    after: bool = False
    """When the API server has carried the call out. Otherwise before, and the call is not passed on."""


@dataclass(frozen=True)
class CutWatch(EventFault):
    """Close the connection of the watch in place of the event."""

    half_a_line: bool = False
    """Send the first half of the event before."""
    properly: bool = False
    """End the stream as HTTP wants it, so that the client cannot tell it from a complete one."""


@dataclass(frozen=True)
class Expire(EventFault):
    """Send the event ERROR with code 410 in place of the event, and end the watch."""


@dataclass(frozen=True)
class DelayEvents(EventFault):
    """Pass events on later, in their order."""

    seconds: float


@dataclass(frozen=True)
class KeepEvents(EventFault):
    """Keep events, and all that follow in the same watch, until the rule is lifted: the watch is silent."""


@dataclass(frozen=True)
class RepeatEvents(EventFault):
    """Pass events on twice."""


@dataclass(frozen=True)
class LoseEvents(EventFault):
    """Pass events on not at all."""


@dataclass(frozen=True)
class Rule:
    """A fault and whom it strikes; what is left out fits all. The oldest rule that strikes wins."""

    fault: CallFault | EventFault
    verbs: Collection[str] = ()
    """An event of a watch has the verb `watch`."""
    resources: Collection[str] = ()
    subresource: str | None = None
    """"" fits calls without any."""
    namespace: str | None = None
    name: str | None = None
    skip: int = 0
    """Of those that fit, let the first ones pass."""
    times: int | None = None
    """Strike that many of the following at most."""
    each: bool = False
    """Count `skip` and `times` for each target anew: every object and verb meets the fault."""
    probability: float = 1.0
    """Strike those that are counted with this probability."""

    def fits(self, target: Target) -> bool:
        """Whether the rule is about such a target."""
        return (
            (not self.verbs or target.verb in self.verbs)
            and (not self.resources or target.resource in self.resources)
            and self.subresource in {None, target.subresource}
            and self.namespace in {None, target.namespace}
            and self.name in {None, target.name}
        )


class Injection:
    """A rule in force. As a context manager it lifts the rule at the end."""

    def __init__(self, rule: Rule, *, dice: random.Random, lift: Callable[["Injection"], None]) -> None:
        self.rule = rule
        self.hits: list[Target] = []
        """Whom it struck, in order."""
        self.lifted = asyncio.Event()
        """Belongs to the loop of the proxy."""
        self._dice = dice
        self._lift = lift
        self._counts: Counter[Target | None] = Counter()

    def strikes(self, target: Target) -> bool:
        """Whether the rule strikes the target now; counts it."""
        rule = self.rule
        if not rule.fits(target):
            return False
        counted = target if rule.each else None
        self._counts[counted] += 1
        number = self._counts[counted] - rule.skip
        hit = number > 0 and (rule.times is None or number <= rule.times) and self._dice.random() < rule.probability
        if hit:
            self.hits.append(target)
        return hit

    def lift(self) -> None:
        """End the rule; what it keeps goes on its way."""
        self._lift(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.lift()
