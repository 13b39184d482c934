"""How far a long command is, on the terminal of whoever waits for it."""

from typing import TextIO

_WIDTH = 30


class Progress:
    """A bar that is drawn anew in place, and leaves nothing behind. What is no terminal gets none."""

    def __init__(self, whole: float, stream: TextIO) -> None:
        self._whole = whole
        self._stream = stream if stream.isatty() and whole > 0 else None
        self._shown = -1

    def __call__(self, done: float) -> None:
        """Show how much of the whole is done."""
        percent = int(100 * min(1.0, done / self._whole)) if self._stream else 0
        if self._stream and percent != self._shown:
            self._shown = percent
            bar = "#" * (_WIDTH * percent // 100)
            self._stream.write(f"\r[{bar:<{_WIDTH}}] {percent:3d} %")
            self._stream.flush()

    def end(self) -> None:
        """Wipe the bar."""
        if self._stream and self._shown >= 0:
            self._stream.write("\r" + " " * (_WIDTH + 8) + "\r")
            self._stream.flush()
