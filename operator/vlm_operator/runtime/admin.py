"""What the cluster's admin gives to the operator in mounted ConfigMaps: models and GPUs, and templates. Read once, at start."""

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from vlm_operator.engines.overrides import Override, forgiving
from vlm_operator.engines.rendering import Manifest, install, template_names
from vlm_operator.engines.rendering import Override as Installed
from vlm_operator.runtime import telemetry
from vlm_operator.runtime.connection import StartError
from vlm_operator.runtime.files import UnusableInputError, read_document, read_text
from vlm_operator.runtime.trial import trial
from vlm_operator.sizing.catalogue.loading import Catalogue, builtin, extended

log = logging.getLogger(__name__)

CATALOGUE_SUFFIXES = (".yaml", ".yml", ".json")


def read_catalogue(paths: Sequence[Path]) -> Catalogue:
    """The built-in catalogue with the rows of the admin's files. Raises StartError with a line for all that is wrong."""
    if not paths:
        return builtin()
    wrong: list[str] = []
    documents: dict[str, object] = {}
    for path in _catalogue_files(paths):
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


def _catalogue_files(paths: Iterable[Path]) -> list[Path]:
    files = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        in_folder = _files_of(path, option="--catalogue")
        for file in in_folder:
            if file.suffix not in CATALOGUE_SUFFIXES:
                log.warning("%s is not read: its name must end with %s", file, ", ".join(CATALOGUE_SUFFIXES))
        files += [file for file in in_folder if file.suffix in CATALOGUE_SUFFIXES]
    return files


def use_templates(folder: Path | None) -> None:
    """From now on render with the templates in `folder`, save for those that fail their probes. Raises StartError."""
    overrides: dict[str, Installed] = {}
    telemetry.TEMPLATE_OVERRIDES.clear()
    for file in _files_of(folder, option="--templates") if folder is not None else []:
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


def _files_of(folder: Path, *, option: str) -> list[Path]:
    """The files of a mounted ConfigMap: links through a hidden folder, which is left out."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.is_file())
    except OSError as error:
        why = str(error.strerror).lower()
        raise StartError(f"{folder} cannot be read: {why}; correct {option}") from error
