"""Which values of arguments vLLM's own parser takes, what it does not count, and what must never be repeated."""

import pytest

from unit.engines.test_checks import about, check
from vlm_operator.engines.vllm.flags import KnownFlags, known_flags
from vlm_operator.engines.vllm.reserved import (
    REFUSED_FLAGS,
    REFUSED_VALUES,
    REQUIRED_FLAGS,
    UNCOUNTED_FLAGS,
    UNCOUNTED_VALUES,
)
from vlm_operator.engines.vllm.versions import KNOWN_VERSIONS

REJECTED = [
    (["--dtype", "BFLOAT16"], "--dtype does not take 'BFLOAT16'; choose from auto, bfloat16"),
    (["--uvicorn-log-level", "WARNING"], "does not take 'WARNING'"),
    (["--runner", "Pooling"], "does not take 'Pooling'"),
    (["--performance-mode", "Balanced"], "does not take 'Balanced'"),
    (["--mm-processor-cache-type", "SHM"], "does not take 'SHM'"),
    (["--prefix-caching-hash-algo", "sha256-cbor"], "does not take 'sha256-cbor'"),
    (["--log-level", "debug"], "does not take 'debug'"),
    (["--max-lora-rank", "7"], "does not take '7'"),
    (["--seed", "None"], "args[1]: --seed takes a whole number, not 'None'"),
    (
        ["--attention-config.sparse_mla_prefill_workspace_factor", "1"],
        "--attention-config.sparse_mla_prefill_workspace_factor must be at least 2, and is '1'",
    ),
    (
        ["--attention-config", '{"tokenspeed_mla_min_split_kv": 64k}'],
        "--attention-config.tokenspeed_mla_min_split_kv must be at most 256, and is '64000'",
    ),
    (["--seed", ""], "--seed takes a whole number, not ''"),
    (["--compilation-config", "None"], "takes JSON, and 'None' is none"),
    (["--override-generation-config", "None"], "takes JSON, and 'None' is none"),
    (["--compilation-config", "3"], "--compilation-config takes a JSON object, not '3'"),
    (["--compilation-config", "null"], "takes a JSON object, not 'null'"),
    (["--compilation-config", "[1]"], "takes a JSON object, not '[1]'"),
    (["--kv-transfer-config", "[]"], "takes a JSON object, not '[]'"),
    (["--kv-transfer-config", '"x"'], "takes a JSON object, not '\"x\"'"),
    (["--hf-overrides", "{a: 1}"], "takes JSON, and '{a: 1}' is none"),
    (
        ["--max-num-queued-tokens", "abc"],
        "args[1]: --max-num-queued-tokens takes a whole number, not 'abc'; write it in digits, or as a size such as 4k (4000)",
    ),
    (["--max-num-queued-tokens", "4 k"], "takes a whole number, not '4 k'"),
    (["--max-num-queued-tokens=1.5"], "takes a whole number, not '1.5'"),
    (["--max-num-queued-tokens=1.5K"], "takes a whole number, not '1.5K'"),
    (["--max-num-queued-tokens", "4kb"], "takes a whole number, not '4kb'"),
    (["--max-num-queued-tokens", "9" * 400 + "k"], "takes a whole number"),
    (["--safetensors-prefetch-block-size", "None"], "takes a whole number, not 'None'"),
    (["--max-num-queued-reqs", "4k"], "--max-num-queued-reqs takes a whole number, not '4k'; write it in digits"),
    (["--cudagraph-capture-sizes", "1", "two"], "args[2]: --cudagraph-capture-sizes takes a whole number, not 'two'"),
    (["--lora-modules", "adapter"], "takes name=path or a JSON object with name and path, not 'adapter'"),
    (["--lora-modules", "a=/a", "b=/b,c"], "args[2]: --lora-modules takes name=path or a JSON object"),
    (["--lora-modules", '{"name": "a"}'], "takes name=path or a JSON object"),
    (["--lora-modules", '{"name": "a", "path": "/a", "rank": 8}'], "--lora-modules has no key 'rank'"),
    (["--hf-overrides", '{"a": 80m}'], "takes JSON, and '{\"a\": 80m}' is none"),
    (["--override-generation-config", '{"max_new_tokens": 4k}'], "takes JSON"),
    (["--ec-transfer-config", '{"ec_buffer_size": 1.5K}'], "takes JSON"),
    (["--ec-transfer-config", '{"ec_buffer_size": 80mb}'], "takes JSON"),
    (["--ec-transfer-config", '{"ec_port": "two"}'], "--ec-transfer-config.ec_port takes a whole number, not 'two'"),
    (["--ec-transfer-config.ec_port", "two"], "ec_port takes a whole number, not 'two'"),
    (["--ec-transfer-config.ec_port", "1.5"], "ec_port takes a whole number, not '1.5'"),
    (["--ec-transfer-config.ec_port", "[1]"], "ec_port takes a whole number, not '[1]'"),
    (["--ec-transfer-config.ec_buffer_size", "80gb"], "ec_buffer_size takes a number, not '80gb'"),
    (["--eplb-config.use_async", "maybe"], "use_async takes true or false, not 'maybe'"),
    (["--eplb-config.use_async", "2"], "use_async takes true or false, not '2'"),
    (["--seed.x", "1"], "args[0]: --seed.x is no argument: --seed takes no object; use --seed"),
    (["--seed.", "1"], "--seed. is no argument"),
    (["--enforce-eager.x", "1"], "--enforce-eager.x is no argument"),
    (["--tokenizer.x=1"], "--tokenizer.x is no argument"),
    (["-cc.", "1"], "-cc has no key ''"),
    (
        ["--compilation-config", '{"pass_config": {"fuse_norm": true}}'],
        "--compilation-config.pass_config has no key 'fuse_norm'; did you mean fuse_norm_quant?",
    ),
    (["-cc.pass_config.zzz", "true"], "-cc.pass_config has no key 'zzz'"),
    (["--kv-transfer-config.kv_role", "kv_all"], "--kv-transfer-config.kv_role does not take 'kv_all'; choose from"),
    (["--structured-outputs-config", '{"backend": "XGrammar"}'], "backend does not take 'XGrammar'"),
    (["--hf-overrides", '{"a": 1'], "--hf-overrides takes JSON, and '{\"a\": 1' is none"),
    (["--media-io-kwargs", "[1]"], "--media-io-kwargs takes a JSON object, not '[1]'; write it as {\"audio\": ...}"),
    (["-O9"], "--optimization-level does not take '9'; choose from 0, 1, 2, 3"),
    (["-O", "x"], "--optimization-level does not take 'x'"),
    (["--optimization-level", "9"], "--optimization-level does not take '9'"),
    (["-cc", '{"cudagraph_mode": "FULL_AND"}'], "-cc.cudagraph_mode does not take 'FULL_AND'; choose from NONE, PIEC"),
    (["-cc.mode", "x"], "-cc.mode does not take 'x'"),
    (["--attention-config.backend", "FLASH_ATN"], "backend does not take 'FLASH_ATN'; did you mean FLASH_ATTN?"),
    (["--enable-auto-tool-choice"], "args[0]: --enable-auto-tool-choice needs --tool-call-parser"),
    (["--enable-log-outputs"], "add --enable-log-requests"),
    (["--enable-log-outputs", "--enable-log-requests", "--no-enable-log-requests"], "add --enable-log-requests"),
]


