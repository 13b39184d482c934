"""What others wrote becomes one bounded line without secrets."""

import pytest

from unit.replicas.tables import table
from vlm_operator.replicas.wording import MESSAGE_LENGTH, one_line, one_word

SECRETS: list[tuple[str, str, str]] = [
    ("a token of a model hub", "401 for hf_AbCdEfGhIjKlMnOp: wrong", "401 for ***: wrong"),
    ("a key of an API", "key sk-proj-abc123def456 is used", "key *** is used"),
    ("a header", "sent Authorization: Bearer abc.def-ghi", "sent Authorization: Bearer ***"),
    ("keys of a cloud", "AKIAIOSFODNN7EXAMPLE is not valid", "*** is not valid"),
    ("a setting", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG region=eu", "AWS_SECRET_ACCESS_KEY=*** region=eu"),
    ("a password in words", "login with password: hunter2 failed", "login with password: *** failed"),
    (
        "a signed address",
        "GET https://b.example.com/w/a?X-Amz-Signature=00ff&b=1 failed",
        "GET https://b.example.com/w/a?*** failed",
    ),
    ("any query", "no image at http://host/a.png?user=me.", "no image at http://host/a.png?***"),
    ("an address with an account", "s3://me:secret@host/x", "s3://***@host/x"),
    ("an argument", "vllm serve --api-key abcdef --port 1", "vllm serve --api-key *** --port 1"),
    (
        "arguments as the engine shows them",
        "{'model': 'x', 'api_key': ['my-key', 'b'], 'port': 1}",
        "{'model': 'x', 'api_key': ***, 'port': 1}",
    ),
    ("a JSON web token", "bad eyJhbGciOiJI.eyJzdWIiOiIx.sig-nature here", "bad *** here"),
]


@table("text, shown", SECRETS)
def test_secrets_are_not_shown(text: str, shown: str) -> None:
    assert one_line(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "the tokenizer has 151936 tokens",
        "max_num_batched_tokens (2048) is smaller than max_model_len (32768)",
        "see https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more",
        "is it there? no: sk-1",
        "To serve at least one request with the model's max seq len (2000000), (1.91 GiB KV cache is needed)",
    ],
)
def test_what_is_no_secret_is_shown(text: str) -> None:
    assert one_line(text) == text


def test_a_secret_is_taken_out_before_the_line_is_cut() -> None:
    shown = one_line("x" * (MESSAGE_LENGTH - 10) + " hf_" + "a" * 40)
    assert len(shown) <= MESSAGE_LENGTH
    assert "hf_" not in shown


def test_a_reason_is_one_word() -> None:
    assert one_word("seccomp killed") == "SeccompKilled"
    assert one_word("!?") == "Unknown"
