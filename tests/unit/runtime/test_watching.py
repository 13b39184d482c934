"""How kopf is set up: what it does by itself, and what it must not do."""

from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import Any

import pytest
from kopf._cogs.clients import fetching  # no public name
from kopf._cogs.structs.references import Resource

from vlm_operator.runtime import watching
from vlm_operator.runtime.kinds import CHILDREN, POD, Kind
from vlm_operator.runtime.watching import settings_for, take_lists


def test_nothing_kills_a_process_whose_watches_are_started_anew() -> None:
    """kopf's last resort at its end would be a SIGKILL, some seconds later, to the process that has long started it again."""
    assert settings_for().process.ultimate_exiting_timeout is None


def test_watches_run_again_soon_after_the_api_server_is_back() -> None:
    pauses = settings_for().networking.error_backoffs
    assert isinstance(pauses, Iterable)
    tried = list(islice(pauses, 1000))
    assert len(tried) == 1000
    assert max(tried) <= 5


def test_the_server_selects_what_is_watched() -> None:
    selectors = settings_for().watching.label_selectors
    assert {selectors[kind.group, kind.version, kind.plural] for kind in CHILDREN} == {"vlm.dev/deployment"}


async def test_what_kopf_lists_is_taken_in_by_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [([{"name": "a"}, {"name": "b"}], "7"), ([{"name": "c"}], "7")]

    async def fetch(**_: Any) -> AsyncIterator[Any]:
        for page in pages:
            yield page

    monkeypatch.setattr(fetching, "fetch_objs", fetch)
    monkeypatch.setattr(watching, "_fetch_objs", fetch)
    taken: list[tuple[Any, ...]] = []

    async def take_in(kind: Kind, namespace: str | None, found: AsyncIterator[Any]) -> int:
        taken.append((kind, namespace, *[page async for page in found]))
        return 7

    take_lists(take_in)
    pod, node = Resource("", "v1", "pods"), Resource("", "v1", "nodes")
    assert [page async for page in fetching.fetch_objs(resource=pod, namespace="models")] == [([], "7")]
    assert taken == [(POD, "models", (pages[0][0], 7), (pages[1][0], 7))]
    others = [page async for page in fetching.fetch_objs(resource=node, namespace=None)]
    assert others == pages, "what is not ours stays with kopf"
    assert len(taken) == 1
