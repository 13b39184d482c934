"""Every rule is written twice, in CEL and in Python; each has cases on which the API server is asked too."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from cluster.crd.cases import REFUSED
from vlm_operator.api.base import ApiModel, Rule
from vlm_operator.api.spec import VLMDeploymentSpec


def models_in(annotation: Any) -> Iterator[type[ApiModel]]:
    if isinstance(annotation, type) and issubclass(annotation, ApiModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models_in(field.annotation)
    for part in get_args(annotation):
        yield from models_in(part)


MODELS = sorted(set(models_in(VLMDeploymentSpec)), key=lambda cls: cls.__name__)
RULES = [(cls, rule) for cls in MODELS for rule in cls.rules]


@pytest.mark.parametrize(("cls", "rule"), RULES, ids=[f"{cls.__name__}: {rule.message}" for cls, rule in RULES])
def test_a_rule_has_a_refused_case(cls: type[ApiModel], rule: Rule) -> None:
    assert any(case.message in rule.message for case in REFUSED if case.message), f"no case for a rule of {cls}"


@pytest.mark.parametrize(("cls", "rule"), RULES, ids=[f"{cls.__name__}: {rule.message}" for cls, rule in RULES])
def test_a_rule_blames_a_field_that_exists(cls: type[ApiModel], rule: Rule) -> None:
    found: Any = cls
    for name in (rule.field_path or "").split(".")[1:]:
        fields = {field.alias: field for field in found.model_fields.values()}
        assert name in fields
        found = next(models_in(fields[name].annotation), None)


def test_messages_of_rules_are_short_lines() -> None:
    for _, rule in RULES:
        assert len(rule.message) <= 160
        assert "\n" not in rule.message
        assert not rule.message.endswith(".")


def test_the_first_rule_that_is_broken_is_told() -> None:
    from vlm_operator.api.pod_template import Toleration

    with pytest.raises(ValueError, match="a toleration without a key"):
        Toleration.model_validate({"tolerationSeconds": 1})
