"""What users write reaches the engine's process byte for byte: through YAML, storage, the kubelet and the kernel."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.engines.test_arguments import inputs
from vlm_operator.engines.base import PodIdentity
from vlm_operator.engines.registry import engine
from vlm_operator.engines.vllm.command_line import literal

DIFFICULT = [
    *('{"image": {"count": 4}}', "{'a': 1}", '"', "'", "`id`", "\\", "\\n", "a\nb", "\n", "\ta ", " ", "", "- a", "--", "-1"),
    *("--x=--y", "{{ 7 * 7 }}", "{% raw %}", "{# a #}", "#", "a: b", "*", "~", "null", "yes", "0x1F", "1e3", "é", "\U0001f600"),
    *("$", "$$", "$$$", "$(HOME)", "$$(HOME)", "$$$(HOME)", "$(", "$()", "$(HOME", "${HOME}", "$HOME", "a$(NAME)b$", "$)("),
    *("$(VLLM_CACHE_ROOT)", "$(UNKNOWN)", "\x7f", "-", "; exit 1", "| cat", "&& true", "%s %d", "\u2028", "\x85", "\ufeff"),
]  # fmt: skip
ECHO = "import json, os, sys; json.dump([sys.argv[1:], os.environ['TOLD']], sys.stdout)"
IDENTITY = PodIdentity(deployment="d", namespace="n", uid="u", revision="0123456789", slot=0, role="serving")


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """What the kubelet makes of a word of a manifest: two dollars are one, and a known `$(NAME)` is its value."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", value, text, flags=re.DOTALL)


def container_of(args: list[str], told: str) -> dict[str, Any]:
    """The engine's container as the API server stores it."""
    resolved = engine("vLLM").resolve(inputs(engine={"args": args, "env": [{"name": "TOLD", "value": told}]}))
    pod = json.loads(json.dumps(engine("vLLM").render_pod(resolved, IDENTITY)))
    container: dict[str, Any] = yaml.safe_load(yaml.safe_dump(pod))["spec"]["containers"][0]
    return container


def started(container: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Arguments and variables as the kubelet hands them to the container's process."""
    variables: dict[str, str] = {}
    for variable in container["env"]:
        variables[variable["name"]] = expanded(variable["value"], variables)
    return [expanded(word, variables) for word in container["args"]], variables


def test_a_process_gets_the_words_as_they_were_written() -> None:
    told = "{{ a }} $(HOME) $$ '\"\n--x é"
    words, variables = started(container_of(DIFFICULT, told))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "utf8", "-c", ECHO, *words],
        check=True,
        capture_output=True,
        env={"TOLD": variables["TOLD"]},
        timeout=60,
    )
    received, environment = json.loads(done.stdout)
    assert received[-len(DIFFICULT) :] == DIFFICULT
    assert environment == told


@settings(max_examples=60)
@given(st.lists(st.text(alphabet="$()HOMEab {}'\"\n-", max_size=12), max_size=6), st.text("$()HOME a", max_size=12))
def test_any_words_survive_the_kubelet(args: list[str], told: str) -> None:
    words, variables = started(container_of(args, told))
    assert words[len(words) - len(args) :] == args
    assert variables["TOLD"] == told


@pytest.mark.parametrize(
    ("text", "manifest"),
    [("a", "a"), ("$(HOME)", "$$(HOME)"), ("$$", "$$$$"), ("a$", "a$$")],
)
def test_a_dollar_is_doubled(text: str, manifest: str) -> None:
    assert literal(text) == manifest


def test_the_kubelet_would_otherwise_replace_references() -> None:
    assert expanded("$(HOME) $(UNKNOWN) $$(HOME) $$", {"HOME": "/cache"}) == "/cache $(UNKNOWN) $(HOME) $"
