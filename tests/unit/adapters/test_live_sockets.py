"""Sockets beside a file: private, removed at the end, and never waited for."""

import asyncio
import logging
import signal
import socket
import subprocess
import sys
from contextlib import closing
from stat import S_IMODE

import pytest

from weft.adapters.live import sockets
from weft.adapters.live.merged import MergedLiveStream
from weft.adapters.live.sockets import SocketBus
from weft.ports.live import TextDelta
from weft.testing.ports.waiting import until

RUN = ("shop", "r1")

OTHER = """
import asyncio
import sys
from pathlib import Path

from weft.adapters.live.sockets import SocketBus


async def main():
    bus = SocketBus(Path(sys.argv[1]))
    bus.listen("topic", lambda content: None)
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
"""


@pytest.fixture
def other(tmp_path):
    """Another process that listens."""
    command = [sys.executable, "-c", OTHER, str(tmp_path / "weft.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def sockets_in(folder):
    return [file.name for file in folder.glob("weft.db-live/*")]


async def test_folder_is_private_and_removed_by_the_last_process(tmp_path):
    buses = [SocketBus(tmp_path / "weft.db") for _ in range(2)]
    got = []
    for bus in buses:
        bus.listen("topic", got.append)
    assert S_IMODE((tmp_path / "weft.db-live").stat().st_mode) == 0o700
    buses[0].send("topic", b"one")
    await until(lambda: got == [b"one"], "the message at the other bus only")
    await buses[0].close()
    assert len(sockets_in(tmp_path)) == 1
    buses[1].send("topic", b"two")
    await buses[1].close()
    assert list(tmp_path.iterdir()) == []


async def test_same_file_by_another_path_has_the_same_sockets(tmp_path):
    (tmp_path / "weft.db").touch()
    (tmp_path / "link.db").symlink_to(tmp_path / "weft.db")
    buses = [SocketBus(tmp_path / name) for name in ("weft.db", "link.db")]
    got = []
    for bus in buses:
        bus.listen("topic", got.append)
    buses[0].send("topic", b"one")
    await until(lambda: got == [b"one"], "the message")
    for bus in buses:
        await bus.close()


@pytest.mark.parametrize("length", [1, 70])
async def test_path_may_be_long(tmp_path, length):
    folder = tmp_path / ("f" * length) / ("f" * length)
    folder.mkdir(parents=True)
    here, there = MergedLiveStream(SocketBus(folder / "weft.db")), None
    got = []
    with here.subscribe(RUN, got.append):
        there = MergedLiveStream(SocketBus(folder / "weft.db"))
        await until(lambda: there.has_subscribers(RUN), "the answer to a process that came later")
        there.publish(RUN, TextDelta("r1", 1, 0, "text"))
        await until(lambda: bool(got), "a delta")
    await here.close()
    await there.close()
    assert list(folder.iterdir()) == []


async def test_socket_of_a_killed_process_is_removed(tmp_path, other):
    bus = SocketBus(tmp_path / "weft.db")
    bus.listen("watch", lambda _: None)
    bus.send("topic", b"one")
    other.kill()
    other.wait()
    assert len(sockets_in(tmp_path)) == 2
    bus.send("topic", b"two")  # The connection is refused.
    bus.send("topic", b"three")
    await bus.close()
    assert not (tmp_path / "weft.db-live").exists()


async def test_socket_that_was_left_behind_is_removed(tmp_path):
    folder = tmp_path / "weft.db-live"
    folder.mkdir()
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as left:
        left.bind(str(folder / "watch.left"))
    stream = MergedLiveStream(SocketBus(tmp_path / "weft.db"))
    assert "watch.left" not in sockets_in(tmp_path)
    await stream.close()
    assert not folder.exists()


async def test_stopped_process_delays_no_other(tmp_path, other, monkeypatch):
    """What waits for it is bounded, and dropped after a time."""
    monkeypatch.setattr(sockets, "MOST_WAITING", 1_000_000)
    monkeypatch.setattr(sockets, "GIVE_UP_SECONDS", 0.2)
    bus, reader = [SocketBus(tmp_path / "weft.db") for _ in range(2)]
    got = []
    bus.listen("watch", lambda _: None)
    reader.listen("topic", got.append)
    other.send_signal(signal.SIGSTOP)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for number in range(100):
        bus.send("topic", bytes(50_000))
        await until(lambda number=number: len(got) > number, "the message at the other reader")
    assert loop.time() - begun < 5
    waiting = [peer for peer in bus._peers.values() if peer._size]
    assert all(peer._size <= 1_000_000 for peer in waiting)
    await until(lambda: not any(peer._timer for peer in waiting), "the end of the attempts")
    assert [peer._size for peer in waiting] == [0] * len(waiting)
    other.send_signal(signal.SIGCONT)
    await bus.close()
    await reader.close()


async def test_without_a_folder_there_are_no_messages(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    (tmp_path / "weft.db-live").write_text("a file")
    stream = MergedLiveStream(SocketBus(tmp_path / "weft.db"))
    got = []
    with stream.subscribe(RUN, got.append):
        stream.publish(RUN, TextDelta("r1", 1, 0, "here"))
    await stream.close()
    assert [delta.text for delta in got] == ["here"]
    assert "streamed text does not cross processes" in caplog.text
