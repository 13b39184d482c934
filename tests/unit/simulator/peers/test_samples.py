"""What peers remember."""

from unit.simulator.peers.views import seen
from vlm_operator.simulator.peers.samples import PromptLengths, Samples


def test_a_window_reaches_back_to_just_before_its_length() -> None:
    samples = Samples(60.0)
    for now, value in ((0.0, 1.0), (30.0, 2.0), (60.0, 3.0)):
        samples.add(now, value)
    assert samples.within(60.0, 60.0) == [2.0, 3.0]
    assert samples.within(60.0, 30.0) == [3.0]
    assert samples.mean(60.0, 60.0) == 2.5
    assert samples.mean(200.0, 60.0) == 0.0


def test_prompts_are_measured_by_what_was_done_in_the_last_five_minutes() -> None:
    prompts = PromptLengths(100.0)
    prompts.see(0.0, [seen()])
    assert prompts.mean == 100.0
    prompts.see(15.0, [seen(prompt_tokens=8000.0, first_tokens=10)])
    assert prompts.mean == 800.0
    # A second replica counts from its start, and the first one goes.
    prompts.see(30.0, [seen(1, prompt_tokens=2000.0, first_tokens=10)])
    assert prompts.mean == 500.0
    # Nothing done for so long: as it was last known, until something is done again.
    prompts.see(400.0, [seen(1, prompt_tokens=2000.0, first_tokens=10)])
    assert prompts.mean == 500.0
    prompts.see(415.0, [seen(1, prompt_tokens=2300.0, first_tokens=11)])
    assert prompts.mean == 300.0
