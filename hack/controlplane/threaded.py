"""A server on asyncio in a thread of its own, for programs that are not asynchronous themselves."""

import asyncio
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Self


class Threaded:
    """Runs from the beginning of a `with` block to its end. What fails at the start is raised there."""

    def __init__(self) -> None:
        self._begun: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    async def start(self) -> None:
        """Begin to serve, in the thread."""
        raise NotImplementedError

    async def end(self) -> None:
        """Serve no more, in the thread."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        self._begun.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    async def _run(self) -> None:
        try:
            self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
            await self.start()
        except BaseException as error:  # noqa: BLE001 # it is raised in the thread that waits for the start
            self._begun.set_exception(error)
            return
        self._begun.set_result(None)
        await self._ended.wait()
        await self.end()
