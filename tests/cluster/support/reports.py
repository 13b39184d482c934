"""What tests have to report at the end of a run, beside that they passed."""

import pytest

REPORTS = pytest.StashKey[list[str]]()
"""Lines, in the stash of the configuration."""
