"""The verification script against a small server that answers like the engine, well and badly."""

import ast
import base64
import contextlib
import http.server
import json
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from vlm_operator.engines.registry import engine
from vlm_operator.engines.vllm.engine import VERIFICATION_SCRIPT

MODEL = "Qwen/Qwen2.5-VL-7B-Instruct"
GOOD = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "A gradient"}, "finish_reason": "length"}]}
KEY = "key of the test"


@dataclass
class Imitation:
    """An engine that answers as it is told, and remembers what it was asked."""

    status: int = 200
    answer: Any = field(default_factory=lambda: GOOD)
    health: Callable[[], int] = lambda: 200
    key: str | None = None
    answer_seconds: float = 0
    port: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)

    def reply(self, request: dict[str, Any], authorization: str | None) -> tuple[int, bytes]:
        self.asked.append(request)
        if self.key and authorization != f"Bearer {self.key}":
            return 401, b'{"error":"Unauthorized"}'
        threading.Event().wait(self.answer_seconds)
        return self.status, self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()


@contextlib.contextmanager
def serving(imitation: Imitation) -> Iterator[Imitation]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.finish_with(imitation.health() if self.path == "/health" else 404, b"")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.path == "/v1/chat/completions"
            self.finish_with(*imitation.reply(body, self.headers["Authorization"]))

        def finish_with(self, status: int, content: bytes) -> None:
            with contextlib.suppress(OSError):  # the script has given up
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", imitation.port), Handler)
    imitation.port = server.server_port
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield imitation
    finally:
        server.shutdown()
        server.server_close()


@dataclass(frozen=True)
class Run:
    """One run of the script."""

    status: int
    said: str
    termination_message: str


@dataclass(frozen=True)
class Verify:
    """The script as the kubelet would run it."""

    folder: Path

    def __call__(self, port: int, *more: str, seconds: float = 1, key: str | None = None) -> Run:
        script, log = self.folder / VERIFICATION_SCRIPT, self.folder / "termination-log"
        script.write_text(engine("vLLM").scripts()[VERIFICATION_SCRIPT])
        options = [
            "--model",
            MODEL,
            "--port",
            str(port),
            "--seconds",
            str(seconds),
            "--termination-log",
            str(log),
            *more,
        ]
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(script), *options],
            env={"VLLM_API_KEY": key} if key else {},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.stderr == ""
        return Run(done.returncode, done.stdout, log.read_text() if log.exists() else "")


@pytest.fixture
def verify(tmp_path: Path) -> Verify:
    return Verify(tmp_path)


def test_a_good_answer_passes(verify: Verify) -> None:
    with serving(Imitation()) as good:
        assert verify(good.port) == Run(0, "the engine answered\n", "")


def test_the_question_is_small_and_has_a_picture(verify: Verify) -> None:
    with serving(Imitation()) as good:
        verify(good.port)
    (request,) = good.asked
    assert (request["model"], request["temperature"]) == (MODEL, 0)
    assert request["max_tokens"] <= 16
    (message,) = request["messages"]
    text, image = message["content"]
    assert text["type"] == "text"
    assert pixels(image["image_url"]["url"]) == (64, 64, 64 * (1 + 3 * 64))


def pixels(url: str) -> tuple[int, int, int]:
    """Width, height and number of bytes of the picture in a data: URL, whose checksums are verified."""
    content = base64.b64decode(url.removeprefix("data:image/png;base64,"), validate=True)
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    parts, rest = {}, content[8:]
    while rest:
        (length,) = struct.unpack(">I", rest[:4])
        kind, data, checksum = rest[4:8], rest[8 : 8 + length], rest[8 + length : 12 + length]
        assert struct.unpack(">I", checksum)[0] == zlib.crc32(kind + data)
        parts[kind], rest = data, rest[12 + length :]
    width, height = struct.unpack(">II", parts[b"IHDR"][:8])
    return width, height, len(zlib.decompress(parts[b"IDAT"]))


def test_a_model_without_images_is_asked_in_text(verify: Verify) -> None:
    with serving(Imitation()) as good:
        assert verify(good.port, "--text-only").status == 0
    assert [part["type"] for part in good.asked[0]["messages"][0]["content"]] == ["text"]


