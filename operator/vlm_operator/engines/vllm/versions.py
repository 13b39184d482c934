"""Which version of vLLM runs, and in which image."""

from vlm_operator.api.model import Engine

DEFAULT_VERSION = "0.33"
"""The newest version that this operator knows. A running revision keeps the one that it was created with."""
OLDEST_VERSION = "0.32"
"""The oldest version that takes every argument that this operator spells: between it and 0.33 none was removed."""
_REPOSITORY = "vllm/vllm-openai"


def version_of(engine: Engine) -> str:
    """The version whose arguments are spelled: the given one, else the newest known."""
    return engine.version or DEFAULT_VERSION


def image_of(engine: Engine) -> str:
    """The image to run: the given one, else the published one of the version (`0.33` means its first release)."""
    version = version_of(engine)
    patch = "" if version.count(".") == 2 else ".0"
    return engine.image or f"{_REPOSITORY}:v{version}{patch}"


def is_too_old(version: str) -> bool:
    """Whether a version may lack arguments that this operator spells."""
    return _numbers(minor_version(version)) < _numbers(OLDEST_VERSION)


def minor_version(version: str) -> str:
    """`0.33` of `0.33.1`: arguments change between minor versions only."""
    return ".".join(version.split(".")[:2])


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]
