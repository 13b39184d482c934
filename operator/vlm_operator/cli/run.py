"""Starts the operator from the command line: settings, logs, exit codes."""

import argparse
import asyncio
import gc
import logging
import re
import sys

import kopf
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from vlm_operator.runtime.admin import read_catalogue, use_templates
from vlm_operator.runtime.connection import StartError
from vlm_operator.runtime.kube import KubeError
from vlm_operator.runtime.kubeconfig_fields import shown
from vlm_operator.runtime.lease import LeaseLostError
from vlm_operator.runtime.operator import run
from vlm_operator.runtime.settings import Settings

NOISY = ("kopf", "kubernetes", "aiohttp", "asyncio")
FAILED, BAD_USAGE = 1, 2
SINGULAR = {"namespaces": "namespace", "catalogues": "catalogue"}
"""Options that may be repeated, by the settings in which they are collected."""
TOLD = {
    "string_pattern_mismatch": "must be a name: up to 63 lower-case letters, digits and -",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "finite_number": "must be a number",
}
"""In better words than pydantic's."""
_TRIED_BEFORE = re.compile(r"Request attempt #(?!1\b)\d+")


class Brief(logging.Filter):
    """Leaves of what kopf says one line for each trouble.

    It tells what ended a watch with tracebacks through itself, and each try of a request while the API server is away.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten a record; returns whether it is worth telling."""
        if not record.name.startswith("kopf"):
            return True
        record.exc_info = record.exc_text = None
        return not _TRIED_BEFORE.match(record.getMessage())


def run_operator(options: argparse.Namespace) -> int:
    """Run until a signal; returns the exit code."""
    try:
        settings = Settings(**{name: value for name, value in vars(options).items() if name in Settings.model_fields})
    except ValidationError as error:
        for details in error.errors():
            sys.stderr.write(f"vlm-operator: {_complaint(details)}\n")
        return BAD_USAGE
    _configure_logs(settings)
    try:
        catalogue = read_catalogue(settings.catalogues)
        use_templates(settings.templates)
        _collect_seldom()
        asyncio.run(run(settings, catalogue))
    except (StartError, KubeError, LeaseLostError) as error:
        for sentence in str(error).splitlines():
            sys.stderr.write(f"vlm-operator: {sentence}\n")
        return FAILED
    return 0


def _collect_seldom() -> None:
    """Look for garbage in cycles less often.

    Thousands of objects of the API server are decoded and kept, none of which has a cycle; with Python's thresholds the search
    takes longer than the decoding, and stops everything else meanwhile.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _complaint(details: ErrorDetails) -> str:
    setting = str(details["loc"][0])
    option = SINGULAR.get(setting, setting).replace("_", "-")
    told = TOLD.get(details["type"]) or details["msg"].replace("Input should", "must")
    given = shown(details["input"]) if details["input"] else ""
    return " ".join(f"--{option} {given} {told}".split())


def _configure_logs(settings: Settings) -> None:
    kopf.configure(log_format=kopf.LogFormat.JSON if settings.log_format == "json" else kopf.LogFormat.PLAIN)
    logging.getLogger().setLevel(settings.log_level.upper())
    if settings.log_level != "debug":
        for handler in logging.getLogger().handlers:
            handler.addFilter(Brief())
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.DEBUG if settings.log_level == "debug" else logging.WARNING)
