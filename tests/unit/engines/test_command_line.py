"""How a list of words is divided, as argparse does it."""

import pytest

from vlm_operator.engines.vllm.command_line import Given, divide

CASES = [
    ([], []),
    (["word"], [Given(index=0, flag="", values=("word",))]),
    (["--a"], [Given(index=0, flag="--a", values=())]),
    (
        ["--a", "1", "2", "-b"],
        [Given(index=0, flag="--a", values=("1", "2"), following="-b"), Given(index=3, flag="-b", values=())],
    ),
    (["--a=b=c\nd", "e"], [Given(index=0, flag="--a", values=("b=c\nd", "e"), attached=True)]),
    (["--a="], [Given(index=0, flag="--a", values=("",), attached=True)]),
    (["--a", "-1", "-.5", "-1.5"], [Given(index=0, flag="--a", values=("-1", "-.5", "-1.5"))]),
    (["--a", "-", "--b c", ""], [Given(index=0, flag="--a", values=("-", "--b c", ""))]),
    (["-1x"], [Given(index=0, flag="-1x", values=())]),
]


@pytest.mark.parametrize(("words", "parts"), CASES, ids=lambda value: repr(value)[:40])
def test_words_are_divided(words: list[str], parts: list[Given]) -> None:
    assert divide(words) == parts


@pytest.mark.parametrize(
    ("words", "option", "key", "positions"),
    [
        (["--a_b", "1", "2"], "--a-b", "", [1, 2]),
        (["--a_b=1", "2"], "--a-b", "", [0, 1]),
        (["--a_b.c_d.e", "1"], "--a-b", "c_d.e", [1]),
        (["-cc.mode=3"], "-cc", "mode", [0]),
        (["1", "2"], "", "", [0, 1]),
    ],
)
def test_a_flag_is_taken_apart(words: list[str], option: str, key: str, positions: list[int]) -> None:
    (given,) = divide(words)
    assert (given.option, given.key) == (option, key)
    assert [given.position(number) for number in range(len(given.values))] == positions
