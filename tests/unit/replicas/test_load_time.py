"""A deadline that is over before a replica can be ready is warned of, by what the replicas that are there have taken."""

from typing import Any

from unit.replicas.examples import NOW, loading, replica, spec, terminating
from unit.replicas.tables import table
from vlm_operator.replicas.facts import Replica
from vlm_operator.replicas.load_time import observed_load_time, short_deadline

TIMEOUT = 1800.0


def after(seconds: float, slot: int = 0, **changes: Any) -> Replica:
    """A replica that was ready so long after it got its node."""
    return replica(slot, **({"scheduled_at": NOW - 3000, "ready_since": NOW - 3000 + seconds} | changes))


TIMES: list[tuple[str, list[Replica], float | None]] = [
    ("none", [], None),
    ("one", [after(90)], 90),
    ("the quickest of several", [after(95, 0), after(90, 1), after(700, 2)], 90),
    ("one that loads", [loading(scheduled_at=NOW - 500)], None),
    ("one that does not tell when it got its node", [after(90, scheduled_at=None)], None),
    ("one whose engine has restarted", [after(900, restarts=1)], None),
    ("one that was not ready meanwhile: the kubelet waits less long", [after(TIMEOUT + 1)], None),
    ("one for which the kubelet waited as long as it does", [after(TIMEOUT)], TIMEOUT),
    ("one that was ready before it had its node, as after the clock was set", [after(-5)], None),
    ("one that leaves", [terminating(scheduled_at=NOW - 3000, ready_since=NOW - 2900)], None),
]


@table("replicas, expected", TIMES)
def test_what_replicas_tell(replicas: list[Replica], expected: float | None) -> None:
    assert observed_load_time(replicas, startup_timeout=TIMEOUT) == expected


def warned(seconds: float, **sections: Any) -> list[str]:
    return [finding.sentence() for finding in short_deadline(spec(**sections), [after(seconds)])]


def test_both_numbers_and_a_value_are_told() -> None:
    assert warned(95, rollout={"progressDeadline": "1m"}) == [
        (
            "spec.rollout.progressDeadline: 1m is not longer than the 95 s that a replica took from its node to being ready;"
            " a rollout would be given up before its first replica is ready; set it to 4m"
        )
    ]


def test_the_default_counts_too() -> None:
    (sentence,) = warned(2000, engine={"startupTimeout": "1h"})
    assert "30m is not longer than the 2000 s" in sentence
    assert sentence.endswith("set it to 67m")


def test_the_advice_is_a_value_that_the_field_takes() -> None:
    (sentence,) = warned(86_000, engine={"startupTimeout": "24h"})
    assert sentence.endswith("set it to 1440m")
    spec(rollout={"progressDeadline": "1440m"})


def test_a_deadline_that_is_long_enough_is_not_warned_about() -> None:
    assert warned(95, rollout={"progressDeadline": "2m"}) == []
    assert warned(95) == []


def test_a_spec_that_cannot_be_read_is_not_warned_about() -> None:
    assert list(short_deadline(None, [after(95)])) == []
