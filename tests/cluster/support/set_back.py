"""The operator as a program whose wall clock a test can set: `python -P set_back.py FILE run ...`.

The file, once it is there, holds the seconds by which the clock is off. The clock goes in where the operator takes one.
"""

import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from vlm_operator.cli.operator import main
from vlm_operator.runtime.lease import Lease
from vlm_operator.runtime.reconcile import Reconciler

FILE = Path(sys.argv.pop(1))


def off() -> float:
    return float(FILE.read_text()) if FILE.exists() else 0.0


Lease.__init__.__kwdefaults__["wall"] = lambda: datetime.now(UTC) + timedelta(seconds=off())
Reconciler.__init__.__kwdefaults__["clock"] = lambda: time.time() + off()
sys.exit(main())
