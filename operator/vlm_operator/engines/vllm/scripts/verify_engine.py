"""Wait for the engine on this pod and ask it one small question with an image. Exit 0 when it answered.

The kubelet runs this as the startup probe, inside the engine's container: standard library of Python 3.9 only. What is
printed appears in the events of the pod. Why an answer was wrong also becomes the termination message of the container,
should the kubelet end it for failing too long; a failure to start is told better by the end of the engine's own log.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import os
import struct
import sys
import time
import zlib
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 16.0
"""Between wrong answers the pauses grow: each leaves lines in the engine's log and would push the cause out of it."""
HEALTH_TIMEOUT_SECONDS = 5.0
SHOWN_CHARACTERS = 300
IMAGE_SIDE = 64
"""In pixels: some image processors refuse images smaller than a few patches."""


class NotReadyError(Exception):
    """The engine is not up, or did not answer: it may yet."""


class WrongAnswerError(Exception):
    """The engine answered, and the answer shows that it cannot serve."""


def main(arguments: list[str]) -> int:
    """Ask until the answer is right or the time is up."""
    options = read_options(arguments)
    deadline = time.monotonic() + options.seconds
    pause = PAUSE_SECONDS
    while True:
        try:
            wait_for_health(options.port, deadline)
            ask(options, deadline)
        except NotReadyError as error:
            reason = str(error)
        except WrongAnswerError as error:
            reason = str(error)
            leave_message(options.termination_log, reason)
        else:
            leave_message(options.termination_log, "")
            say("the engine answered")
            return 0
        if time.monotonic() + pause >= deadline:
            say(reason)
            return 1
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def read_options(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Ask the engine one small question.")
    parser.add_argument("--model", required=True, help="name under which the model is served")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="give up after this long")
    parser.add_argument("--text-only", action="store_true", help="ask without an image")
    parser.add_argument("--termination-log", default="/dev/termination-log")
    return parser.parse_args(arguments)


def wait_for_health(port: int, deadline: float) -> None:
    """Return when /health answers 200. The port opens when the engine has loaded."""
    while True:
        left = deadline - time.monotonic()
        try:
            status, _ = exchange(port, "GET", "/health", timeout=max(0.1, min(HEALTH_TIMEOUT_SECONDS, left)))
            reason = f"the engine is not healthy: /health answered {status}"
        except (OSError, http.client.HTTPException) as error:
            status, reason = 0, f"the engine is not up yet: {error}"
        if status == http.client.OK:
            return
        if time.monotonic() + PAUSE_SECONDS >= deadline:
            raise NotReadyError(reason)
        time.sleep(PAUSE_SECONDS)


def ask(options: argparse.Namespace, deadline: float) -> None:
    """Send the question and judge the answer."""
    key = os.environ.get("VLLM_API_KEY", "")
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    left = max(0.1, deadline - time.monotonic())
    body = json.dumps(question(options.model, with_image=not options.text_only))
    try:
        status, answer = exchange(
            options.port, "POST", "/v1/chat/completions", body=body, headers=headers, timeout=left
        )
    except (OSError, http.client.HTTPException) as error:
        raise NotReadyError(
            f"the engine is healthy but did not answer a request within {left:.0f} s: {error}"
        ) from error
    judge(status, answer, has_key=bool(key))


def question(model: str, *, with_image: bool) -> dict[str, Any]:
    """A chat request that is answered with a few tokens."""
    content: list[dict[str, Any]] = [{"type": "text", "text": "What is this? Answer in one word."}]
    if with_image:
        url = "data:image/png;base64," + base64.b64encode(picture()).decode("ascii")
        content.append({"type": "image_url", "image_url": {"url": url}})
    return {
        "model": model,
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 4,
        "temperature": 0,
    }


def judge(status: int, answer: bytes, *, has_key: bool) -> None:
    """Raise WrongAnswerError, with what was wrong, unless the answer is a completion."""
    text = " ".join(answer.decode("utf-8", "replace").split())[:SHOWN_CHARACTERS]
    if status in {401, 403}:
        hint = (
            "the key in VLLM_API_KEY was refused"
            if has_key
            else "set VLLM_API_KEY in spec.engine.env; a key that is given in another way is not known to this check"
        )
        raise WrongAnswerError(f"the engine wants an API key ({status}): {hint}")
    if status != http.client.OK:
        raise WrongAnswerError(f"the engine failed a small request with {status}: {text}")
    try:
        choice = json.loads(answer)["choices"][0]
        reason = choice["finish_reason"]
        choice["message"]["role"]
    except (ValueError, LookupError, TypeError):
        raise WrongAnswerError(f"the engine answered a small request with something else: {text}") from None
    if reason not in {"stop", "length", "tool_calls"}:
        raise WrongAnswerError(f"the engine broke off a small request ({reason}): {text}")


def exchange(
    port: int, method: str, path: str, *, timeout: float, body: str | None = None, headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    """One request to the engine: status and body of the answer."""
    connection = http.client.HTTPConnection(HOST, port, timeout=timeout)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.read(1_000_000)
    finally:
        connection.close()


def picture() -> bytes:
    """A PNG with a colour gradient."""
    side = IMAGE_SIDE
    rows = b"".join(b"\0" + bytes(v for x in range(side) for v in (4 * x, 4 * y, 128)) for y in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def chunk(kind: bytes, data: bytes) -> bytes:
    """One chunk of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def leave_message(path: str, text: str) -> None:
    """Put the termination message of the container, where there is a file for one."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        say(f"no termination message: {error}")


def say(text: str) -> None:
    """One line for the events of the pod."""
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
