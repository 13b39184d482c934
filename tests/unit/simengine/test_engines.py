"""The simulated engines as a client sees them, through their proxy."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest

from controlplane import wait_until
from simengine import SimEngine, SimEngines

ADDRESS = "198.18.0.5"
REAL = Path(__file__).parents[1] / "engines" / "metrics" / "vllm_0.32.txt"
"""Some lines of the answer of a real vLLM."""


@pytest.fixture
def engines() -> Iterator[SimEngines]:
    with SimEngines(model="m") as engines:
        yield engines


def ask(engines: SimEngines, method: str, path: str, body: Any = None, *, address: str = ADDRESS) -> HTTPResponse:
    host, _, port = engines.proxy_url.removeprefix("http://").partition(":")
    connection = HTTPConnection(host, int(port), timeout=60)
    connection.request(method, f"http://{address}:8000{path}", None if body is None else json.dumps(body))
    return connection.getresponse()


def get(engines: SimEngines, path: str, *, address: str = ADDRESS) -> tuple[int, str]:
    answer = ask(engines, "GET", path, address=address)
    return answer.status, answer.read().decode()


def chat(engines: SimEngines, **more: Any) -> HTTPResponse:
    return ask(engines, "POST", "/v1/chat/completions", {"model": "m", "messages": []} | more)


def figure(engines: SimEngines, name: str) -> float:
    found = re.search(rf"^vllm:{name}{{.*}} (\S+)$", get(engines, "/metrics")[1], re.MULTILINE)
    assert found
    return float(found[1])


def test_an_engine_of_which_nobody_spoke_is_idle_and_healthy(engines: SimEngines) -> None:
    assert get(engines, "/health") == (200, "")
    assert json.loads(get(engines, "/load")[1]) == {"server_load": 0}
    assert figure(engines, "num_requests_running") == figure(engines, "generation_tokens_total") == 0
    assert engines[ADDRESS].asked[:2] == ["GET /health", "GET /load"]


def test_each_address_has_an_engine_of_its_own(engines: SimEngines) -> None:
    engines[ADDRESS].in_flight = 3
    engines["fd00::5"].in_flight = 2
    loads = [get(engines, "/load", address=address)[1] for address in (ADDRESS, "198.18.0.6", "[fd00::5]")]
    assert [json.loads(load)["server_load"] for load in loads] == [3, 0, 2]
    engines.forget(ADDRESS)
    assert json.loads(get(engines, "/load")[1]) == {"server_load": 0}


def test_its_metrics_are_called_as_those_of_the_real_one(engines: SimEngines) -> None:
    engines[ADDRESS].model = "tiny-vlm"
    series = re.compile(r"^(vllm:\w+)\{(.*)\} ", re.MULTILINE)
    real = {name: set(re.findall(r"(\w+)=", labels)) for name, labels in series.findall(REAL.read_text())}
    ours = {name: set(re.findall(r"(\w+)=", labels)) for name, labels in series.findall(get(engines, "/metrics")[1])}
    assert ours.keys() <= real.keys()
    assert all(labels <= real[name] for name, labels in ours.items())
    assert all(labels == real[name] for name, labels in ours.items() if name != "vllm:cache_config_info")


def test_a_chat_is_answered_whole_and_in_a_stream(engines: SimEngines) -> None:
    whole = json.loads(chat(engines, max_tokens=3).read())
    assert whole["choices"][0]["finish_reason"] == "length"
    assert whole["usage"]["completion_tokens"] == 3
    stream = chat(engines, max_tokens=3, stream=True, stream_options={"include_usage": True})
    lines = [line for line in stream.read().decode().split("\n\n") if line]
    assert lines[-1] == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None, None, "length"]
    assert chunks[-1]["usage"]["completion_tokens"] == 3
    assert figure(engines, "generation_tokens_total") == 6
    assert chat(engines, model="another").status == 404


def test_work_moves_the_counters_unless_the_engine_hangs(engines: SimEngines) -> None:
    engine = engines[ADDRESS]
    engine.in_flight = 2
    assert figure(engines, "generation_tokens_total") < figure(engines, "generation_tokens_total")
    engine.hung = True
    engine.in_flight = 0
    assert figure(engines, "num_requests_running") > 0
    assert figure(engines, "generation_tokens_total") == figure(engines, "generation_tokens_total")
    assert get(engines, "/health")[0] == 200


def test_a_stream_counts_and_stands_still_while_the_engine_hangs(engines: SimEngines) -> None:
    engine = engines[ADDRESS]
    engine.hung, engine.in_flight = True, 1
    with ThreadPoolExecutor() as pool:
        stream = pool.submit(lambda: chat(engines, stream=True).read())
        wait_until(lambda: engine.running == 2, "the stream is counted")
        assert not stream.done()
        engine.hung = False
        assert stream.result().endswith(b"data: [DONE]\n\n")
    wait_until(lambda: engine.running == 1, "it is not counted any more")


def answers(engine: SimEngine, engines: SimEngines, **fields: bool) -> list[int]:
    for name, value in fields.items():
        setattr(engine, name, value)
    return [chat(engines).status, get(engines, "/health")[0], get(engines, "/load")[0]]


def test_troubles_are_told_as_vllm_tells_them(engines: SimEngines) -> None:
    engine = engines[ADDRESS]
    assert answers(engine, engines, unauthorized=True) == [401, 200, 200]
    assert answers(engine, engines, unauthorized=False, dead=True) == [500, 503, 200]
    assert answers(engine, engines, dead=False, gone=True) == [502, 502, 502]


def test_a_silent_engine_answers_when_it_may(engines: SimEngines) -> None:
    engines[ADDRESS].silent = True
    with ThreadPoolExecutor() as pool:
        health = pool.submit(get, engines, "/health")
        wait_until(lambda: engines[ADDRESS].asked, "the question has arrived")
        assert not health.done()
        engines[ADDRESS].silent = False
        assert health.result() == (200, "")


def test_nothing_may_be_at_an_address() -> None:
    with SimEngines(everywhere=False) as engines:
        assert get(engines, "/health") == (502, f"nothing is at {ADDRESS}")
        engines["198.18.0.6"].in_flight = 1
        assert get(engines, "/health", address="198.18.0.6")[0] == 200
