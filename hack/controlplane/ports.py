"""Free loopback ports that stay ours from the moment they are chosen.

Each port is held by a bound socket that never listens. A program that itself sets SO_REUSEPORT (all of ours can) may
listen beside it; anyone else who asks for a free port gets another one. So several control planes can start at once,
and a stopped program finds its port free when it comes back.
"""

import socket


class Ports:
    """Reserved ports by name."""

    def __init__(self, *names: str) -> None:
        self._held: dict[str, socket.socket] = {}
        for name in names:
            holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind(("127.0.0.1", 0))
            self._held[name] = holder

    def __getitem__(self, name: str) -> int:
        port: int = self._held[name].getsockname()[1]
        return port

    def release(self) -> None:
        """Give the ports back."""
        for holder in self._held.values():
            holder.close()
