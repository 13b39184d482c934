"""How a list of words is divided, as argparse does it."""

import pytest

from vlm_operator.engines.vllm.command_line import Given, divide

CASES = [
    ([], []),
    (["word"], [Given(index=0, flag="", values=("word",))]),
    (["--a"], [Given(index=0, flag="--a", values=())]),
    (["--a", "1", "2", "-b"], [Given(index=0, flag="--a", values=("1", "2")), Given(index=3, flag="-b", values=())]),
    (["--a=b=c\nd", "e"], [Given(index=0, flag="--a", values=("b=c\nd", "e"), attached=True)]),
    (["--a="], [Given(index=0, flag="--a", values=("",), attached=True)]),
    (["--a", "-1", "-.5", "-1.5"], [Given(index=0, flag="--a", values=("-1", "-.5", "-1.5"))]),
    (["--a", "-", "--b c", ""], [Given(index=0, flag="--a", values=("-", "--b c", ""))]),
    (["-1x"], [Given(index=0, flag="-1x", values=())]),
]


@pytest.mark.parametrize(("words", "parts"), CASES, ids=lambda value: repr(value)[:40])
def test_words_are_divided(words: list[str], parts: list[Given]) -> None:
    assert divide(words) == parts
