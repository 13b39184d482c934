"""What a replica works on is read from its answers, and what it does not tell is not taken for idle."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlm_operator.engines.metrics import Metrics
from vlm_operator.engines.registry import engine
from vlm_operator.engines.work import Work, kv_cache_tokens, total, work_of

MODEL = "Qwen/Qwen2.5-VL-7B-Instruct"
VLLM = engine("vLLM")
METRICS, DRAINING = VLLM.metrics("0.32"), VLLM.drain("0.32")
REAL = (Path(__file__).parent / "metrics" / "vllm_0.32.txt").read_text()
"""Some lines of the answer of a vLLM 0.32 at rest."""


def figures(running: float = 0, waiting: float = 0, tokens: float = 0, model: str = MODEL) -> str:
    label = model.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(
        f'vllm:{name}{{engine="0",model_name="{label}"}} {value}\n'
        for name, value in (
            ("num_requests_running", running),
            ("num_requests_waiting", waiting),
            ("generation_tokens_total", tokens),
        )
    )


def read(told: str | None, load: str | None, *, model: str = MODEL) -> Work:
    return work_of(METRICS, DRAINING, model=model, figures=told, load=load)


@pytest.mark.parametrize(
    ("told", "load", "in_flight"),
    [
        (figures(), '{"server_load": 0}', 0),
        (figures(running=2, waiting=3), '{"server_load": 1}', 5),
        (figures(running=1), '{"server_load": 4}', 4),
        (None, '{"server_load": 0}', None),
        (figures(), None, None),
        (figures(), "busy", None),
        ("", '{"server_load": 0}', None),
        ("<html>502 Bad Gateway</html>", '{"server_load": 0}', None),
        (figures(model="another"), '{"server_load": 0}', None),
        (figures(running=float("nan")), '{"server_load": 0}', None),
        (figures(running=-1), '{"server_load": 0}', None),
        (figures(waiting=float("inf")), '{"server_load": 0}', None),
        (figures().replace("num_requests_waiting", "num_requests_waiting_by_reason"), '{"server_load": 0}', None),
        (figures().replace("} 0", "} nothing"), '{"server_load": 0}', None),
        (figures().replace('"} 0', "} 0"), '{"server_load": 0}', None),
    ],
)
def test_a_replica_is_idle_only_when_all_of_its_answers_say_so(
    told: str | None, load: str | None, in_flight: int | None
) -> None:
    assert read(told, load).in_flight == in_flight


def test_a_real_answer_is_read() -> None:
    at_rest = Work(in_flight=0, running=0, waiting=0, generated_tokens=25001, alive=True)
    assert read(REAL, '{"server_load":0}', model="tiny-vlm") == at_rest


def test_it_is_alive_when_it_tells_anything() -> None:
    assert [read(told, load).alive for told, load in ((None, None), ("", None), (None, ""))] == [False, True, True]


def test_ranks_are_added_up() -> None:
    second = figures(running=2, tokens=7).replace('engine="0"', 'engine="1"')
    work = read(figures(running=1, waiting=4, tokens=5) + second, '{"server_load": 0}')
    assert (work.running, work.waiting, work.generated_tokens, work.in_flight) == (3, 4, 12, 7)


def test_of_several_names_the_first_that_is_there_counts() -> None:
    told = 'new{model_name="m"} 3\nold{model_name="m"} 3\n'
    assert total(told, ("new", "old"), label="model_name", value="m") == 3
    assert total(told, ("newer", "old"), label="model_name", value="m") == 3
    assert total(told, ("newer",), label="model_name", value="m") is None


def test_a_name_with_difficult_characters_is_found() -> None:
    name = 'a "b" \\c {d}, e="1"'
    assert read(figures(running=1, model=name), '{"server_load": 0}', model=name).in_flight == 1


def work(running: int | None, tokens: int | None) -> Work:
    return Work(in_flight=running, running=running, waiting=0, generated_tokens=tokens, alive=True)


@pytest.mark.parametrize(
    ("before", "now", "still"),
    [
        (work(1, 5), work(1, 5), True),
        (work(1, 5), work(2, 5), True),
        (work(1, 5), work(1, 6), False),
        (work(1, 5), work(1, 2), False),
        (work(0, 5), work(1, 5), False),
        (work(1, 5), work(0, 5), False),
        (work(None, 5), work(1, 5), False),
        (work(1, None), work(1, None), False),
    ],
)
def test_an_engine_stands_still_when_it_has_work_and_nothing_comes_of_it(before: Work, now: Work, still: bool) -> None:
    assert now.stands_still_since(before) is still


@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from(
            [*METRICS.running, "{", "}", '"', ",", "=", "#", " ", "\n", "\\", "1", "model_name", MODEL, "NaN"]
        )
        | st.text(max_size=3),
        max_size=30,
    ),
    st.text(max_size=10),
)
def test_any_answer_is_read_without_an_error(pieces: list[str], load: str) -> None:
    work = read("".join(pieces), load)
    assert work.in_flight is None or work.in_flight >= 0


def test_names_of_metrics_are_whole_words() -> None:
    names = Metrics(
        model_label="m",
        running=("a",),
        waiting=("b",),
        kv_cache_usage=("c",),
        generated_tokens=("d",),
        cache_info=("e",),
        cache_tokens=lambda _: None,
    )
    told = 'ab{m="x"} 5\na{m="x"} 1\na_total{m="x"} 9\nb{m="x"} 0\nd{m="x"} 0\n'
    assert work_of(names, DRAINING, model="x", figures=told, load='{"server_load": 0}').running == 1


def cache(**labels: str) -> str:
    shown = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{{{shown}}} 1.0\n"


@pytest.mark.parametrize(
    ("told", "tokens"),
    [
        (REAL, 1048576),
        (cache(engine="0", kv_cache_size_tokens="131072", num_gpu_blocks="1"), 131072),
        (cache(engine="0", num_gpu_blocks="8192", block_size="16"), 131072),
        (cache(engine="0", kv_cache_size_tokens="100") + cache(engine="1", kv_cache_size_tokens="80"), 180),
        (cache(engine="0", kv_cache_size_tokens="100") + cache(engine="1", kv_cache_size_tokens="None"), None),
        (cache(engine="0", num_gpu_blocks="None", block_size="16"), None),
        (cache(engine="0", kv_cache_size_tokens="0"), None),
        (cache(engine="0"), None),
        ("", None),
        ("<html>502 Bad Gateway</html>", None),
        ('vllm:cache_config_info{engine="0} 1', None),
    ],
)
def test_the_size_of_the_cache_is_what_all_ranks_say(told: str, tokens: int | None) -> None:
    assert kv_cache_tokens(METRICS, told) == tokens
