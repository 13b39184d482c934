"""What is refused before a pod is created, and the words in which it is refused."""

from typing import Any

import pytest

from unit.engines.test_arguments import inputs
from vlm_operator.api.findings import Finding
from vlm_operator.engines.registry import engine
from vlm_operator.engines.vllm.arguments import ARGUMENTS
from vlm_operator.engines.vllm.flags import newest_flags, versions_with
from vlm_operator.engines.vllm.removed import SUCCESSORS
from vlm_operator.engines.vllm.reserved import OWNED_FLAGS, REFUSED_FLAGS
from vlm_operator.engines.vllm.versions import KNOWN_VERSIONS


def check(**sections: Any) -> tuple[Finding, ...]:
    return engine("vLLM").check(inputs(**sections))


def about(*args: str, version: str = "0.33") -> list[str]:
    return [finding.sentence() for finding in check(engine={"args": list(args), "version": version})]


WRONG = [
    (
        ["--max-model-len", "1k"],
        "spec.engine.args[0]: --max-model-len sets what spec.model.maxModelLen sets; remove it and use spec.model.maxModelLen",
    ),
    (["-tp", "2"], "args[0]: -tp sets what spec.parallelism.tensor sets"),
    (["-q=fp8"], "args[0]: -q sets what spec.model.quantization sets"),
    (["-q8"], "args[0]: -q8 sets what spec.model.quantization sets"),
    (["--seed", "1", "--kv_cache_dtype=fp8"], "args[2]: --kv_cache_dtype sets what spec.model.kvCacheDtype sets"),
    (["--limit-mm-per-prompt.image", "4"], "sets what spec.multimodal.limitsPerPrompt sets"),
    (["--no-trust-remote-code"], "sets what spec.model.trustRemoteCode sets"),
    (["--device-memory-utilization", "0.5"], "sets what spec.gpu.memoryUtilization sets"),
    (["--disable-server-load-tracking"], "cannot be used: the operator sets it; remove it"),
    (["--no-enable-server-load-tracking"], "cannot be used: the operator sets it; remove it"),
    (["--host", "::"], "cannot be used: the operator sets it"),
    (["--model", "other"], "sets what spec.weights sets"),
    (["--api-key", "secret"], "set VLLM_API_KEY in spec.engine.env with valueFrom.secretKeyRef"),
    (["--ssl-keyfile", "/x"], "plain HTTP"),
    (["--uds", "/x"], "plain HTTP"),
    (["--nnodes", "2"], "a replica is one pod"),
    (["--disable-log-stats"], "reports no metrics"),
    (["--no-such-flag"], "args[0]: vLLM 0.33 has no argument --no-such-flag"),
    (
        ["--tensor-parallel", "2"],
        "has no argument --tensor-parallel; did you mean --tensor-parallel-size? spec.parallelism.tensor sets it",
    ),
    (["--enforce-eagre"], "did you mean --enforce-eager?"),
    (["-foo"], "vLLM 0.33 has no argument -foo"),
    (["--"], "args[0]: '--' is no argument: vLLM would take what follows for further models; remove it"),
    (["--seed", "1", "--", "--enforce-eager"], "args[2]: '--' is no argument"),
    (["--max", "1"], "vLLM 0.33 has no argument --max; remove it"),
    (["--Enforce-Eager"], "did you mean --enforce-eager?"),
    (["-enforce-eager"], "did you mean --enforce-eager?"),
    (["--logits_processor", "a"], "did you mean --logits-processors?"),
    (["--generation", "auto"], "did you mean --generation-config?"),
    (["--compilation-confg.mode", "3"], "did you mean --compilation-config?"),
    (["--apikey", "secret"], "has no argument --apikey; remove it"),
    (["-"], "args[0]: '-' belongs to no flag; remove it"),
    (["-O3", "word"], "args[1]: 'word' belongs to no flag"),
    (["-cc.mode"], "args[0]: -cc.mode needs a value"),
    (["-cc.mode", "3", "4"], "args[2]: '4' belongs to no flag"),
    (["other/model"], "args[0]: 'other/model' belongs to no flag; remove it"),
    (["--seed", "1", "other/model"], "args[2]: 'other/model' belongs to no flag"),
    (["--seed=1", "other/model"], "args[1]: 'other/model' belongs to no flag"),
    (["--seed 1"], "args[0]: '--seed 1' belongs to no flag; write the flag and its value as two items"),
    (["--enforce-eager", "true"], "args[0]: --enforce-eager is a switch and takes no value; remove 'true'"),
    (["--enforce-eager=true"], "--enforce-eager is a switch and takes no value"),
    (["--seed"], "args[0]: --seed needs a value; add it as the next item"),
    (["--logits-processors"], "--logits-processors needs a value"),
    (["--mm-processor-cache-type", "disk"], "--mm-processor-cache-type does not take 'disk'; choose from"),
]