@pytest.mark.parametrize(("args", "words"), REJECTED, ids=[" ".join(row[0]) for row in REJECTED])
def test_what_the_parser_rejects_is_an_error(args: list[str], words: str) -> None:
    errors = [finding for finding in check(engine={"args": args}) if finding.reason == "InvalidArgument"]
    (error,) = errors
    assert error.severity == "Error"
    assert words in error.sentence()


def test_a_value_that_begins_with_a_dash_is_attached() -> None:
    told = [finding.advice for finding in check(engine={"args": ["--root-path", "-x"]})]
    assert "write --root-path=-x if that is its value" in told
    told = [finding.advice for finding in check(engine={"args": ["--root-path", "--enforce-eager"]})]
    assert told == ["add it as the next item"]


TAKEN = [
    ["--lora-modules", "a=/a", '{"name": "b", "path": "/b"}', ""],
    ["--lora-modules.name", "a", "--lora-modules.path", "/a"],
    ["--safetensors-load-strategy", "None"],
    ["--max-num-queued-tokens", "4k"],
    ["--max-num-queued-tokens", " 4K "],
    ["--max-num-queued-tokens=2.5m"],
    ["--max-num-queued-tokens", "None"],
    ["--safetensors-prefetch-block-size", "16M"],
    ["--cudagraph-capture-sizes", "1", "2"],
    ["--kv-transfer-config", '{"kv_connector_extra_config": {"cpu_bytes_to_use": 80m}}'],
    ["--ec-transfer-config", '{"ec_buffer_size": 1.5g, "engine_id": "is 80m long"}'],
    ["--ec-transfer-config.ec_buffer_size", "80g"],
    ["--ec-transfer-config.ec_buffer_size", "1e9"],
    ["--ec-transfer-config.ec_port", '"2"'],
    ["--ec-transfer-config", '{"ec_port": null}'],
    ["--eplb-config.use_async", "on"],
    ["--eplb-config", '{"use_async": 1}'],
    ["--linear-backend", "Flashinfer-Cutlass"],
    ["--max-lora-rank", "064"],
    ["--media-io-kwargs", "null"],
    ["--optimization-level", "03"],
    ["-O3"],
    ["-O=3"],
    ["-O", "3"],
    ["-cc.mode", "vllm_compile"],
    ["-cc.mode", "3"],
    ["--attention-config.backend", "auto"],
    ["--hf-overrides", "5"],
    ["--hf-overrides", "None"],
    ["--hf-overrides.anything", "1"],
    ["--additional-config.a.b", "1"],
    ["--kv-transfer-config", "None"],
    ["--max-log-len", ""],
    ["--kv-transfer-config.kv_role", "kv_both"],
    ["--kv-transfer-config.kv_role", '"kv_both"'],
    ["-cc.pass_config.fuse_norm_quant", "true"],
    ["-cc.cudagraph_mode", "full"],
    ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"],
    ["--no-enable-auto-tool-choice"],
    ["--no-tokens-only"],
    ["--no-mm-encoder-only"],
    ["--distributed-executor-backend", "mp"],
    ["--runner", "generate"],
    ["--decode-context-parallel-size", "1"],
    ["--dtype", "bfloat16"],
    ["--api-server-count", "1"],
    ["--cpu-offload-gb=0"],
    ["--hf-overrides", '{"rope_parameters": {"rope_type": "yarn"}}'],
]


