"""The options of `kubectl vlm simulate`, and whether what it needs is installed; so light that `--help` stays quick."""

import argparse
import importlib.util
import re
from collections.abc import Callable
from math import nan
from pathlib import Path

from vlm_operator.runtime.files import UnusableInputError
from vlm_operator.simulator.policies import POLICIES
from vlm_operator.simulator.routing import Routing

FORMATS = ("csv", "azure", "mooncake", "servegen")
LARGEST_SEED = 2**32 - 1
LONGEST_SECONDS = 86_400.0
"""A day: of whatever is given in seconds, more is a mistake, and far from where float32 ends."""
SHORTEST_SCRAPE = 0.1
"""Seconds; with less a replay would hardly do anything but read."""
_LIBRARIES = ("numpy", "numba")
_PLOT_LIBRARIES = (*_LIBRARIES, "matplotlib")


def add_to(command: argparse.ArgumentParser) -> None:
    """Add the options to a command."""
    add = command.add_argument
    add(
        "--trace",
        required=True,
        metavar="FILE",
        help="the requests: a file, packed with gzip or not, or a folder; - for standard input",
    )
    add("--format", required=True, choices=FORMATS, help="how the trace is written")
    add(
        "-f",
        "--filename",
        help="file with the VLMDeployment whose scaling, warm pool and drain are used; - for standard input",
    )
    add(
        "--policy",
        metavar="NAME",
        help=f"what decides the size: {', '.join(POLICIES)}; NAME:VALUE sets another main target of those from hpa on, as in "
        "hpa:5; that of spec.scaling.policy if not given, or work-based",
    )
    add(
        "--routing",
        choices=[routing.value for routing in Routing],
        default=Routing.RANDOM.value,
        help="which replica gets a request; random if not given",
    )
    seconds = _seconds_from(0.0)
    add(
        "--cold-start",
        type=seconds,
        default=90.0,
        metavar="SECONDS",
        help="from the creation of a replica until it serves; 90 if not given",
    )
    add(
        "--scrape",
        type=_seconds_from(SHORTEST_SCRAPE),
        default=15.0,
        metavar="SECONDS",
        help="time between two readings of a replica; 15 if not given",
    )
    add(
        "--front-end",
        type=seconds,
        default=0.35,
        metavar="SECONDS",
        help="CPU time of the front end for each image, 0 for none; 0.35 if not given",
    )
    add(
        "--slo",
        type=seconds,
        default=2.0,
        metavar="SECONDS",
        help="longest time in the queue that counts as in time; 2 if not given",
    )
    add("--seed", type=_seed, default=1, metavar="NUMBER", help="of all that is drawn at random; 1 if not given")
    add("-o", "--output", choices=("table", "json"), default="table", help="form of the answer")
    add("--plot", type=_png, metavar="FILE.png", help="draw load, replicas and waits over time into this file")


def require_libraries(*, plot: bool) -> None:
    """Raise UnusableInputError where a library is missing: they come with an extra of the package."""
    missing = [name for name in (_PLOT_LIBRARIES if plot else _LIBRARIES) if importlib.util.find_spec(name) is None]
    if missing:
        raise UnusableInputError(
            f"simulate needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed; "
            "install the extra: pip install 'vlm-operator[simulate]'"
        )


def _seconds_from(least: float) -> Callable[[str], float]:
    """A reader of times that are neither shorter than `least` nor longer than a day."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = nan
        if not least <= value <= LONGEST_SECONDS:
            rule = f"a number of seconds from {least:g} to {LONGEST_SECONDS:g}"
            raise argparse.ArgumentTypeError(f"{text!r} must be {rule}")
        return value

    return read


def _seed(text: str) -> int:
    digits = re.fullmatch(r"0*([0-9]{1,10})", text)
    if digits is None or int(digits[1]) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 0 to {LARGEST_SEED}")
    return int(digits[1])


def _png(text: str) -> Path:
    if not text.lower().endswith(".png"):
        raise argparse.ArgumentTypeError(f"{text!r} must be the name of a file that ends with .png")
    return Path(text)