@pytest.mark.parametrize(("args", "words"), WRONG, ids=[" ".join(row[0]) for row in WRONG])
def test_a_wrong_argument_is_named(args: list[str], words: str) -> None:
    (sentence,) = about(*args)
    assert words in sentence


RIGHT = [
    [],
    ["--seed", "-1"],
    ["--seed=-1"],
    ["--enforce-eager", "--enable-prefix-caching"],
    ["--no-enable-prefix-caching"],
    ["--disable-prefix-caching"],
    ["--logits-processors", "a", "b"],
    ["--override-generation-config", '{"temperature": 0.1}'],
    ["--override-generation-config.temperature", "0.1"],
    ["-cc.mode", "3"],
    ["-O3"],
    ["-O", "3"],
    ["--load_format", "runai_streamer"],
    ["--safetensors-load-strategy", "prefetch"],
    ["--uvicorn-log-level", "warning"],
    ["--moe-backend", "Flashinfer-Cutlass"],
    ["--root-path", "/vlm"],
    ["--hf-token"],
]


@pytest.mark.parametrize("args", RIGHT, ids=" ".join)
def test_a_right_argument_is_left_alone(args: list[str]) -> None:
    assert about(*args) == []


def test_all_wrong_arguments_are_told_at_once() -> None:
    assert len(about("stray", "--no-such", "--port", "1", "--seed")) == 4


