"""Options of the test run, how Hypothesis works in it, and what tests have to report at its end."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from cluster.support.reports import REPORTS

# Nothing depends on how fast the machine is, and the same code gets the same verdict; `make soak` draws anew each time.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50)
settings.register_profile("repeat", settings.get_profile("explore"), derandomize=True)
settings.load_profile("repeat")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The seed of the tests with faults."""
    parser.addoption("--fault-seed", type=int, default=1, help="chance in the tests with faults (default: %(default)s)")


def pytest_report_header(config: pytest.Config) -> str:
    """Say how to repeat the run."""
    return f"chance: --fault-seed={config.option.fault_seed}"


def pytest_configure(config: pytest.Config) -> None:
    """Nothing to report yet."""
    config.stash[REPORTS] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where several processes share the tests: hand over what those of this one have reported."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["reports"] = session.config.stash[REPORTS]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take it over."""
    node.config.stash[REPORTS] += getattr(node, "workeroutput", {}).get("reports", [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what tests have reported."""
    if config.stash[REPORTS]:
        terminalreporter.section("reports")
        for line in config.stash[REPORTS]:
            terminalreporter.write_line(line)
