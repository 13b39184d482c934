"""How the engine runs: version, image, limits, arguments, environment."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from vlm_operator.api import patterns
from vlm_operator.api.base import ApiModel, Rule, no_items
from vlm_operator.api.lists import MAP_BY_NAME
from vlm_operator.api.references import ConfigMapKeyRef, ImageReference, SecretKeyRef
from vlm_operator.api.scalars import Tokens, duration, matching


class EnvVarSource(ApiModel):
    """Where the value of an environment variable comes from."""

    secret_key_ref: SecretKeyRef | None = None
    """A key of a Secret."""
    config_map_key_ref: ConfigMapKeyRef | None = None
    """A key of a ConfigMap."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.secretKeyRef) != has(self.configMapKeyRef)",
            message="valueFrom needs exactly one of secretKeyRef and configMapKeyRef",
            holds=lambda source: (source.secret_key_ref is None) != (source.config_map_key_ref is None),
        ),
    )


class EnvVar(ApiModel):
    """One environment variable of the engine."""

    name: Annotated[str, matching(patterns.ENV_NAME, max_length=128)]
    """Name of the variable."""
    value: Annotated[str, StringConstraints(max_length=4096)] | None = None
    """Its value, taken literally: `$(NAME)` is not replaced."""
    value_from: EnvVarSource | None = None
    """Where its value comes from."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.value) != has(self.valueFrom)",
            message="an environment variable needs exactly one of value and valueFrom",
            holds=lambda variable: (variable.value is None) != (variable.value_from is None),
        ),
    )


class Engine(ApiModel):
    """The inference engine of a replica."""

    type: Literal["vLLM"] = "vLLM"
    """Kind of engine. Default: vLLM."""
    version: Annotated[str, matching(patterns.ENGINE_VERSION, max_length=14)] | None = None
    """Version of the engine (`0.33`), which decides how arguments are spelled. Default: the newest that the operator
    knows; a running revision keeps the one that it started with."""
    image: ImageReference | None = None
    """Image of the engine. Default: the published one of the version."""
    startup_timeout: duration("10s", "24h") = "30m"  # type: ignore[valid-type] # the function returns a type
    """How long a replica may take from start to its first verified answer. Default: 30m."""
    verification: Literal["Request", "Health"] = "Request"
    """What a replica must do before it serves: answer a request with an image (Request), or report itself healthy
    (Health). Default: Request."""
    max_num_seqs: Annotated[int, Field(ge=1, le=65536)] | None = None
    """Most requests that run at once in a replica. Default: the engine's choice for the GPU."""
    max_num_batched_tokens: Tokens | None = None
    """Most tokens in one step of the engine. Default: the engine's choice for the GPU."""
    args: Annotated[
        list[Annotated[str, StringConstraints(max_length=4096)]],
        Field(max_length=128),
    ] = Field(default_factory=no_items)
    """Further arguments of the engine, one list item each, taken literally. They cannot repeat what a field of this
    resource sets."""
    env: Annotated[list[EnvVar], Field(max_length=64), MAP_BY_NAME] = Field(default_factory=no_items)
    """Further environment variables of the engine. Keep API keys here, as valueFrom.secretKeyRef."""
