"""What several peers remember of the past: values over time, and how long prompts are."""

from collections import deque
from collections.abc import Iterable

from vlm_operator.simulator.view import Seen


class Samples:
    """Values of one figure in the last seconds. A window reaches from just after `now - seconds` to `now`."""

    def __init__(self, kept_seconds: float) -> None:
        self._kept_seconds = kept_seconds
        self._values: deque[tuple[float, float]] = deque()

    def add(self, now: float, value: float) -> None:
        """Take a value; times never go back."""
        self._values.append((now, value))
        while self._values and self._values[0][0] <= now - self._kept_seconds:
            self._values.popleft()

    def within(self, now: float, seconds: float) -> list[float]:
        """The values of a window, oldest first."""
        return [value for time, value in self._values if time > now - seconds]

    def mean(self, now: float, seconds: float) -> float:
        """Of a window; 0 without any."""
        values = self.within(now, seconds)
        return sum(values) / len(values) if values else 0.0


class PromptLengths:
    """Mean prompt tokens of the requests whose prompt was done lately, from the counters of the replicas."""

    def __init__(self, known: float, window_seconds: float = 300.0) -> None:
        self.mean = known
        """As it is known now; 0: not at all."""
        self._window_seconds = window_seconds
        self._done: dict[int, tuple[float, int]] = {}
        self._tokens, self._requests = Samples(window_seconds), Samples(window_seconds)

    def see(self, now: float, replicas: Iterable[Seen]) -> None:
        """Take counters as they were read at `now`."""
        tokens, requests, done = 0.0, 0, {}
        for one in replicas:
            before = self._done.get(one.number, (0.0, 0))
            tokens += one.prompt_tokens - before[0]
            requests += one.first_tokens - before[1]
            done[one.number] = (one.prompt_tokens, one.first_tokens)
        self._done = done
        self._tokens.add(now, tokens)
        self._requests.add(now, requests)
        counted = sum(self._requests.within(now, self._window_seconds))
        if counted > 0:
            self.mean = sum(self._tokens.within(now, self._window_seconds)) / counted
