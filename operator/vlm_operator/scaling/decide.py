"""The decision on the size of a deployment."""

from vlm_operator.scaling.decision import Decision
from vlm_operator.scaling.policy import Policy
from vlm_operator.scaling.signals import Signals
from vlm_operator.scaling.state import State


def decide(policy: Policy, state: State, signals: Signals, now: float) -> tuple[Decision, State]:
    """The size for what is seen at `now` (seconds since the epoch), and the state for the next time.

    Pure: the same arguments give the same answer, and none of them is changed. To be called at every tick, and with the
    replicas in any order. After a restart the windows are rebuilt by calling it with what was seen in the last hour, one
    call for each scrape, and dropping the decisions.

    The decision is to be carried out as it is: `replicas` of them in service, `standby` of them loaded beside. In
    Advisory mode (`policy.advisory`) it is only shown. A size above the ceiling is cut at once whatever the signals say;
    the replicas that go finish their requests first.
    """
    raise NotImplementedError
