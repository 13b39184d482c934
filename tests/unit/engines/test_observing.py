"""How a replica of vLLM is watched: the names of its metrics by version, and its own word about work in flight."""

import pytest

from vlm_operator.engines.vllm.observing import KV_CACHE_USAGE, OLD_KV_CACHE_USAGE, drain, in_flight, metrics
from vlm_operator.engines.vllm.versions import KNOWN_VERSIONS


def test_one_name_changed_between_the_known_versions() -> None:
    assert metrics("0.10.2").kv_cache_usage == (KV_CACHE_USAGE, OLD_KV_CACHE_USAGE)
    for version in (*KNOWN_VERSIONS[1:], "0.33.4", "0.40"):
        assert metrics(version).kv_cache_usage == (KV_CACHE_USAGE,)


def test_the_oldest_version_alone_has_no_time_to_finish_its_streams() -> None:
    assert drain("0.10.2").timeout_flag is None
    for version in (*KNOWN_VERSIONS[1:], "0.33.4", "0.40"):
        assert drain(version).timeout_flag == "--shutdown-timeout"


def test_the_grace_covers_leaving_finishing_and_ending() -> None:
    assert drain("0.33").grace_seconds(300) == 10 + 300 + 20


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ('{"server_load": 0}', 0),
        ('{"server_load":12}', 12),
        ('{"server_load": true}', None),
        ('{"server_load": -1}', None),
        ('{"server_load": 1.0}', None),
        ('{"server_load": null}', None),
        ('{"load": 1}', None),
        ("3", None),
        ("Internal Server Error", None),
    ],
)
def test_work_in_flight_is_a_number_or_unknown(answer: str, number: int | None) -> None:
    assert in_flight(answer) == number
