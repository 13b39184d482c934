"""The PodDisruptionBudgets of others are read seldom, and do without where they may not be read."""

import logging
from typing import cast

import pytest

from unit.replicas.examples import NAMESPACE
from unit.runtime.small_api import SmallApi
from vlm_operator.runtime.budgets import TRUSTED, ForeignBudgets
from vlm_operator.runtime.cache import Cache
from vlm_operator.runtime.kinds import BUDGET
from vlm_operator.runtime.kube import Kube, KubeError

THEIRS = {"metadata": {"name": "theirs", "namespace": NAMESPACE}, "spec": {}}


class World:
    def __init__(self) -> None:
        self.api = SmallApi(Cache())
        self.now = 0.0
        self.budgets = ForeignBudgets(cast("Kube", self.api), clock=lambda: self.now)

    async def names(self, namespace: str = NAMESPACE) -> list[str]:
        return [budget["metadata"]["name"] for budget in await self.budgets.of(namespace)]


async def test_they_are_read_again_after_a_while_and_each_namespace_for_itself() -> None:
    world = World()
    assert await world.names() == []
    world.api.hold(BUDGET, THEIRS)
    assert await world.names() == []
    assert await world.names("another") == ["theirs"]
    assert world.api.calls["list"] == 2
    world.now += TRUSTED
    assert await world.names() == ["theirs"]


@pytest.mark.parametrize("code", [403, 500, 0])
async def test_where_they_cannot_be_read_what_was_known_counts_on(code: int, caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.api.hold(BUDGET, THEIRS)
    assert await world.names() == ["theirs"]
    world.now += TRUSTED
    world.api.refusals["list"] = KubeError(code, "Forbidden", "no")
    with caplog.at_level(logging.WARNING):
        assert await world.names() == ["theirs"]
        assert await world.names() == ["theirs"]
    assert len(caplog.messages) == 1
    assert "other PodDisruptionBudgets cannot be read" in caplog.messages[0]


@pytest.mark.parametrize("scope", [None, NAMESPACE])
async def test_what_changes_while_nothing_is_looked_at_is_found_with_the_full_lists(scope: str | None) -> None:
    world = World()
    assert await world.budgets.changed([scope]) == set(), "no look wanted to know"
    assert await world.names() == []
    world.api.hold(BUDGET, THEIRS)
    assert await world.budgets.changed([scope]) == {NAMESPACE}
    assert await world.budgets.changed([scope]) == set()
    assert await world.names() == ["theirs"]
    world.api.lose(BUDGET, "theirs")
    assert await world.budgets.changed([scope]) == {NAMESPACE}
    assert await world.names() == []


async def test_what_cannot_be_read_with_the_full_lists_is_no_change() -> None:
    world = World()
    world.api.hold(BUDGET, THEIRS)
    assert await world.names() == ["theirs"]
    world.api.refusals["list"] = KubeError(500, "InternalError", "no")
    assert await world.budgets.changed([None]) == set()
    assert await world.names() == ["theirs"]