def test_the_key_is_sent(verify: Verify) -> None:
    with serving(Imitation(key=KEY)) as guarded:
        assert verify(guarded.port, key=KEY).status == 0


BAD_ANSWERS = [
    ("no key", Imitation(key=KEY), "wants an API key (401): set VLLM_API_KEY in spec.engine.env"),
    ("an error of the server", Imitation(status=500, answer=b"<|image_pad|>"), "with 500: <|image_pad|>"),
    ("a refusal", Imitation(status=400, answer={"m": "prompt\ncannot be\u2028empty"}), 'with 400: {"m": "prompt'),
    ("the wrong model", Imitation(status=404, answer={"error": "no such model"}), "with 404:"),
    ("no choice", Imitation(answer={"choices": []}), 'something else: {"choices": []}'),
    ("no JSON", Imitation(answer=b"\xff<html>"), "something else: \ufffd<html>"),
    ("another object", Imitation(answer=[1]), "something else: [1]"),
    (
        "a broken off answer",
        Imitation(answer={"choices": [{**GOOD["choices"][0], "finish_reason": "abort"}]}),
        "(abort)",
    ),
]


@pytest.mark.parametrize(("what", "imitation", "words"), BAD_ANSWERS, ids=[row[0] for row in BAD_ANSWERS])
def test_a_bad_answer_fails_and_is_left_as_termination_message(
    verify: Verify, what: str, imitation: Imitation, words: str
) -> None:
    with serving(imitation):
        run = verify(imitation.port, seconds=0.4)
    assert run.status == 1, what
    assert words in run.termination_message
    assert run.said == run.termination_message + "\n"


def test_a_refused_key_is_told_apart_from_a_missing_one(verify: Verify) -> None:
    with serving(Imitation(key=KEY)) as guarded:
        run = verify(guarded.port, key="another", seconds=0.4)
    assert "the key in VLLM_API_KEY was refused" in run.termination_message
    assert "another" not in run.termination_message


def test_a_long_answer_is_cut(verify: Verify) -> None:
    with serving(Imitation(status=500, answer=b"x" * 5000)) as talkative:
        run = verify(talkative.port, seconds=0.4)
    assert run.termination_message.count("x") == 300


def test_an_engine_that_is_not_up_leaves_the_termination_message_to_its_log(verify: Verify) -> None:
    with serving(Imitation()) as gone:
        port = gone.port
    run = verify(port, seconds=0.4)
    assert (run.status, run.termination_message) == (1, "")
    assert "not up yet" in run.said


def test_an_engine_that_is_not_healthy_is_not_asked(verify: Verify) -> None:
    with serving(Imitation(health=lambda: 503)) as dead:
        run = verify(dead.port, seconds=0.4)
    assert (run.status, run.termination_message, dead.asked) == (1, "", [])
    assert "/health answered 503" in run.said


def test_an_engine_that_hangs_fails_when_the_time_is_up(verify: Verify) -> None:
    began = time.monotonic()
    with serving(Imitation(answer_seconds=3)) as hung:
        run = verify(hung.port, seconds=1)
    assert (run.status, run.termination_message) == (1, "")
    assert "healthy but did not answer" in run.said
    assert time.monotonic() - began >= 1


def test_one_run_waits_until_the_engine_is_up(verify: Verify) -> None:
    answers = iter([503, 503])
    with serving(Imitation(health=lambda: next(answers, 200))) as late:
        assert verify(late.port, seconds=10).status == 0


def test_success_takes_back_an_earlier_message(verify: Verify) -> None:
    with serving(Imitation(status=500, answer=b"warming up")) as fickle:
        assert verify(fickle.port, seconds=0.4).termination_message
        fickle.status, fickle.answer = 200, GOOD
        assert verify(fickle.port) == Run(0, "the engine answered\n", "")


def test_the_script_needs_only_python_3_9_and_its_standard_library() -> None:
    tree = ast.parse(engine("vLLM").scripts()[VERIFICATION_SCRIPT], feature_version=(3, 9))
    imported = {
        name.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names
