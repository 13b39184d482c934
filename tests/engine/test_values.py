"""The operator's checks of values agree with vLLM's own parser. Opt-in: `make test-engine` makes ready what it needs."""

from functools import cache
from itertools import product

import pytest

from engine_check.cases import Case, files_of, judge
from unit.engines.test_arguments import inputs
from vlm_operator.engines.vllm.checks import check
from vlm_operator.engines.vllm.flags import Flag, known_flags
from vlm_operator.engines.vllm.reserved import OWNED_FLAGS, REFUSED_FLAGS, REFUSED_VALUES
from vlm_operator.engines.vllm.versions import KNOWN_VERSIONS, release_of

pytestmark = pytest.mark.timeout(1800)

WORDS = (
    "abc", "1", "-1", "1.5", "4k", "4K", "1.5k", "1.5K", "4kb", " 4k", "", "None", "true", "{}", "[]", "null", "5",
    "1_000", "{a: 1}", '{"a": 80m}', "NaN",
)  # fmt: skip
"""Given to every option that takes a value."""
MEMBERS = ("two", "7", "1.5", "80m", "1.5K", '"7"', "true", "on", "maybe", "[1]", "{}", "NaN")
"""Given to every member of an object that is a number or a truth value."""
NAMES = ("none", "NONE", "auto", "Full", "FLASH_ATTN", "flash-attn", "vllm_compile", "x", "", '"2"')
"""Given to every member of an object that is one of some names in any case."""

Words = tuple[str, ...]


def usable(version: str) -> list[Flag]:
    """The options whose values the operator judges."""
    known = known_flags(version)
    assert known is not None
    ours = OWNED_FLAGS.keys() | REFUSED_FLAGS.keys() | REFUSED_VALUES.keys()
    return [flag for name, flag in known.spellings.items() if flag.name == name and name not in ours]


def is_judged_later(flag: Flag) -> bool:
    """Whether the parser takes what the configuration of the engine then refuses."""
    return flag.name == "--optimization-level" or (flag.type == "json" and bool(flag.keys) and not flag.object)


def questions(version: str) -> list[Words]:
    """Arguments with one value each."""
    flags = [flag for flag in usable(version) if flag.kind != "switch" and not is_judged_later(flag)]
    plain = [(flag.name, word) for flag, word in product(flags, WORDS)]
    numbers = [f"{flag.name}.{name}" for flag in flags for name, member in flag.members.items() if member.type]
    names = [f"{flag.name}.{name}" for flag in flags for name, member in flag.members.items() if member.folds]
    return plain + list(product(numbers, MEMBERS)) + list(product(names, NAMES))


@cache
def verdicts(version: str) -> dict[Words, tuple[bool, bool]]:
    """Whether the operator and whether vLLM's parser refuses each question."""
    asked = questions(version)
    answers = judge(
        [Case(name=" ".join(words), words=["/models", *words]) for words in asked], release=release_of(version)
    )
    theirs = {name: verdict.stage == "parse" for name, verdict in answers.items()}
    return {words: (refused(words, version), theirs[" ".join(words)]) for words in asked}


def refused(words: Words, version: str) -> bool:
    found = check(inputs(engine={"version": version, "args": list(words)}))
    return any(finding.severity == "Error" and finding.reason == "InvalidArgument" for finding in found)


@pytest.mark.parametrize("version", KNOWN_VERSIONS)
def test_what_the_operator_refuses_the_parser_refuses(version: str) -> None:
    assert [words for words, (ours, theirs) in verdicts(version).items() if ours and not theirs] == []


@pytest.mark.parametrize("version", KNOWN_VERSIONS)
def test_what_the_parser_refuses_the_operator_refuses(version: str) -> None:
    assert [words for words, (ours, theirs) in verdicts(version).items() if theirs and not ours] == []


@pytest.mark.parametrize("version", ["0.32", "0.33"])
def test_what_is_refused_beyond_the_parser_the_configuration_refuses(version: str) -> None:
    later = [(flag.name, word) for flag in usable(version) if is_judged_later(flag) for word in WORDS]
    asked = [*later, ("--hf-overrides", '{"a": 1'), ("-O9",), ("-O3",), ("-O=2",), ("-O", "4")]
    files = files_of("Qwen/Qwen2.5-VL-7B-Instruct")
    answers = judge(
        [Case(name=" ".join(words), words=["/models", *words], files=files) for words in asked],
        release=release_of(version),
    )
    assert answers["-O3"].error is None
    ours = [words for words in asked if refused(words, version)]
    assert len(ours) > len(WORDS)
    assert [words for words in ours if answers[" ".join(words)].error is None] == []
