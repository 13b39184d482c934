"""The facts about vLLM's arguments: how they are generated and how they are read."""

import pytest

from vllm_args.generate import facts_text, option
from vlm_operator.engines.vllm.flags import known_flags, newest_flags

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
]


@pytest.mark.parametrize(("entry", "facts"), ENTRIES, ids=[row[1][0] for row in ENTRIES])
def test_an_option_of_the_parser_becomes_facts(entry: dict[str, object], facts: object) -> None:
    assert option(entry) == facts


def test_the_file_has_a_line_per_option_in_order() -> None:
    dump = {name: {"flags": [f"--{name}"], "nargs": None, "choices": None} for name in ("b", "a")}
    assert facts_text(dump) == '{\n  "--a": {"kind": "value"},\n  "--b": {"kind": "value"}\n}\n'


def test_there_are_facts_about_the_default_version_only() -> None:
    assert newest_flags().version == "0.33"
    assert known_flags("0.32") is None


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
