"""Floors by time of day, with time zones whose clocks change."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from unit.scaling.scenes import NOON, Fleet, by_work, run
from vlm_operator.api.scaling import Scaling
from vlm_operator.api.scaling import Schedule as Given
from vlm_operator.scaling.decision import Reason
from vlm_operator.scaling.from_spec import policy_of, problems
from vlm_operator.scaling.policy import PolicyError, Schedule
from vlm_operator.scaling.schedules import floor_of

BERLIN = "Europe/Berlin"
WEEKDAYS = Schedule(cron="0 7 * * 1-5", time_zone=BERLIN, min_replicas=5)
EVENING = Schedule(cron="0 19 * * *", time_zone=BERLIN, min_replicas=2)


def at(text: str, zone: str = BERLIN, *, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def floor(now: float, *schedules: Schedule) -> int | None:
    found = floor_of(schedules, now, None)
    return None if found is None else found.replicas


DAY = [
    ("2026-06-01T06:59:59", 2),  # a Monday
    ("2026-06-01T07:00:00", 5),
    ("2026-06-01T18:59:59", 5),
    ("2026-06-01T19:00:00", 2),
    ("2026-06-06T12:00:00", 2),  # a Saturday
]


@pytest.mark.parametrize(("time", "wanted"), DAY)
def test_the_schedule_that_fired_last_is_in_force(time: str, wanted: int) -> None:
    assert floor(at(time), WEEKDAYS, EVENING) == wanted


def test_a_single_schedule_is_in_force_until_it_fires_again() -> None:
    assert floor(at("2026-06-07T23:00:00"), WEEKDAYS) == 5


def test_of_several_that_fire_at_once_the_largest_floor_wins() -> None:
    noon = [Schedule(cron="0 12 * * *", time_zone=BERLIN, min_replicas=count) for count in (3, 7, 4)]
    assert floor(at("2026-06-01T12:00:00"), *noon) == 7
    utc = Schedule(cron="0 10 * * *", time_zone="UTC", min_replicas=9)
    assert floor(at("2026-06-01T12:00:00"), *noon, utc) == 9


def test_the_same_hour_is_another_moment_in_winter() -> None:
    seven = Schedule(cron="0 7 * * *", time_zone=BERLIN, min_replicas=5)
    rest = Schedule(cron="0 0 * * *", time_zone="UTC", min_replicas=1)
    assert floor(at("2026-01-15T05:59:00", "UTC"), seven, rest) == 1
    assert floor(at("2026-01-15T06:00:00", "UTC"), seven, rest) == 5
    assert floor(at("2026-07-15T05:00:00", "UTC"), seven, rest) == 5


def test_a_time_that_the_clocks_skip_comes_right_after_it() -> None:
    """On 29 March 2026 the clocks of Berlin go from 02:00 to 03:00."""
    skipped = Schedule(cron="30 2 * * *", time_zone=BERLIN, min_replicas=5)
    rest = Schedule(cron="0 1 * * *", time_zone=BERLIN, min_replicas=1)
    assert floor(at("2026-03-29T01:59:00"), skipped, rest) == 1
    assert floor(at("2026-03-29T03:00:00"), skipped, rest) == 5


def test_a_time_that_the_clocks_repeat_comes_once() -> None:
    """On 25 October 2026 they go from 03:00 back to 02:00."""
    twice = Schedule(cron="30 2 * * *", time_zone=BERLIN, min_replicas=5)
    rest = Schedule(cron="45 2 * * *", time_zone=BERLIN, min_replicas=1)
    assert floor(at("2026-10-25T02:29:00"), twice, rest) == 1
    assert floor(at("2026-10-25T02:30:00"), twice, rest) == 5
    assert floor(at("2026-10-25T02:45:00"), twice, rest) == 1
    for minute in (0, 29, 30, 44, 45, 59):
        assert floor(at(f"2026-10-25T02:{minute:02}:00", fold=1), twice, rest) == 1, minute


def test_the_floor_is_looked_up_again_only_when_a_schedule_fires() -> None:
    schedules = (WEEKDAYS, EVENING)
    known = floor_of(schedules, at("2026-06-01T08:00:00"), None)
    assert known is not None
    assert floor_of(schedules, at("2026-06-01T18:00:00"), known) is known
    assert floor_of(schedules, at("2026-06-01T19:00:00"), known) is not known
    assert known.until == at("2026-06-01T19:00:00")
    assert floor_of((EVENING,), at("2026-06-01T18:00:00"), known) is not known


BAD = [
    ({"schedule": "0 0 31 2 *", "minReplicas": 1}, "spec.scaling.schedules[0].schedule", "name a day"),
    ({"schedule": "0 0 31 4,6,9,11 *", "minReplicas": 1}, "spec.scaling.schedules[0].schedule", "name a day"),
    ({"schedule": "0 25 * * *", "minReplicas": 1}, "spec.scaling.schedules[0].schedule", "hour is wrong"),
    ({"schedule": "0 ? * * 8", "minReplicas": 1}, "spec.scaling.schedules[0].schedule", "hour is wrong"),
    (
        {"schedule": "0 7 * * *", "timeZone": "Europe/Bonn", "minReplicas": 1},
        "spec.scaling.schedules[0].timeZone",
        "IANA",
    ),
    (
        {"schedule": "0 7 * * *", "timeZone": "../../etc/passwd", "minReplicas": 1},
        "spec.scaling.schedules[0].timeZone",
        "IANA",
    ),
    ({"schedule": "0 7 * * *", "minReplicas": 9}, "spec.scaling.schedules[0].minReplicas", "maxReplicas (8)"),
]


@pytest.mark.parametrize(("schedule", "field", "words"), BAD, ids=[str(row[0]) for row in BAD])
def test_a_schedule_that_cannot_be_followed_is_refused_with_its_field_and_a_way_out(
    schedule: dict[str, object], field: str, words: str
) -> None:
    scaling = Scaling.model_construct(
        max_replicas=8, schedules=[_lenient(schedule)], targets=None, behavior=None, policy=None, mode=None
    )
    (finding,) = problems(scaling)
    assert finding.field == field
    assert words in finding.sentence()
    assert finding.advice
    with pytest.raises(PolicyError, match="schedules"):
        policy_of(scaling)


def _lenient(given: dict[str, object]) -> object:
    """As an older CRD would have let it in."""
    return Given.model_construct(
        schedule=given["schedule"], time_zone=given.get("timeZone"), min_replicas=given["minReplicas"]
    )


def test_29_february_comes_often_enough() -> None:
    scaling = Scaling.model_validate({"maxReplicas": 8, "schedules": [{"schedule": "0 0 29 2 *", "minReplicas": 1}]})
    assert problems(scaling) == ()


def test_a_schedule_raises_the_size_at_once_and_below_the_ceiling_only() -> None:
    always = Schedule(cron="* * * * *", time_zone="UTC", min_replicas=6)
    decisions, _ = run(by_work(schedules=(always,)), Fleet(size=2), seconds=5)
    assert (decisions[0].replicas, decisions[0].reason) == (6, Reason.SCHEDULE)
    assert "the schedule in force keeps 6" in decisions[0].message
    decisions, _ = run(by_work(schedules=(always,), max_replicas=4), Fleet(size=2), seconds=5, start=NOON)
    assert decisions[0].replicas == 4


@pytest.mark.parametrize("day", ["2026-03-28T23:50:00", "2026-10-24T23:50:00"])
def test_looking_up_only_when_a_schedule_fires_finds_what_looking_up_each_time_does(day: str) -> None:
    """Also through the nights in which the clocks change."""
    crons = ("30 2 * * *", "45 2 * * *", "0 3 * * *", "15 1 * * *", "*/20 * * * *", "10 */2 * * *")
    schedules = tuple(
        Schedule(cron=cron, time_zone=zone, min_replicas=count)
        for count, (cron, zone) in enumerate((cron, zone) for cron in crons for zone in (BERLIN, "UTC"))
    )
    for chosen in (schedules[:4], schedules[4:8], schedules):
        known = None
        for minute in range(6 * 60):
            now = at(day) + minute * 60
            known = floor_of(chosen, now, known)
            assert known == floor_of(chosen, now, None), minute
