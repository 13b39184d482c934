"""The status as it is written: a patch to the one that is there."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from edits import merged
from unit.runtime.reconcile_world import House
from vlm_operator.runtime.publish import patch_to


async def test_what_is_no_more_within_a_part_of_the_status_goes_from_it() -> None:
    """Else it would come back from the status: the size to start with as that of long ago, a clock that never stands still."""
    house = await House(replicas=2, scaling={"minReplicas": 1, "maxReplicas": 6}).settled()
    assert house.status()["scaling"]["startingReplicas"] == 2
    house.edit(replicas=2, scaling={"minReplicas": 1, "maxReplicas": 6, "mode": "Advisory"})
    await house.looks()
    assert "startingReplicas" not in house.status().get("scaling", {})
    house.api.calls.clear()
    await house.looks()
    assert "patch_status" not in house.api.calls
    house.edit(replicas=4, scaling={"minReplicas": 1, "maxReplicas": 6})
    await house.looks()
    assert house.status()["scaling"]["startingReplicas"] == 4


maps = st.recursive(
    st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=12,
)
"""Values as a status has them."""


def without_nulls(value: Any) -> Any:
    """As the API server stores it."""
    if not isinstance(value, dict):
        return value
    return {key: without_nulls(part) for key, part in value.items() if part is not None}


@given(st.dictionaries(st.sampled_from("abcd"), maps), st.dictionaries(st.sampled_from("abcd"), maps))
def test_a_patch_makes_one_status_of_the_other_as_a_whole(held: dict[str, Any], wanted: dict[str, Any]) -> None:
    held, wanted = without_nulls(held), without_nulls(wanted)
    assert merged(held, patch_to(wanted, held)) == wanted
