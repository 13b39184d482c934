"""`kubectl vlm plan --config`: what a config.json says of a model, and what that means for a VLMDeployment."""

import contextlib
import re
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from vlm_operator.api import API_VERSION, KIND
from vlm_operator.api.architecture import Architecture
from vlm_operator.api.findings import Finding
from vlm_operator.api.patterns import MODEL_NAME
from vlm_operator.replicas.evaluate import Judgement
from vlm_operator.runtime.files import UnusableInputError
from vlm_operator.sizing.config_format import read_stored_format
from vlm_operator.sizing.config_json import read_config
from vlm_operator.sizing.quantization import QUANTIZATION_MISMATCH

_OF_THE_FORMAT = ("weightBits", "weightGroupSize")
"""Facts about the stored format among the sizes of a model."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a config.json says."""

    architecture: Architecture
    quantization: str
    """How the weights are stored, as spec.model.quantization has it."""
    name: str
    """Name of the model, a stand-in where it does not say."""
    findings: tuple[Finding, ...]

    def as_spec(self) -> dict[str, Any]:
        """The fields of `spec.model` that it gives."""
        sizes = self.architecture.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {"quantization": self.quantization, "architecture": sizes}

    def resource(self) -> dict[str, Any]:
        """The smallest VLMDeployment of the model, for a config.json that comes alone."""
        model = {"name": self.name, "quantization": self.quantization}
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": "model"},
            "spec": {"model": model, "weights": {"persistentVolumeClaim": {"claimName": "models"}}},
        }

    def put_into(self, resource: dict[str, Any]) -> dict[str, Any]:
        """The resource with the sizes of this file, as far as it can hold them."""
        spec = resource.get("spec")
        model = spec.get("model") if isinstance(spec, dict) else None
        if not isinstance(spec, dict) or not isinstance(model, dict):
            return resource
        sizes = self.as_spec()["architecture"]
        if model.get("quantization", "None") != self.quantization:  # bits and groups are of the file's format
            sizes = {name: size for name, size in sizes.items() if name not in _OF_THE_FORMAT}
        return resource | {"spec": spec | {"model": model | {"architecture": sizes}}}

    def findings_beside(self, judged: Judgement) -> tuple[Finding, ...]:
        """What the file says, and where the spec does not agree with it."""
        given = judged.spec.model.quantization if judged.spec else self.quantization
        if given == self.quantization:
            return self.findings
        mismatch = Finding(
            reason=QUANTIZATION_MISMATCH,
            severity="Warning",
            field="spec.model.quantization",
            message=(
                f"is {given}, but the config.json says that the weights are stored as {self.quantization};"
                f" they are counted as {given}"
            ),
            advice=f"set it to {self.quantization}",
        )
        return (mismatch, *self.findings)


def read_config_file(data: Any, filename: str) -> Config:
    """Read a Hugging Face config.json. Raises UnusableInputError with all that is wrong."""
    architecture, findings = read_config(data)
    if architecture is None:
        told = "; ".join(finding.sentence() for finding in findings)
        raise UnusableInputError(
            f"{'standard input' if filename == '-' else filename} does not describe a model: {told}"
        )
    stored, doubts = read_stored_format(data)
    if stored is not None:
        more = {"weightBits": stored.bits, "weightGroupSize": stored.group_size}
        architecture = _valid(architecture, more)
    given = data.get("_name_or_path") if isinstance(data, dict) else None
    name = given if isinstance(given, str) and re.fullmatch(MODEL_NAME.regex, given) else "model"
    return Config(
        architecture=architecture,
        quantization=stored.format if stored else "None",
        name=name,
        findings=findings + doubts,
    )


def _valid(architecture: Architecture, more: dict[str, int | None]) -> Architecture:
    """The sizes with what else is known, as far as it is possible at all."""
    for name, value in more.items():
        with contextlib.suppress(ValidationError):
            architecture = Architecture.model_validate(architecture.model_dump() | {name: value})
    return architecture
