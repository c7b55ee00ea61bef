"""A client of the socket, which checks that the events of each run come once and in order."""

import json
import secrets
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from time import monotonic
from typing import Any, Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from support.server_play import PATIENCE

Frame = dict[str, Any]


class Socket:
    """An open socket. `frames` is everything that came; `events` the events of each run."""

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        pongs: bool = True,
    ) -> None:
        self.frames: list[Frame] = []
        self.events: defaultdict[str, list[Frame]] = defaultdict(list)
        self.pongs = pongs
        given = {"Authorization": f"Bearer {key}"} if key else {}
        self._stack = ExitStack()
        opening = connect(
            f"{url.replace('http', 'ws', 1)}/api/ws",
            additional_headers={**given, **(headers or {})},
            proxy=None,
            compression=None,
            max_size=None,
        )
        self._socket = self._stack.enter_context(opening)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def send(self, data: str | bytes) -> None:
        """Send a message as it is."""
        self._socket.send(data)

    def do(self, cmd: str, **fields: Any) -> Frame:
        """Send a command; return its acknowledgement."""
        id_ = fields.pop("id", None) or secrets.token_hex(8)
        count = len(self.frames)
        self.send(json.dumps({"v": 1, "id": id_, "cmd": cmd, **fields}))
        self.until(lambda: any(is_ack(frame, id_) for frame in self.frames[count:]))
        return next(frame for frame in self.frames[count:] if is_ack(frame, id_))

    def until(self, is_so: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Receive until it is so."""
        end = monotonic() + seconds
        while not is_so():
            self.receive(end - monotonic())

    def until_kind(self, run: str, kind: str) -> Frame:
        """Receive until a frame of a kind has come for a run, and return it."""
        self.until(lambda: any(is_of(frame, run, kind) for frame in self.frames))
        return next(frame for frame in reversed(self.frames) if is_of(frame, run, kind))

    def receive(self, seconds: float = PATIENCE) -> list[Frame]:
        """Receive one message; raises TimeoutError, and ConnectionClosed."""
        frames: list[Frame] = json.loads(self._socket.recv(timeout=max(seconds, 0)))
        assert isinstance(frames, list)
        for frame in frames:
            self._take(frame)
        return frames

    def closed(self) -> int:
        """Receive until the server closes the socket, and return the code."""
        end = monotonic() + PATIENCE
        while True:
            try:
                self.receive(end - monotonic())
            except ConnectionClosed as error:
                return error.rcvd.code if error.rcvd is not None else 0

    def numbers(self, run: str) -> list[int]:
        """Return the numbers of the events of a run."""
        return [event["seq"] for event in self.events[run]]

    def _take(self, frame: Frame) -> None:
        self.frames.append(frame)
        if "ts" in frame:
            events = self.events[frame["run"]]
            assert not events or frame["seq"] > events[-1]["seq"], "an event came twice"
            events.append(frame)
        elif frame["kind"] == "ping" and self.pongs:
            self.send('{"v":1,"cmd":"pong"}')


def is_ack(frame: Frame, id_: str) -> bool:
    """Tell whether a frame acknowledges a command."""
    return frame["kind"] == "ack" and frame["id"] == id_


def is_of(frame: Frame, run: str, kind: str) -> bool:
    """Tell whether a frame is of a kind and belongs to a run."""
    return frame["kind"] == kind and frame.get("run") == run