@pytest.mark.parametrize("args", TAKEN, ids=" ".join)
def test_what_the_parser_takes_is_left_alone(args: list[str]) -> None:
    assert about(*args) == []


def test_the_oldest_version_takes_no_sizes_in_json() -> None:
    for args in (["--kv-transfer-config", '{"kv_buffer_size": 1g}'], ["--kv-transfer-config.kv_buffer_size", "1g"]):
        errors = [one for one in check(engine={"args": args, "version": "0.10.2"}) if one.severity == "Error"]
        assert [one.reason for one in errors] == ["InvalidArgument"]
        assert "1g" in errors[0].message


def test_a_choice_of_an_old_version_is_compared_exactly() -> None:
    assert any(
        "--task does not take 'Generate'" in sentence for sentence in about("--task", "Generate", version="0.10.2")
    )


@pytest.mark.parametrize("version", KNOWN_VERSIONS)
def test_few_options_fold_their_values(version: str) -> None:
    folding = {flag.name for flag in flags(version).spellings.values() if flag.folds}
    assert folding <= {"--linear-backend", "--moe-backend", "--sparse-indexer-topk-backend"}


@pytest.mark.parametrize("version", KNOWN_VERSIONS)
def test_the_parser_says_what_stands_for_no_value_and_what_must_be_an_object(version: str) -> None:
    known = flags(version).spellings
    assert not known["--seed"].object
    assert known["--compilation-config"].object
    assert known["--num-gpu-blocks-override"].none
    assert not known["--media-io-kwargs"].object


