"""Fields of the resource become arguments that vLLM knows, and the user's own arguments follow untouched."""

import json
from typing import Any

import pytest
from hypothesis import given, settings

from strategies import supported_specs
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import PodInputs
from vlm_operator.engines.registry import engine
from vlm_operator.engines.vllm.arguments import ARGUMENTS, arguments
from vlm_operator.engines.vllm.command_line import divide
from vlm_operator.engines.vllm.flags import assumed_flags, newest_flags
from vlm_operator.engines.vllm.versions import KNOWN_VERSIONS, version_of

ALWAYS = [
    *("--host", "0.0.0.0", "--port", "8000", "--gpu-memory-utilization", "0.92", "--shutdown-timeout", "300"),  # noqa: S104
    *("--enable-server-load-tracking", "--disable-access-log-for-endpoints", "/health,/metrics,/load,/ping"),
]


def inputs(**sections: Any) -> PodInputs:
    model = {"name": "org/model"} | sections.pop("model", {})
    raw = {"model": model, "weights": {"persistentVolumeClaim": {"claimName": "models"}}, **sections}
    return PodInputs.of(VLMDeploymentSpec.model_validate(raw))


def added(**sections: Any) -> list[str]:
    """The words that a resource has beyond those that every resource has."""
    words = engine("vLLM").resolve(inputs(**sections)).args
    return [word for word in words if word not in {"/models", "--served-model-name", "org/model", *ALWAYS}]


def test_a_minimal_resource_leaves_everything_else_to_the_engine() -> None:
    assert engine("vLLM").resolve(inputs()).args == ["/models", "--served-model-name", "org/model", *ALWAYS]


FIELDS: list[tuple[dict[str, Any], list[str]]] = [
    ({"model": {"servedNames": ["b", "org/model", "c"]}}, ["b", "c"]),
    ({"model": {"maxModelLen": 32768}}, ["--max-model-len", "32768"]),
    ({"model": {"quantization": "AWQ"}}, []),
    ({"model": {"onlineQuantization": "FP8"}}, ["--quantization", "fp8"]),
    ({"model": {"kvCacheDtype": "Auto"}}, []),
    ({"model": {"kvCacheDtype": "BF16"}}, ["--kv-cache-dtype", "bfloat16"]),
    ({"model": {"kvCacheDtype": "FP8E5M2"}}, ["--kv-cache-dtype", "fp8_e5m2"]),
    ({"model": {"trustRemoteCode": True}}, ["--trust-remote-code"]),
    ({"parallelism": {"tensor": 1, "pipeline": 1, "data": 1}}, []),
    ({"parallelism": {"tensor": 4}}, ["--tensor-parallel-size", "4"]),
    ({"parallelism": {"pipeline": 2, "data": 3}}, ["--pipeline-parallel-size", "2", "--data-parallel-size", "3"]),
    ({"gpu": {"memoryUtilization": 100}}, ["1"]),
    ({"gpu": {"memoryUtilization": 30}}, ["0.3"]),
    ({"engine": {"maxNumSeqs": 64}}, ["--max-num-seqs", "64"]),
    ({"engine": {"maxNumBatchedTokens": 8192}}, ["--max-num-batched-tokens", "8192"]),
    ({"multimodal": {"limitsPerPrompt": {}}}, []),
    ({"multimodal": {"limitsPerPrompt": {"video": 0, "image": 4}}}, ["--limit-mm-per-prompt", '{"image":4,"video":0}']),
    ({"multimodal": {"maxPixels": 1003520}}, ["--mm-processor-kwargs", '{"max_pixels":1003520}']),
    ({"multimodal": {"processorCache": "4Gi"}}, ["--mm-processor-cache-gb", "4"]),
    ({"multimodal": {"processorCache": "1536Mi"}}, ["--mm-processor-cache-gb", "1.5"]),
    ({"multimodal": {"processorCache": "0"}}, ["--mm-processor-cache-gb", "0"]),
    ({"multimodal": {"processorCache": "10G"}}, ["--mm-processor-cache-gb", "9.313226"]),
    ({"multimodal": {"encoderParallelism": "Weights"}}, []),
    ({"multimodal": {"encoderParallelism": "Data"}}, ["--mm-encoder-tp-mode", "data"]),
    ({"multimodal": {"allowedMediaDomains": ["a.example", "b.example"]}}, ["--allowed-media-domains", "a.example", "b.example"]),
    ({"drain": {"timeout": "90s"}}, ["90"]),
    ({"drain": {"timeout": "1500ms"}}, ["2"]),
    ({"engine": {"args": ["--seed", "-1", " ", ""]}}, ["--seed", "-1", " ", ""]),
]  # fmt: skip


