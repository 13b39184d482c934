"""What users write reaches the engine's process byte for byte: through YAML, storage, the kubelet and the kernel."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
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
ECHO = "import json, os, sys; json.dump([sys.argv[1:], os.environ['TOLD'], os.environ['PYTHONPATH']], sys.stdout)"
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


@dataclass(frozen=True)
class Started:
    """What a process got."""

    words: list[str]
    told: str
    path: str
    """PYTHONPATH."""


def engine_in(folder: Path, *, told: str, path: str | None) -> Started:
    """Start the container as the kubelet would, with a `vllm` that tells what it got, in an image with a PYTHONPATH."""
    program = folder / "vllm"
    program.write_text(f"#!{sys.executable} -ISXutf8\n{ECHO}\n")
    program.chmod(0o755)
    container = container_of(DIFFICULT, told)
    words, variables = started(container)
    command = [expanded(word, variables) for word in container["command"]]
    image = {"PATH": f"{folder}:/usr/bin:/bin"} | ({} if path is None else {"PYTHONPATH": path})
    environment = image | {"TOLD": variables["TOLD"]}
    done = subprocess.run([*command, *words], check=True, capture_output=True, env=environment, timeout=60)
    return Started(*json.loads(done.stdout))


def test_a_process_gets_the_words_as_they_were_written(tmp_path: Path) -> None:
    told = "{{ a }} $(HOME) $$ '\"\n--x é"
    got = engine_in(tmp_path, told=told, path=None)
    assert got.words[0] == "serve"
    assert got.words[-2] == "--middleware"
    assert got.words[-len(DIFFICULT) - 2 : -2] == DIFFICULT
    assert got.told == told


@pytest.mark.parametrize(("before", "after"), [(None, "/scripts"), ("", "/scripts"), ("/a b:/c", "/a b:/c:/scripts")])
def test_what_an_image_imports_from_elsewhere_it_still_does(before: str | None, after: str, tmp_path: Path) -> None:
    assert engine_in(tmp_path, told="", path=before).path == after


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