def flags(version: str) -> KnownFlags:
    known = known_flags(version)
    assert known is not None
    return known


REFUSED = [
    (["--kv-cache-memory-bytes", "4G"], "sets what spec.gpu.memoryUtilization sets"),
    (["--num-gpu-blocks-override", "9"], "sets what spec.gpu.memoryUtilization sets"),
    (["--mm-processor-kwargs", "{}"], "sets what spec.multimodal.minPixels and spec.multimodal.maxPixels set;"),
    (["--prefill-context-parallel-size", "2"], "multiplies the GPUs"),
    (["-pcp", "2"], "multiplies the GPUs"),
    (
        ["--distributed-executor-backend", "ray"],
        "--distributed-executor-backend ray cannot be used: a replica is one pod",
    ),
    (["--distributed-executor-backend=external_launcher"], "a replica is one pod"),
    (["--data-parallel-backend", "ray"], "a replica is one pod"),
    (["--runner", "pooling"], "--runner pooling cannot be used: such an engine does not answer chat requests"),
    (["--convert", "embed"], "does not answer chat requests"),
    (["--mm-encoder-only"], "does not answer chat requests"),
    (["--tokens-only"], "does not answer chat requests"),
    (["--master-addr", "10.0.0.1"], "a replica is one pod"),
    (["--node-rank", "1"], "a replica is one pod"),
    (["--enable-elastic-ep"], "a replica is one pod"),
]


@pytest.mark.parametrize(("args", "words"), REFUSED, ids=[" ".join(row[0]) for row in REFUSED])
def test_what_fights_a_field_or_makes_a_replica_useless_is_refused(args: list[str], words: str) -> None:
    (finding,) = check(engine={"args": args})
    assert (finding.severity, finding.field) == ("Error", "spec.engine.args[0]")
    assert words in finding.sentence()


UNCOUNTED = [
    ["--dtype", "float32"],
    ["--dtype=float"],
    ["--cpu-offload-gb", "4"],
    ["--api-server-count", "2"],
    ["-asc", "2"],
    ["--quantization-config", "{}"],
    ["--enable-lora"],
    ["--speculative-config.method", "ngram"],
    ["--hf-overrides", '{"text_config": {"num_hidden_layers": 2}}'],
    ["--hf-overrides.hidden_size", "64"],
    ["--hf-overrides.text_config.head_dim", "64"],
]


@pytest.mark.parametrize("args", UNCOUNTED, ids=" ".join)
def test_memory_that_the_sizing_does_not_count_is_a_warning(args: list[str]) -> None:
    (finding,) = check(engine={"args": args})
    assert (finding.severity, finding.reason) == ("Warning", "UncountedArgument")
    assert finding.message.startswith("the sizing does not count ")


def test_the_rules_are_about_flags_and_values_that_exist() -> None:
    spellings = {name: flag for version in KNOWN_VERSIONS for name, flag in flags(version).spellings.items()}
    for flag in REFUSED_VALUES.keys() | UNCOUNTED_FLAGS.keys() | UNCOUNTED_VALUES.keys():
        assert spellings[flag].name == flag
    for flag, needed in REQUIRED_FLAGS.items():
        assert {spellings[flag].name, spellings[needed].name} == {flag, needed}
    for rules in (REFUSED_VALUES, UNCOUNTED_VALUES):
        for flag, values in rules.items():
            choices = spellings[flag].choices
            assert not choices or set(values) <= set(choices), flag
    assert not REFUSED_VALUES.keys() & REFUSED_FLAGS.keys()


