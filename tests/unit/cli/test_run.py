"""What reaches the log of a running operator."""

import logging
from io import StringIO

import pytest

from vlm_operator.cli.run import Brief

TRIED = "Request attempt #{} failed; will retry: GET https://127.0.0.1/api/v1/pods -> ClientConnectorError()"


def _told(logger: str, message: str, *, error: Exception | None = None) -> str:
    text = StringIO()
    handler = logging.StreamHandler(text)
    handler.addFilter(Brief())
    handler.handle(
        logging.LogRecord(logger, logging.ERROR, "", 0, message, (), (type(error), error, None) if error else None)
    )
    return text.getvalue()


@pytest.mark.parametrize(("attempt", "told"), [(1, True), (2, False), (10, False), (11, False), (16, False)])
def test_of_many_tries_the_first_is_told(attempt: int, told: bool) -> None:
    assert bool(_told("kopf._cogs.clients.api", TRIED.format(attempt))) is told


def test_what_ended_a_watch_is_told_in_a_line() -> None:
    message = "Watcher for pods.v1@none has failed: 404 page not found"
    assert _told("kopf._cogs.aiokits.aiotasks", message, error=ValueError("404 page not found")) == f"{message}\n"


def test_the_operators_own_errors_are_told_with_all_that_helps() -> None:
    assert "ValueError: why" in _told("vlm_operator.runtime.operator", "unexpected error", error=ValueError("why"))
    assert _told("vlm_operator.runtime.operator", TRIED.format(2))