@pytest.mark.parametrize(("sections", "words"), FIELDS, ids=lambda value: json.dumps(value)[:60])
def test_a_field_becomes_arguments(sections: dict[str, Any], words: list[str]) -> None:
    assert added(**sections) == words


def test_the_chosen_tensor_degree_counts_not_the_one_in_the_resource() -> None:
    words = arguments(inputs(parallelism={"tensor": 1}), tensor_parallel=8)
    assert words[words.index("--tensor-parallel-size") + 1] == "8"


def test_auto_must_be_resolved_before() -> None:
    with pytest.raises(ValueError, match="tensor-parallel degree"):
        engine("vLLM").resolve(inputs(parallelism={"tensor": "Auto"}))


@settings(max_examples=50)
@given(supported_specs())
def test_every_argument_is_known_to_the_engine_under_exactly_this_name(spec: VLMDeploymentSpec) -> None:
    known, own = assumed_flags(version_of(spec.engine)), spec.engine.args
    words = engine("vLLM").resolve(PodInputs.of(spec), tensor_parallel=2).args
    assert words[len(words) - len(own) :] == own
    assert words[0] == "/models"
    for given_flag in divide(words[1 : len(words) - len(own)]):
        flag = known.spellings[given_flag.flag]
        assert flag.name == given_flag.flag
        assert len(given_flag.values) == {"switch": 0, "value": 1}.get(flag.kind, len(given_flag.values))
        assert len(given_flag.values) > 0 or flag.kind == "switch"
        refused = any(finding.severity == "Error" for finding in engine("vLLM").check(PodInputs.of(spec)))
        assert refused or not flag.choices or set(given_flag.values) <= set(flag.choices)


def test_0_10_2_gets_what_it_knows() -> None:
    domains = {"allowedMediaDomains": ["a.example"], "encoderParallelism": "Data", "processorCache": "4Gi"}
    words = engine("vLLM").resolve(inputs(engine={"version": "0.10.2"}, multimodal=domains)).args
    assert words == [
        *("/models", "--served-model-name", "org/model", "--host", "0.0.0.0", "--port", "8000"),  # noqa: S104
        *("--gpu-memory-utilization", "0.92", "--mm-processor-cache-gb", "4", "--mm-encoder-tp-mode", "data"),
        "--enable-server-load-tracking",
    ]


@pytest.mark.parametrize("version", KNOWN_VERSIONS[1:])
def test_all_other_versions_are_spelled_alike(version: str) -> None:
    assert engine("vLLM").resolve(inputs(engine={"version": version})).args == engine("vLLM").resolve(inputs()).args


def test_what_follows_our_arguments_cannot_become_part_of_one() -> None:
    assert newest_flags().spellings[ARGUMENTS[-1].flag].kind == "value"


@pytest.mark.parametrize(
    ("engine_spec", "version", "image"),
    [
        ({}, "0.33", "vllm/vllm-openai:v0.33.0"),
        ({"version": "0.32"}, "0.32", "vllm/vllm-openai:v0.32.0"),
        ({"version": "0.32.1"}, "0.32.1", "vllm/vllm-openai:v0.32.1"),
        ({"version": "0.10.2"}, "0.10.2", "vllm/vllm-openai:v0.10.2"),
        ({"version": "0.32", "image": "example.com/a:b"}, "0.32", "example.com/a:b"),
        ({"image": "example.com/a:b"}, "0.33", "example.com/a:b"),
    ],
)
def test_version_and_image(engine_spec: dict[str, str], version: str, image: str) -> None:
    resolved = engine("vLLM").resolve(inputs(engine=engine_spec))
    assert (resolved.engine_version, resolved.image) == (version, image)
