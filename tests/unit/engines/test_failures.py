"""What vLLM's last words mean."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from unit.engines.failure_texts import BRIEF, CORE, HEALTHY, NEAR_MISSES, SERVED, TEXTS, WORKER, NearMiss, Text
from vlm_operator.engines.failures import Rule, first_failure
from vlm_operator.engines.vllm.causes import CAUSES
from vlm_operator.engines.vllm.failures import failure
from vlm_operator.engines.vllm.log import MESSAGE_BYTES, telling_lines
from vlm_operator.engines.vllm.words import RULES

REASONS = [cause.reason for cause in CAUSES]


def whole(text: Text) -> str:
    """What the engine writes, after the noise of its start; of the probe's message there is no more."""
    said = text.frame.format(text.words)
    return said if said.startswith("the engine") else HEALTHY + said


BRIEFLY = [(reason, words) for reason, many in BRIEF.items() for words in many]
LINES = [[line.statement for line in telling_lines(whole(text))[0]] for text in TEXTS] + [
    [words] for _, words in BRIEFLY
]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text.reason}: {text.words[:50]}")
def test_its_last_words_have_a_name(text: Text) -> None:
    found = failure(1, whole(text))
    assert found is not None
    assert found.reason == text.reason
    assert text.words in found.evidence
    assert text.advice in found.advice
    assert found.advice


@pytest.mark.parametrize(("reason", "words"), BRIEFLY)
def test_further_words_have_the_same_names(reason: str, words: str) -> None:
    found = failure(1, f"{HEALTHY}{words}\n")
    assert found is not None
    assert (found.reason, found.evidence) == (reason, words)


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_has_texts_of_several_origins_and_something_that_is_nearly_it(reason: str) -> None:
    assert Counter(text.reason for text in TEXTS)[reason] >= 3
    assert any(miss.reason == reason for miss in NEAR_MISSES)


PHRASES = [(rule, words) for rule in RULES for words in rule.words]


@pytest.mark.parametrize(("rule", "words"), PHRASES, ids=[words[:50] for _, words in PHRASES])
def test_no_words_stand_for_nothing(rule: Rule, words: str) -> None:
    left = replace(rule, words=tuple(other for other in rule.words if other != words))
    others = [left if other is rule else other for other in RULES]
    having = [lines for lines in LINES if any(re.search(words, line) for line in lines)]
    assert any(first_failure(others, lines) != first_failure(RULES, lines) for lines in having)


@pytest.mark.parametrize("miss", NEAR_MISSES, ids=lambda miss: f"{miss.reason}: {miss.text[-50:]}")
def test_what_it_says_besides_is_no_failure(miss: NearMiss) -> None:
    assert failure(1, miss.text) is None
    assert failure(1, HEALTHY + miss.text) is None


@pytest.mark.parametrize("text", ["", HEALTHY, HEALTHY + SERVED, SERVED])
def test_a_healthy_log_tells_nothing(text: str) -> None:
    assert failure(1, text) is None


def test_what_fails_behind_the_front_end_is_told_by_the_log_alone() -> None:
    log = CORE.format("ValueError: No available memory for the cache blocks.")
    message = log[-300:]
    told, found = failure(1, message), failure(1, log)
    assert told is not None
    assert found is not None
    assert (told.reason, told.vague) == ("EngineDied", True)
    assert (found.reason, found.vague) == ("KVCacheTooSmall", False)


def test_an_unknown_failure_is_told_in_the_words_of_the_process_that_had_it_first() -> None:
    found = failure(1, HEALTHY + WORKER.format("KeyError: 'visual.merger.mlp.0.weight'"))
    assert found is not None
    assert (found.reason, found.vague) == ("EngineDied", True)
    assert found.evidence == "KeyError: 'visual.merger.mlp.0.weight'"


def test_a_message_whose_front_was_cut_off_does_not_begin_with_half_a_line() -> None:
    told = "Exception happens: CUDA out of memory', 'prompt': '"
    filler = "(EngineCore pid=8) INFO 11-30 10:00:00 [x.py:1] " + "x" * MESSAGE_BYTES
    assert failure(1, f"{told}\n{filler}") is None
    assert failure(1, told) is not None


def test_what_is_far_into_a_line_comes_first_in_the_evidence() -> None:
    found = failure(1, f"RayTaskError: ray::execute_method() ({'x' * 500}): CUDA out of memory. Tried to allocate")
    assert found is not None
    assert found.evidence == "CUDA out of memory. Tried to allocate"


def test_its_argument_parser_is_known_by_the_exit_code_where_there_are_no_words() -> None:
    found = failure(2, "")
    assert found is not None
    assert (found.reason, found.evidence) == ("BadArgument", "")
    assert failure(1, "") is None
    assert failure(2, HEALTHY) is None