SECRETS = [
    ["--kv-transfer-config.kv_connector_extra_config.api_key", "s3cret"],
    ["--model-loader-extra-config.aws_secret_access_key", "s3cret"],
    ["--model-loader-extra-config.aws_secret_access_key=s3cret"],
    ["--hf-overrides.hub_token", "s3cret"],
    ["--hf-overrides.a.token", "s3cret"],
    ["--additional-config", "Bearer s3cret"],
    ["--additional-config.header", "bearer s3cret"],
    ["--additional-config", '{"authorization": "s3cret"}'],
    ["--additional-config", '{"Proxy-Authorization": "s3cret"}'],
    ["--kv-transfer-config", '{"api_key": "s3cret"'],
    ["--kv-transfer-config", "{'api_key': 's3cret'}"],
    ["--seed", "Bearer s3cret"],
    ["--compilation-config.api_key", "s3cret"],
]


@pytest.mark.parametrize("args", SECRETS, ids=" ".join)
def test_a_secret_is_found_by_the_name_that_it_stands_under(args: list[str]) -> None:
    found = check(engine={"args": args})
    assert "ApiKeyInClear" in {finding.reason for finding in found if finding.severity == "Error"}
    assert "s3cret" not in "".join(finding.sentence() for finding in found)


@pytest.mark.parametrize(
    "args",
    [
        ["--api-keey", "s3cret"],
        ["--api-keey=s3cret"],
        ["--api-keey", "s3cret", "s3cret"],
        ["--hf-tokn", "s3cret"],
        ["--hf-tokn=s3cret", "s3cret"],
        ["--my-password", "a", "s3cret"],
        ["--hf-token", "a", "s3cret"],
        ["--api-key=a", "s3cret"],
    ],
    ids=" ".join,
)
def test_what_was_meant_as_a_secret_is_never_repeated(args: list[str]) -> None:
    found = check(engine={"args": args})
    assert found
    assert "s3cret" not in "".join(finding.sentence() for finding in found)


@pytest.mark.parametrize("flag", ["--hf-tokn", "--api-keey"])
def test_nobody_is_led_to_a_flag_that_is_refused_then(flag: str) -> None:
    (sentence,) = about(flag, "x")
    assert "did you mean" not in sentence
    assert "valueFrom.secretKeyRef" in sentence


@pytest.mark.parametrize(
    ("args", "indices"),
    [
        (["--port=99", "positional"], [0, 1]),
        (["--port", "99", "positional"], [0, 2]),
        (["--bogus=1", "positional"], [0, 1]),
        (["--bogus", "1", "positional"], [0, 2]),
        (["--ssl-keyfile=/x", "positional"], [0, 1]),
        (["--tokens-only", "positional"], [0, 1]),
        (["--runner", "pooling", "positional"], [0, 2]),
        (["--served-model-name", "a", "b"], [0]),
        (["--logits_processor", "a", "b"], [0]),
        (["--cuda-graph-sizes", "1", "2"], [0]),
        (["--seed.x", "1", "positional"], [0, 2]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_words_after_what_cannot_be_used_are_named_at_once(args: list[str], indices: list[int]) -> None:
    assert [finding.field for finding in check(engine={"args": args})] == [f"spec.engine.args[{i}]" for i in indices]


@pytest.mark.parametrize("args", [["--tokenizer", "a\0b"], ["--a\0b"], ["\0"], ["-cc.\0", "1"]], ids=repr)
def test_no_argument_holds_what_no_process_can_get(args: list[str]) -> None:
    found = check(engine={"args": args})
    assert any("holds a NUL character" in finding.message and finding.severity == "Error" for finding in found)
    assert "\0" not in "".join(finding.sentence() for finding in found)


def test_no_variable_holds_what_no_process_can_get() -> None:
    (finding,) = check(engine={"env": [{"name": "A", "value": "a\0b"}]})
    assert (finding.severity, finding.field) == ("Error", "spec.engine.env[0]")
    assert "NUL character" in finding.message