@pytest.mark.parametrize(
    ("args", "indices"),
    [
        (["a", "b"], [0, 1]),
        (["--seed", "1", "a", "b"], [2, 3]),
        (["--seed=1", "a", "b"], [1, 2]),
        (["--enforce-eager", "true", "a", "b"], [0, 2, 3]),
        (["--enforce-eager=true", "a"], [0, 1]),
        (["--mm-processor-cache-type", "disk", "a"], [0, 2]),
        (["--collect-detailed-traces", "all", "gpu", "model", "tpu"], [0, 0]),
        (["--logits-processors=a", "b", "c"], [1, 2]),
        (["--", "a", "--no-such"], [0, 1, 2]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_every_wrong_word_has_its_finding(args: list[str], indices: list[int]) -> None:
    fields = [finding.field for finding in check(engine={"args": args})]
    assert fields == [f"spec.engine.args[{index}]" for index in indices]


REPEATED = [
    (
        ["--seed", "1", "--seed", "2"],
        "args[2]: --seed sets again what --seed in spec.engine.args[0] sets, and of the two vLLM keeps only --seed in",
    ),
    (["--seed", "1", "--seed=2"], "keeps only --seed in spec.engine.args[2]; remove one of them"),
    (["--load_format=a", "--load-format", "b"], "args[1]: --load-format sets again what --load_format in"),
    (["--enable-prefix-caching", "--no-enable-prefix-caching"], "keeps only --no-enable-prefix-caching"),
    (["-O3", "--optimization-level", "2"], "--optimization-level sets again what -O3"),
    (["-cc.mode", "3", "-cc.mode", "2"], "-cc.mode sets again what -cc.mode"),
    (["-cc.mode", "3", "--compilation-config.backend", "eager"], "keeps only --compilation-config.backend in"),
    (["--compilation-config.mode", "3", "--compilation-config", "{}"], "keeps only --compilation-config.mode in"),
    (["--logits-processors", "a", "--logits-processors", "b"], "--logits-processors sets again"),
]


@pytest.mark.parametrize(("args", "words"), REPEATED, ids=[" ".join(row[0]) for row in REPEATED])
def test_a_flag_given_twice_is_a_warning_that_names_both(args: list[str], words: str) -> None:
    (finding,) = check(engine={"args": args})
    assert (finding.severity, finding.reason) == ("Warning", "RepeatedArgument")
    assert words in finding.sentence()


def test_each_repetition_is_told_once() -> None:
    found = check(engine={"args": ["--seed", "1", "--seed", "2", "--seed", "3"]})
    assert [finding.field for finding in found] == ["spec.engine.args[2]", "spec.engine.args[4]"]


@pytest.mark.parametrize(
    "args",
    [
        ["--middleware", "a", "--middleware", "b"],
        ["-cc.mode", "3", "-cc.backend", "eager"],
        ["-cc.custom_ops+", "all", "-cc.custom_ops+", "none"],
        ["--compilation_config.mode", "3", "--compilation-config.backend", "eager"],
    ],
    ids=" ".join,
)
def test_what_vllm_gathers_may_be_given_twice(args: list[str]) -> None:
    assert about(*args) == []


def test_what_is_refused_is_not_also_called_repeated() -> None:
    assert {finding.severity for finding in check(engine={"args": ["--port", "1", "--port", "2"]})} == {"Error"}


@pytest.mark.parametrize("version", ["0.1", "0.0", "0.29.9", "0.10", "0.10.1", "0.11.0"])
def test_a_version_whose_arguments_cannot_be_spelled_is_refused(version: str) -> None:
    (finding,) = check(engine={"version": version})  # what its arguments lack is not told: nobody knows
    assert (finding.severity, finding.reason) == ("Error", "UnsupportedVersion")
    assert finding.sentence() == (
        f"spec.engine.version: is {version}, but this operator can spell the arguments of vLLM 0.10.2, 0.30,"
        " 0.31, 0.32, 0.33 and newer only;"
        " leave it out to run vLLM 0.33"
    )


WAYS_OUT: list[tuple[tuple[str, ...] | None, str]] = [
    (None, "leave it out to run vLLM 0.33"),
    (KNOWN_VERSIONS, "leave it out to run vLLM 0.33"),
    (("0.10.2",), 'set it to "0.10.2": of the known versions 0.10.2 alone has the model\'s class'),
    (("0.10.2", "0.30"), 'set it to "0.30": of the known versions 0.10.2 to 0.30 have the model\'s class'),
    (KNOWN_VERSIONS[1:], "leave it out to run vLLM 0.33: of the known versions 0.30 to 0.33 have the model's class"),
    ((), "serve another model: none of the known versions has the class of this one"),
]


@pytest.mark.parametrize("version", ["0.9", "0.34"])
@pytest.mark.parametrize(("having", "advice"), WAYS_OUT, ids=str)
def test_the_way_out_is_a_version_with_the_models_class(
    version: str, having: tuple[str, ...] | None, advice: str
) -> None:
    (finding,) = engine("vLLM").check(inputs(engine={"version": version}), having=having)
    assert finding.advice == advice


@pytest.mark.parametrize("version", ["0.34", "0.34.4", "0.100.1", "9.9"])
def test_another_version_is_a_warning(version: str) -> None:
    (finding,) = check(engine={"version": version})
    assert (finding.severity, finding.reason) == ("Warning", "UnknownVersion")
    assert finding.sentence() == (
        f"spec.engine.version: is {version}, and arguments are checked against those of vLLM 0.33, the newest that this"
        " operator knows; leave it out to run vLLM 0.33"
    )


def test_arguments_of_another_version_are_doubted_and_conflicts_are_still_refused() -> None:
    _, unknown, valueless, conflict, stray = check(
        engine={"version": "9.9", "args": ["--no-such-flag", "--seed", "--port", "1", "--", "--enforce-eager"]}
    )
    assert unknown.severity == valueless.severity == "Warning"
    assert unknown.sentence() == (
        "spec.engine.args[0]: vLLM 0.33 has no argument --no-such-flag; make sure that vLLM 9.9 has it"
    )
    assert (conflict.severity, conflict.field) == ("Error", "spec.engine.args[2]")
    assert (stray.severity, stray.field) == ("Error", "spec.engine.args[4]")


@pytest.mark.parametrize("version", ["0.30", "0.31.0", "0.32", "0.32.4"])
def test_a_known_version_is_no_warning(version: str) -> None:
    assert check(engine={"version": version}) == ()


def test_a_default_version_is_no_warning() -> None:
    assert check() == check(engine={"version": "0.33"}) == check(engine={"version": "0.33.7"}) == ()


def test_a_patch_release_has_the_arguments_of_its_minor_version() -> None:
    (sentence,) = about("--no-such-flag", version="0.33.2")
    assert "vLLM 0.33 has no argument --no-such-flag" in sentence


@pytest.mark.parametrize("name", ["HOME", "VLLM_PORT", "NVIDIA_VISIBLE_DEVICES", "VLLM_SERVER_DEV_MODE"])
def test_a_reserved_variable_is_refused(name: str) -> None:
    (finding,) = check(engine={"env": [{"name": "FINE", "value": "1"}, {"name": name, "value": "1"}]})
    assert (finding.severity, finding.field) == ("Error", "spec.engine.env[1]")
    assert finding.message.startswith(f"{name} cannot be set: ")


SECRET = "hf_" + "s3cret" * 5


@pytest.mark.parametrize("name", ["VLLM_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "PASSWORD"])
def test_a_key_in_clear_is_a_warning_and_never_repeated(name: str) -> None:
    (finding,) = check(engine={"env": [{"name": name, "value": "s3cret"}]})
    assert finding.severity == "Warning"
    assert "s3cret" not in finding.sentence()


def test_an_api_key_in_a_secret_is_fine() -> None:
    reference = {"secretKeyRef": {"name": "engine", "key": "token"}}
    assert check(engine={"env": [{"name": "VLLM_API_KEY", "valueFrom": reference}]}) == ()


@pytest.mark.parametrize("value", [SECRET, f'{{"api_key":"{SECRET}"}}', "https://user:s3cret@example.com"])
def test_a_key_is_recognised_in_any_variable(value: str) -> None:
    (finding,) = check(engine={"env": [{"name": "EXTRA", "value": value}]})
    assert finding.reason == "ApiKeyInClear"
    assert "s3cret" not in finding.sentence()


@pytest.mark.parametrize(
    "args",
    [
        ["--hf-token", "s3cret"],
        ["--hf-token=s3cret"],
        ["--model-loader-extra-config", '{"aws_secret_access_key": "s3cret"}'],
        ["--additional-config", '{"a": [{"b": {"token": "s3cret"}}]}'],
        ["--otlp-traces-endpoint", "https://user:s3cret@example.com"],
        ["--served-by", SECRET],
        [SECRET],
        ["--enforce-eager", SECRET],
        ["--seed", SECRET],
        ["--mm-processor-cache-type", SECRET],
        [f"--{SECRET}"],
        ["--media-io-kwargs", f'{{"{SECRET}": {{}}}}'],
    ],
    ids=lambda args: args[0],
)
def test_a_key_in_an_argument_is_refused_and_never_repeated(args: list[str]) -> None:
    found = check(engine={"args": args})
    assert "ApiKeyInClear" in {finding.reason for finding in found if finding.severity == "Error"}
    assert "s3cret" not in "".join(finding.sentence() for finding in found)


@pytest.mark.parametrize(
    "args",
    [
        ["--hf-overrides", '{"image_token": "<image>", "bos_token": "<s>", "token": 3}'],
        ["--additional-config", '{"max_tokens": 3, "keys": ["a"], "secret_key": ""}'],
        ["--otlp-traces-endpoint", "https://example.com:4317/a@b"],
    ],
    ids=lambda args: args[0],
)
def test_what_only_looks_like_a_key_is_left_alone(args: list[str]) -> None:
    assert about(*args) == []


CHANGED = [
    ("0.32", ["--disable-log-requests"], "was removed; remove it: requests are logged only with --enable-log-requests"),
    ("0.33", ["--swap-space", "4"], "vLLM 0.33 has no argument --swap-space: it was removed; use --kv-offloading-size"),
    ("0.33", ["--task", "generate"], "use --runner and --convert"),
    ("0.33", ["--guided_decoding_backend=auto"], "use --structured-outputs-config.backend"),
    ("0.33", ["--no-enable-reasoning"], "--reasoning-parser is enough"),
    ("0.33", ["--disable-mm-preprocessor-cache"], "use spec.multimodal.processorCache: 0"),
    (
        "0.32",
        ["--sleep-mode-backend", "cumem"],
        "it came with a later one, vLLM 0.33 has it; remove it, or use vLLM 0.33",
    ),
    ("0.10.2", ["--watchdog-config", "{}"], "vLLM 0.33 has it"),
]


@pytest.mark.parametrize(("version", "args", "words"), CHANGED, ids=str)
def test_a_flag_of_another_version_is_refused_with_what_became_of_it(version: str, args: list[str], words: str) -> None:
    errors = [finding for finding in check(engine={"args": args, "version": version}) if finding.severity == "Error"]
    assert [finding.reason for finding in errors] == ["InvalidArgument"]
    assert words in errors[0].sentence()


def test_a_flag_is_taken_by_the_version_that_has_it() -> None:
    assert [finding.severity for finding in check(engine={"version": "0.10.2", "args": ["--swap-space", "4"]})] == [
        "Warning"
    ]


def test_removed_flags_are_gone_and_their_successors_exist() -> None:
    newest = newest_flags()
    for flag, advice in SUCCESSORS.items():
        assert set(KNOWN_VERSIONS[1:]) - set(versions_with(flag)), flag
        for word in (word.strip(":,") for word in advice.split()):
            if word.startswith("--"):
                successor = newest.find(word)
                assert successor is not None, word
                assert not word.partition(".")[2] or word.partition(".")[2] in successor.keys, word


VALUES = [
    (["--compilation-config", '{"modee": 3}'], "args[0]: --compilation-config has no key 'modee'; did you mean mode?"),
    (["--compilation-config.modee", "3"], "has no key 'modee'"),
    (["-cc.modee=3"], "-cc has no key 'modee'"),
    (["--media-io-kwargs", '{"videos": {"num_frames": 40}}'], "no key 'videos'; did you mean video?"),
    (["--kv-transfer-config", '{"connector": "a"}'], "no key 'connector'"),
    (["--ec-transfer-config", '{"zzz": 1}'], "no key 'zzz'; choose from"),
    (["--media-io-kwargs", "{'video': {}}"], "takes JSON, and \"{'video': {}}\" is none: Expecting property name"),
    (["--media-io-kwargs", "video=1"], "takes JSON"),
    (["--seed", "abc"], "args[1]: --seed takes a whole number, not 'abc'"),
    (["--seed=1.5"], "args[0]: --seed takes a whole number, not '1.5'"),
    (["--video-pruning-rate", "half"], "takes a number, not 'half'"),
    (["--enable-prefix-caching", "True"], "is a switch and takes no value; remove 'True'"),
    (["--no-enable-prefix-caching", "false"], "is a switch and takes no value"),
]


@pytest.mark.parametrize(("args", "words"), VALUES, ids=[" ".join(row[0]) for row in VALUES])
def test_a_wrong_value_is_named(args: list[str], words: str) -> None:
    (sentence,) = about(*args)
    assert words in sentence


@pytest.mark.parametrize(
    "args",
    [
        ["--compilation-config", '{"mode": 3, "cudagraph_mode": "FULL"}'],
        ["-cc.custom_ops+", "all"],
        ["--compilation-config.pass_config.fuse_norm_quant", "true"],
        ["--media-io-kwargs", '{"video": {"num_frames": 40}}'],
        ["--hf-overrides", '{"anything": {"goes": 1}}'],
        ["--max-log-len", "None"],
        ["--max-num-queued-tokens", "64k"],
    ],
    ids=" ".join,
)
def test_a_right_value_is_left_alone(args: list[str]) -> None:
    assert about(*args) == []


def test_a_deep_object_is_no_crash() -> None:
    assert len(about("--media-io-kwargs", "[" * 4000)) == 1
    assert len(about("--additional-config", '{"a":' * 600 + "1" + "}" * 600)) == 0


LEGACY: list[tuple[dict[str, Any], str]] = [
    (
        {"multimodal": {"allowedMediaDomains": ["a.example"]}},
        "spec.multimodal.allowedMediaDomains: vLLM 0.10.2 has no --allowed-media-domains and fetches media from any host;",
    ),
    (
        {"model": {"kvCacheDtype": "BF16"}},
        "spec.model.kvCacheDtype: --kv-cache-dtype of vLLM 0.10.2 does not take bfloat16; it takes auto, fp8, fp8_e4m3",
    ),
]


@pytest.mark.parametrize(("sections", "words"), LEGACY, ids=["media domains", "kv cache"])
def test_a_field_that_a_version_cannot_be_told_is_refused(sections: dict[str, Any], words: str) -> None:
    errors = [finding for finding in check(engine={"version": "0.10.2"}, **sections) if finding.severity == "Error"]
    assert [finding.reason for finding in errors] == ["FieldNotInVersion"]
    assert errors[0].sentence().startswith(words)
    assert check(engine={"version": "0.30"}, **sections) == ()


def test_a_version_that_drops_its_streams_is_a_warning() -> None:
    (finding,) = check(engine={"version": "0.10.2"})
    assert finding.severity == "Warning"
    assert finding.sentence() == (
        "spec.drain.timeout: vLLM 0.10.2 has no --shutdown-timeout and drops its streams when it is told to stop;"
        " use vLLM 0.30 or newer"
    )


def test_no_version_without_the_models_class_is_advised_for_a_field() -> None:
    old = inputs(engine={"version": "0.10.2"}, multimodal={"allowedMediaDomains": ["a.example"]})
    for having, advices in (
        (("0.10.2",), ["leave it out", "expect that: no version with the model's class has it"]),
        (("0.10.2", "0.31"), ["use vLLM 0.31 or newer, or leave it out", "use vLLM 0.31 or newer"]),
    ):
        assert [finding.advice for finding in engine("vLLM").check(old, having=having)] == advices


def test_other_gpus_need_an_image_of_their_own() -> None:
    (finding,) = check(gpu={"resourceName": "amd.com/gpu"})
    assert (finding.severity, finding.field) == ("Warning", "spec.engine.image")
    assert check(gpu={"resourceName": "amd.com/gpu"}, engine={"image": "rocm/vllm:1"}) == ()
    assert check(gpu={"resourceName": "nvidia.com/mig-3g.40gb"}) == ()


def test_flags_of_the_rules_exist() -> None:
    assert [flag for flag in OWNED_FLAGS.keys() | REFUSED_FLAGS.keys() if not versions_with(flag)] == []
    assert not OWNED_FLAGS.keys() & REFUSED_FLAGS.keys()


def test_the_fields_of_the_rules_exist() -> None:
    spec = inputs().model_dump(by_alias=True)
    for path in (path for argument in ARGUMENTS for path in argument.field.split(" and ") if path):
        _, section, field = path.split(".")
        assert field in spec[section], path
