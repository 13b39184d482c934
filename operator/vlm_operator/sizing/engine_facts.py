"""What the sizing must know about the engine that is to run a model. Engines stand above the sizing, and pass it in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Version = tuple[int, ...]
"""A version of an engine as numbers, `(0, 33, 0)`."""

Setting = Literal["Eager", "WholeExperts", "WholeImages", "LongerContext", "OtherSum"]
"""What a user's own arguments and variables can change of what is counted here: no CUDA graphs are recorded; GPUs hold whole
experts; images are not divided among steps; a context longer than the model's is allowed; the sum is another one."""


@dataclass(frozen=True, kw_only=True)
class Readings:
    """The releases of an engine from which the catalogue has its facts; what lies between them is not certain."""

    legacy: Version
    """The last release with some older classes of models."""
    newest: Version
    """What it has is taken to be in later ones too."""


@dataclass(frozen=True, kw_only=True)
class EngineFacts:
    """An engine in the version that is to run, with the settings that the user gives it. What is not known is left out."""

    name: str
    """What messages call it (`vLLM`)."""
    version: str
    """As it is written (`0.33`)."""
    memory_as: Version
    """The release of vLLM by whose arithmetic its memory is estimated: there is no other arithmetic yet."""
    supported: tuple[str, ...]
    """The versions that the operator knows to run, oldest first."""
    readings: Readings | None = None
    """None: the catalogue says nothing about this engine, so that nothing about versions and formats is checked."""
    whole_images: frozenset[str] = frozenset()
    """Classes of models whose images this version never divides among steps."""
    encoder_data: frozenset[str] | None = None
    """Classes of the catalogue's models whose vision tower every GPU can keep whole. None: taken to be all."""
    settings: Mapping[Setting, str] = field(default_factory=dict)
    """What the user's own settings change, with the argument or the variable that does."""
