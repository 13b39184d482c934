"""The requests of a trace, as columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Trace:
    """Requests in the order in which they came. All columns have the same length, which is at least 1."""

    times: NDArray[np.float64]
    """Seconds since the first request; never falling."""
    prompt_tokens: NDArray[np.float32]
    """Of each request, those of its images among them."""
    output_tokens: NDArray[np.float32]
    images: NDArray[np.float32]
    vision_tokens: NDArray[np.float32]
    """Of the prompt tokens, those of images."""

    def __len__(self) -> int:
        return len(self.times)

    @property
    def seconds(self) -> float:
        """From the first request to the last one."""
        return float(self.times[-1])
