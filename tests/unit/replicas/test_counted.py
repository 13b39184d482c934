"""The sizing adds a number to the advice where it has one that would help."""

from typing import Any

from unit.replicas.examples import facts, loading, stored
from unit.sizing.subjects import subject
from vlm_operator.engines.causes import HOST_OUT_OF_MEMORY, KV_CACHE_TOO_SMALL
from vlm_operator.replicas.counted import counted
from vlm_operator.replicas.facts import Facts, Trouble
from vlm_operator.sizing.assess import assess

L4 = "NVIDIA-L4"
KV = Trouble(reason=KV_CACHE_TOO_SMALL.reason, message="too small")


def sized(length: int, **gpu: Any) -> Facts:
    """The facts about a deployment on a small GPU."""
    of = subject(model={"name": "Qwen/Qwen2.5-VL-7B-Instruct", "maxModelLen": length}, gpu=gpu, checks="Warn")
    return facts(of.spec, assessment=assess(of))


def test_a_cache_that_was_too_small_is_told_the_length_that_fits() -> None:
    told = counted(sized(128000, products=[L4]), loading(0, trouble=KV))
    assert told.startswith("by the sizing ")
    assert 0 < int(told.split()[3]) < 128000
    assert told.endswith(" tokens fit")


def test_a_sizing_that_was_wrong_or_does_not_know_adds_nothing() -> None:
    assert counted(sized(2048, products=[L4]), loading(0, trouble=KV)) == ""
    assert counted(sized(128000), loading(0, trouble=KV)) == ""
    assert counted(facts(), loading(0, trouble=KV)) == ""


def test_a_replica_that_was_killed_for_its_memory_is_told_what_it_needs() -> None:
    known = stored()
    killed = loading(0, revision=known.revision, trouble=Trouble(reason=HOST_OUT_OF_MEMORY.reason, message="killed"))
    assert counted(facts(revisions=(known,)), killed) == f"by the sizing it needs {known.resolved.host_memory}"
    assert counted(facts(), killed) == ""


def test_other_troubles_are_not_counted() -> None:
    other = Trouble(reason="NcclFailure", message="no link")
    assert counted(sized(128000, products=[L4]), loading(0, trouble=other)) == ""
    assert counted(facts(), loading(0)) == ""
