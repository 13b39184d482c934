"""What the cluster's admin gives to the operator in mounted ConfigMaps: models and GPUs, and templates. Read once, at start."""

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from vlm_operator.engines.overrides import Override, forgiving
from vlm_operator.engines.rendering import Manifest, install, template_names
from vlm_operator.engines.rendering import Override as Installed
from vlm_operator.runtime import telemetry
from vlm_operator.runtime.connection import StartError
from vlm_operator.runtime.files import (
    CATALOGUE_SUFFIXES,
    UnusableInputError,
    catalogue_files,
    files_of,
    read_document,
    read_text,
)
from vlm_operator.runtime.trial import trial
from vlm_operator.sizing.catalogue.loading import Catalogue, builtin, extended

log = logging.getLogger(__name__)


def read_catalogue(paths: Sequence[Path]) -> Catalogue:
    """The built-in catalogue with the rows of the admin's files. Raises StartError with a line for all that is wrong."""
    if not paths:
        return builtin()
    wrong: list[str] = []
    documents: dict[str, object] = {}
    try:
        files, others = catalogue_files(paths)
    except UnusableInputError as error:
        raise StartError(f"{error}; correct --catalogue") from error
    for path in others:
        log.warning("%s is not read: its name must end with %s", path, ", ".join(CATALOGUE_SUFFIXES))
    for path in files:
        try:
            documents[str(path)] = read_document(str(path))
        except UnusableInputError as error:
            wrong.append(f"{error}; correct or remove it")
    catalogue, findings = extended(builtin(), documents)
    for finding in findings:
        if finding.severity == "Error":
            wrong.append(finding.sentence())
        else:
            log.warning("%s", finding.sentence())
    if wrong:
        raise StartError("\n".join(wrong))
    log.info("the catalogue has %d models and %d GPUs", len(catalogue.models), len(catalogue.gpus))
    return catalogue


def use_templates(folder: Path | None) -> None:
    """From now on render with the templates in `folder`, save for those that fail their probes. Raises StartError."""
    overrides: dict[str, Installed] = {}
    telemetry.TEMPLATE_OVERRIDES.clear()
    try:
        files = [] if folder is None else files_of(folder)
    except UnusableInputError as error:
        raise StartError(f"{error}; correct --templates") from error
    for file in files:
        template = _by_file_name().get(file.name)
        override = _override_in(file, template)
        if template is not None and override is not None:
            overrides[template] = forgiving(override, partial(_tell, template))
        for state, holds in (("used", override is not None), ("failed", override is None)):
            telemetry.TEMPLATE_OVERRIDES.labels(template=template or file.name, state=state).set(holds)
    install(overrides)


def _override_in(file: Path, template: str | None) -> Override | None:
    """The override in a file; None, told in the log, when it cannot be used."""
    if template is None:
        log.error("%s overrides no template; its name must be one of: %s", file, ", ".join(_by_file_name()))
        return None
    try:
        source = read_text(str(file))
        complaint = trial(template, source)
        override = None if complaint else Override.compiled(source)
    except UnusableInputError as error:
        complaint, override = str(error), None
    if override is None:
        log.error("the built-in template %s is used, its override %s is not: %s", template, file, complaint)
    else:
        log.info("the template %s is overridden by %s", template, file)
    return override


def _by_file_name() -> dict[str, str]:
    """The templates by the names of the files that override them: the keys of a ConfigMap have no slash."""
    return {template.replace("/", "-"): template for template in template_names()}


def _tell(template: str, built_in: Manifest, complaint: str) -> None:
    pod = built_in["metadata"]
    told = "pod %s/%s is made from the built-in template %s, its override fails: %s"
    log.warning(told, pod["namespace"], pod["name"], template, complaint)
    telemetry.TEMPLATE_FALLBACKS.labels(template=template).inc()
