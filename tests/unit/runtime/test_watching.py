"""How kopf is set up: what it does by itself, and what it must not do."""

from collections.abc import Iterable
from itertools import islice

from vlm_operator.runtime.kinds import CHILDREN
from vlm_operator.runtime.watching import settings_for


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
