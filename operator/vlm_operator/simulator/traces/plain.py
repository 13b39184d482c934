"""The simulator's own format: a line for each request, `time_s,prompt_tokens,output_tokens,images,vision_tokens`.

Times in seconds count from any moment up to the first request; prompt tokens include those of images.
"""

from math import inf

import numpy as np

from vlm_operator.simulator.traces.base import Given, Loaded, TraceError
from vlm_operator.simulator.traces.gather import Gathering
from vlm_operator.simulator.traces.table import Column, rows
from vlm_operator.simulator.traces.times import Times, Unit

TIMES = Times(column="time_s", unit=Unit.SECONDS)
COLUMNS = (
    Column(name=TIMES.column, most=inf),
    Column(name="prompt_tokens"),
    Column(name="output_tokens"),
    Column(name="images"),
    Column(name="vision_tokens"),
)
_TIME, _PROMPT, _OUTPUT, _IMAGES, _VISION = range(5)


def read(given: Given, _seed: int) -> Loaded:
    """The trace in a file. Raises TraceError."""
    if given.file is None:
        raise TraceError(f"{given.name} is a folder; name the csv file itself")
    gathering = Gathering(given.file, TIMES)
    for found in rows(given.file, COLUMNS):
        values = found.values
        too_many = values[:, _VISION] > values[:, _PROMPT]
        if too_many.any():
            row = int(np.argmax(too_many))
            prompt = f"{values[row, _PROMPT]:.15g}"
            found.refuse(row, _VISION, f"is more than prompt_tokens ({prompt}), which counts the tokens of images too")
        gathering.add(found, *(values[:, column] for column in (_TIME, _PROMPT, _OUTPUT, _IMAGES, _VISION)))
    return gathering.loaded()
