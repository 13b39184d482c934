"""Which version of vLLM runs, in which image, and whether its arguments are known."""

from typing import Literal

from vlm_operator.api.engine import Engine

KNOWN_VERSIONS = ("0.10.2", "0.30", "0.31", "0.32", "0.33")
"""The versions whose arguments are known, oldest first: minor versions, and of 0.10 the one patch release that matters, the
last that serves Llama 3.2 Vision."""
DEFAULT_VERSION = KNOWN_VERSIONS[-1]
"""The newest version that this operator knows. A running revision keeps the one that it was created with."""
_REPOSITORY = "vllm/vllm-openai"

Standing = Literal["Known", "Newer", "Unsupported"]
"""Whether the arguments of a version are known, probably those of the newest known one, or cannot be spelled."""


def version_of(engine: Engine) -> str:
    """The version whose arguments are spelled: the given one, else the newest known."""
    return engine.version or DEFAULT_VERSION


def image_of(engine: Engine) -> str:
    """The image to run: the given one, else the published one of the version (`0.33` means its first release)."""
    return engine.image or f"{_REPOSITORY}:v{release_of(version_of(engine))}"


def release_of(version: str) -> str:
    """The release that a version means: `0.33.0` for `0.33`."""
    return version if version.count(".") == 2 else f"{version}.0"


def standing(version: str) -> Standing:
    """What the operator knows about a version."""
    if facts_version(version) in KNOWN_VERSIONS:
        return "Known"
    return "Newer" if _numbers(version)[:2] > _numbers(DEFAULT_VERSION) else "Unsupported"


def facts_version(version: str) -> str:
    """Under which version its arguments are kept: `0.33` for `0.33.1`, because they change between minor versions only."""
    return version if version in KNOWN_VERSIONS else minor_version(version)


def nearest_known(version: str) -> str:
    """The known version whose arguments come nearest: the newest that is not newer, else the oldest."""
    if facts_version(version) in KNOWN_VERSIONS:
        return facts_version(version)
    older = [known for known in KNOWN_VERSIONS if _numbers(known) <= _numbers(version)]
    return older[-1] if older else KNOWN_VERSIONS[0]


def minor_version(version: str) -> str:
    """`0.33` of `0.33.1`."""
    return ".".join(version.split(".")[:2])


def is_newer(version: str, than: str) -> bool:
    """Whether one version comes after another."""
    return _numbers(version) > _numbers(than)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]
