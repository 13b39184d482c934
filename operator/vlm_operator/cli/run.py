"""Starts the operator from the command line: settings, logs, exit codes."""

import argparse
import asyncio
import logging
import sys

import kopf
from pydantic import ValidationError

from vlm_operator.runtime.connection import StartError
from vlm_operator.runtime.kube import KubeError
from vlm_operator.runtime.operator import run
from vlm_operator.runtime.settings import Settings

NOISY = ("kopf", "kubernetes", "aiohttp", "asyncio")
FAILED_TO_START, BAD_USAGE = 1, 2


def run_operator(options: argparse.Namespace) -> int:
    """Run until a signal; returns the exit code."""
    try:
        settings = Settings(**{name: value for name, value in vars(options).items() if name in Settings.model_fields})
    except ValidationError as error:
        for details in error.errors():
            option = "--" + str(details["loc"][0]).replace("_", "-")
            sys.stderr.write(f"vlm-operator: {option} {details['input']}: {details['msg']}\n")
        return BAD_USAGE
    _configure_logs(settings)
    try:
        asyncio.run(run(settings))
    except (StartError, KubeError) as error:
        sys.stderr.write(f"vlm-operator: {error}\n")
        return FAILED_TO_START
    except OSError as error:
        sys.stderr.write(f"vlm-operator: cannot serve health on port {settings.health_port}: {error.strerror}\n")
        return FAILED_TO_START
    return 0


def _configure_logs(settings: Settings) -> None:
    kopf.configure(log_format=kopf.LogFormat.JSON if settings.log_format == "json" else kopf.LogFormat.PLAIN)
    logging.getLogger().setLevel(settings.log_level.upper())
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.DEBUG if settings.log_level == "debug" else logging.WARNING)
