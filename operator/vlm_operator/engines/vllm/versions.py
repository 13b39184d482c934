"""Which version of vLLM runs, and in which image."""

from vlm_operator.api.model import Engine

DEFAULT_VERSION = "0.33"
"""The newest version that this operator knows. A running revision keeps the one that it was created with."""
_REPOSITORY = "vllm/vllm-openai"


def version_of(engine: Engine) -> str:
    """The version whose arguments are spelled: the given one, else the newest known."""
    return engine.version or DEFAULT_VERSION


def image_of(engine: Engine) -> str:
    """The image to run: the given one, else the published one of the version (`0.33` means its first release)."""
    version = version_of(engine)
    patch = "" if version.count(".") == 2 else ".0"
    return engine.image or f"{_REPOSITORY}:v{version}{patch}"


def minor_version(version: str) -> str:
    """`0.33` of `0.33.1`: arguments change between minor versions only."""
    return ".".join(version.split(".")[:2])
