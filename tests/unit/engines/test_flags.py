"""The facts about vLLM's arguments: how they are generated and how they are read."""

import pytest

from vllm_args.generate import facts_text, option
from vlm_operator.engines.vllm.flags import assumed_flags, known_flags, newest_flags, versions_with
from vlm_operator.engines.vllm.versions import KNOWN_VERSIONS

ENTRIES = [
    (
        {"flags": ["--kv-cache-dtype"], "nargs": None, "choices": ["auto", "fp8"]},
        ("--kv-cache-dtype", {"kind": "value", "choices": ["auto", "fp8"]}),
    ),
    (
        {"flags": ["--enable-x", "-x", "--disable-x"], "nargs": 0, "choices": None},
        ("--enable-x", {"kind": "switch", "aliases": ["-x"], "negations": ["--disable-x", "--no-enable-x"]}),
    ),
    (
        {"flags": ["--y", "--no-y"], "nargs": 0, "choices": None},
        ("--y", {"kind": "switch", "negations": ["--no-y"]}),
    ),
    ({"flags": ["--headless"], "nargs": 0, "choices": None}, ("--headless", {"kind": "switch"})),
    ({"flags": ["--z"], "nargs": "+", "choices": None}, ("--z", {"kind": "list"})),
    ({"flags": ["--hf-token"], "nargs": "?", "choices": None}, ("--hf-token", {"kind": "optional"})),
    (
        {"flags": ["--j"], "nargs": None, "choices": None, "type": "json", "keys": ["a", "b"]},
        ("--j", {"kind": "value", "type": "json", "keys": ["a", "b"]}),
    ),
    (
        {
            "flags": ["--k"],
            "nargs": None,
            "choices": ["a"],
            "folds": True,
            "type": None,
            "none": False,
            "object": False,
        },
        ("--k", {"kind": "value", "choices": ["a"], "folds": True}),
    ),
    (
        {"flags": ["--o"], "nargs": None, "type": "json", "object": True, "members": {"a": {"choices": ["b"]}}},
        ("--o", {"kind": "value", "type": "json", "object": True, "members": {"a": {"choices": ["b"]}}}),
    ),
    ({"flags": ["--i"], "nargs": None, "choices": None, "type": None, "keys": []}, ("--i", {"kind": "value"})),
]


@pytest.mark.parametrize(("entry", "facts"), ENTRIES, ids=[row[1][0] for row in ENTRIES])
def test_an_option_of_the_parser_becomes_facts(entry: dict[str, object], facts: object) -> None:
    assert option(entry) == facts


def test_the_file_has_a_line_per_option_in_order() -> None:
    dump = {name: {"flags": [f"--{name}"], "nargs": None, "choices": None} for name in ("b", "a")}
    assert facts_text(dump) == '{\n  "--a": {"kind": "value"},\n  "--b": {"kind": "value"}\n}\n'


@pytest.mark.parametrize("version", KNOWN_VERSIONS)
def test_there_are_facts_about_every_known_version(version: str) -> None:
    known = known_flags(version)
    assert known is not None
    assert known.version == version
    assert {"--model", "--tensor-parallel-size", "--limit-mm-per-prompt", "--help"} <= known.spellings.keys()
    assert known.spellings["--limit-mm-per-prompt"].keys[:3] == ("audio", "image", "video")
    assert "cudagraph_mode" in known.spellings["--compilation-config"].keys


@pytest.mark.parametrize("version", ["0.10", "0.10.1", "0.10.3", "0.29", "0.34", "1.33"])
def test_there_are_none_about_others(version: str) -> None:
    assert known_flags(version) is None


@pytest.mark.parametrize(
    ("version", "assumed"),
    [
        ("0.1", "0.10.2"),
        ("0.10.1", "0.10.2"),
        ("0.29.3", "0.10.2"),
        ("0.33.4", "0.33"),
        ("0.34", "0.33"),
        ("9.9.9", "0.33"),
    ],
)
def test_another_version_is_judged_by_the_nearest_that_is_not_newer(version: str, assumed: str) -> None:
    assert assumed_flags(version).version == assumed


@pytest.mark.parametrize(
    ("spelled", "versions"),
    [
        ("--swap-space", ["0.10.2"]),
        ("--shutdown-timeout", ["0.30", "0.31", "0.32", "0.33"]),
        ("--sleep-mode-backend", ["0.33"]),
        ("--no-such-flag", []),
        ("-tp", list(KNOWN_VERSIONS)),
    ],
)
def test_which_versions_have_a_flag_is_known(spelled: str, versions: list[str]) -> None:
    assert versions_with(spelled) == versions


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("--max-model-len", "--max-model-len"),
        ("--max_model_len", "--max-model-len"),
        ("-tp", "--tensor-parallel-size"),
        ("-O3", "--optimization-level"),
        ("-cc.mode", "--compilation-config"),
        ("--limit-mm-per-prompt.image", "--limit-mm-per-prompt"),
        ("--no-enable-prefix-caching", "--enable-prefix-caching"),
    ],
)
def test_every_spelling_leads_to_its_option(spelled: str, name: str) -> None:
    flag = newest_flags().find(spelled)
    assert flag is not None
    assert flag.name == name


@pytest.mark.parametrize("spelled", ["--max-model", "--Max-Model-Len", "max-model-len", "-x", "-", "", "--"])
def test_other_spellings_are_unknown(spelled: str) -> None:
    assert newest_flags().find(spelled) is None
