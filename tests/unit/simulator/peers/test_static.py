"""A fixed fleet is the size that it was given, whatever is seen."""

import pytest

from unit.simulator.peers.views import answers, look
from vlm_operator.simulator.peers.settings import SettingsError
from vlm_operator.simulator.peers.static import Static, StaticSettings


@pytest.mark.parametrize("replicas", [1, 7])
def test_it_never_changes(replicas: int) -> None:
    peer = Static(StaticSettings(replicas=replicas))
    assert set(answers(peer, 3, seconds=600, in_flight=500, waiting=400)) == {replicas}
    assert peer.desired(look()) == replicas


def test_it_has_at_least_one() -> None:
    with pytest.raises(SettingsError, match=r"StaticSettings\.replicas is 0; it must be a number greater than 0"):
        StaticSettings(replicas=0)
