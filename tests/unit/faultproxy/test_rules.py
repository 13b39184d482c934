"""Whom a rule strikes, and what a request is about."""

import random

import pytest

from faultproxy import WRITES, Answer, Call, Drop, Injection, Rule, Target
from faultproxy.calls import busiest_minute, target_of

NOTHING: dict[str, str] = {}
WATCH = {"watch": "true"}
VLM = "/apis/vlm.dev/v1alpha1/namespaces/n/vlmdeployments"

REQUESTS = [
    ("GET", "/version", NOTHING, Target(verb="list")),
    ("GET", "/apis/vlm.dev/v1alpha1", NOTHING, Target(verb="list", group="vlm.dev")),
    ("GET", "/api/v1/pods", NOTHING, Target(verb="list", resource="pods")),
    ("GET", "/api/v1/pods", WATCH, Target(verb="watch", resource="pods")),
    ("GET", "/api/v1/namespaces/n/pods/p", NOTHING, Target(verb="get", resource="pods", namespace="n", name="p")),
    ("GET", "/api/v1/namespaces", NOTHING, Target(verb="list", resource="namespaces")),
    ("GET", "/api/v1/namespaces/n", NOTHING, Target(verb="get", resource="namespaces", namespace="n", name="n")),
    (
        "PUT",
        "/api/v1/namespaces/n/finalize",
        NOTHING,
        Target(verb="update", resource="namespaces", subresource="finalize", namespace="n", name="n"),
    ),
    ("GET", VLM, WATCH, Target(verb="watch", group="vlm.dev", resource="vlmdeployments", namespace="n")),
    ("POST", "/api/v1/namespaces/n/pods", NOTHING, Target(verb="create", resource="pods", namespace="n", name="new")),
    (
        "PATCH",
        f"{VLM}/q/status",
        NOTHING,
        Target(verb="patch", group="vlm.dev", resource="vlmdeployments", subresource="status", namespace="n", name="q"),
    ),
    ("DELETE", "/api/v1/namespaces/n/pods/p", NOTHING, Target(verb="delete", resource="pods", namespace="n", name="p")),
    ("DELETE", "/api/v1/namespaces/n/pods", NOTHING, Target(verb="deletecollection", resource="pods", namespace="n")),
]


@pytest.mark.parametrize(("method", "path", "query", "target"), REQUESTS, ids=[f"{m} {p}" for m, p, _, _ in REQUESTS])
def test_what_a_request_is_about(method: str, path: str, query: dict[str, str], target: Target) -> None:
    assert target_of(method, path, query, b'{"metadata": {"name": "new"}}') == target


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b"{unclosed", b'{"metadata": null}'])
def test_a_body_without_a_name_is_no_trouble(body: bytes) -> None:
    assert target_of("POST", "/api/v1/namespaces/n/pods", NOTHING, body).name == ""


def test_a_name_is_found_in_yaml_too() -> None:
    assert target_of("POST", "/api/v1/namespaces/n/pods", NOTHING, b"metadata: {name: one}").name == "one"


POD = Target(verb="create", resource="pods", namespace="n", name="p-0")
OTHER_POD = Target(verb="create", resource="pods", namespace="n", name="p-1")
STATUS = Target(verb="patch", resource="vlmdeployments", subresource="status", namespace="n", name="q")


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        (Rule(Drop()), {POD, STATUS}),
        (Rule(Drop(), verbs=WRITES), {POD, STATUS}),
        (Rule(Drop(), verbs={"create"}), {POD}),
        (Rule(Drop(), resources={"vlmdeployments"}), {STATUS}),
        (Rule(Drop(), subresource=""), {POD}),
        (Rule(Drop(), subresource="status"), {STATUS}),
        (Rule(Drop(), namespace="other"), set()),
        (Rule(Drop(), name="p-0"), {POD}),
    ],
)
def test_whom_a_rule_is_about(rule: Rule, fits: set[Target]) -> None:
    assert {target for target in (POD, STATUS) if rule.fits(target)} == fits


def _struck(rule: Rule, *targets: Target, seed: int = 1) -> list[bool]:
    injection = Injection(rule, dice=random.Random(seed), lift=lambda _: None)
    return [injection.strikes(target) for target in targets]


def test_a_rule_counts_those_that_fit() -> None:
    rule = Rule(Drop(), verbs={"create"}, skip=1, times=2)
    assert _struck(rule, POD, STATUS, OTHER_POD, POD, POD) == [False, False, True, True, False]


def test_a_rule_may_count_for_each_target() -> None:
    rule = Rule(Drop(), times=1, each=True)
    assert _struck(rule, POD, OTHER_POD, POD, STATUS, OTHER_POD) == [True, True, False, True, False]


def test_chance_is_the_same_for_the_same_seed() -> None:
    rule = Rule(Drop(), probability=0.5)
    first, again, other = (_struck(rule, *[POD] * 50, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert {True, False} == set(first)


def test_whom_it_struck_is_noted() -> None:
    injection = Injection(Rule(Answer(500), times=1), dice=random.Random(1), lift=lambda _: None)
    for target in (POD, OTHER_POD):
        injection.strikes(target)
    assert injection.hits == [POD]


@pytest.mark.parametrize(
    ("times", "most"), [([], 0), ([5], 1), ([0, 59.9], 2), ([0, 60], 1), ([0, 30, 61, 62, 119, 130], 3)]
)
def test_the_busiest_minute_may_begin_at_any_time(times: list[float], most: int) -> None:
    assert busiest_minute(Call(target=POD, path="", at=at) for at in times) == most
