"""Sockets: commands are acknowledged once, events come once and in order, whatever clients do."""

import asyncio
import json
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from time import monotonic
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from support.package_play import GREETER, write
from support.server_play import PATIENCE, serving
from support.server_process import ServerProcess
from support.socket_play import Socket
from weft.app.folders import server_file
from weft.engine.events import RunEnded
from weft.server import serve
from weft.server.codes import HTTP_RULES
from weft.server.live.ring import MAX_BYTES
from weft.server.settings import Limits, ServerSettings

EVENT = {"v", "seq", "ts", "run", "turn", "kind", "actor", "cause", "data"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A workspace with a package whose run waits for the user after each reply."""
    folder = tmp_path_factory.mktemp("talk")
    write(folder / "workflows" / "Greeter", GREETER)
    return folder


@pytest.fixture(scope="module")
def key(server):
    return server.key("ada", "end_user", "developer")


@pytest.fixture
def opened(server, key):
    with Socket(server.url, key) as found:
        yield found


def begin(server, key, message="hello"):
    body = {"workflow": "Greeter", "message": message, "force": True}
    run = server.post("/api/runs", body, key=key, status=201)["run"]
    server.settled(run, key)
    return run


def events(server, key, run):
    return server.get(f"/api/runs/{run}/events?limit=1000", key=key)["items"]


def say(server, key, run, text="more"):
    server.post(f"/api/runs/{run}/messages", {"text": text}, key=key)
    server.settled(run, key)


# -- commands


def test_commands_are_acknowledged_and_events_follow_without_a_gap(server, key, opened):
    started = opened.do("start", workflow="Greeter", message="hello")
    assert started["ok"], started
    run = started["run"]
    ack = opened.do("follow", id="mine", run=run)
    assert ack == {"v": 1, "kind": "ack", "id": "mine", "ok": True, "run": run}
    server.settled(run, key)
    assert opened.do("message", run=run, text="more")["ok"]
    last = server.settled(run, key)["seq"]
    opened.until(lambda: opened.numbers(run)[-1:] == [last])
    assert opened.events[run] == events(server, key, run)
    assert all(set(event) == EVENT for event in opened.events[run])
    assert opened.numbers(run) == list(range(1, last + 1))


def test_command_that_is_sent_again_finds_what_it_did(server, key, opened):
    first, again = (opened.do("start", id="one", workflow="Greeter", message="a") for _ in "ab")
    assert first == {**again, "seq": first["seq"]}
    run = first["run"]
    server.settled(run, key)
    with Socket(server.url, key) as other:
        for where in (opened, opened, other):
            assert where.do("message", id="two", run=run, text="only once")["ok"]
    server.settled(run, key)
    said = [event["data"].get("value") for event in events(server, key, run)]
    assert said.count("only once") == 1
    forks = {opened.do("fork", id="three", run=run, turn=1)["run"] for _ in "ab"}
    assert len(forks) == 1


@pytest.mark.parametrize(
    ("sent", "code", "id_"),
    [
        ("no JSON", "HTTP400", None),
        ("[]", "HTTP422", None),
        ('"text"', "HTTP422", None),
        ('{"id":"a"}', "HTTP422", "a"),
        ('{"id":"a","cmd":"explode"}', "HTTP422", "a"),
        ('{"id":1,"cmd":"retry","run":"x"}', "HTTP422", None),
        ('{"id":"a","cmd":"follow"}', "HTTP422", "a"),
        ('{"id":"a","cmd":"follow","run":"x","after":-1}', "HTTP422", "a"),
        ('{"id":"a","cmd":"follow","run":"x","more":1}', "HTTP422", "a"),
        ('{"id":"a","cmd":"follow","run":"x","v":2}', "HTTP422", "a"),
        ('{"id":"a","cmd":"follow","run":"\\u0000"}', "HTTP422", "a"),
        ('{"id":"a","cmd":"follow","run":"none"}', "HTTP404", "a"),
        ('{"id":"a","cmd":"start","workflow":"None"}', "HTTP404", "a"),
        ('{"id":"a","cmd":"unfollow"}', "HTTP422", "a"),
        ('{"id":"a","cmd":"follow_board","workflow":"Greeter"}', "HTTP422", "a"),
        ("[" * 100_000, "HTTP400", None),
        ('{"id":"a","cmd":"message","run":"x","text":"\\ud800"}', "HTTP400", None),
    ],
)
def test_invalid_socket_message_is_answered_with_a_problem(opened, sent, code, id_):
    opened.send(sent)
    (answer,) = opened.receive()
    assert (answer["kind"], answer["ok"], answer["id"]) == ("ack", False, id_)
    assert answer["problem"]["code"] == code
    assert code in {each.code for each in HTTP_RULES}
    opened.send('{"v":1,"cmd":"pong"}')
    assert opened.do("unfollow", run="x")["ok"], "the socket goes on"


@pytest.mark.parametrize(
    ("sent", "cause"),
    [
        ('{"id":', "EOF while parsing a value at line 1 column 6"),
        ('{"id":"a"}', "cmd: field required"),
        ('{"id":"a","cmd":"nope"}', "there is no command nope; available: follow, follow_board, "),
        ('{"cmd":"follow","run":"x"}', "id: field required"),
    ],
)
def test_refused_message_says_why(opened, sent, cause):
    opened.send(sent)
    (answer,) = opened.receive()
    (found,) = answer["problem"]["cause"]
    assert found.startswith(cause)


def test_second_answer_and_ended_runs_are_conflicts(server, key, opened):
    run = begin(server, key)
    (request,) = server.get(f"/api/runs/{run}", key=key)["requests"]
    assert opened.do("answer", run=run, request=request["id"], value="so")["ok"]
    other = opened.do("answer", run=run, request=request["id"], value="not so")
    assert other["problem"]["code"] == "HTTP409"
    assert opened.do("cancel", run=run)["ok"]
    assert opened.do("cancel", run=run)["ok"], "it is cancelled: there is nothing to do"
    assert opened.do("message", run=run, text="hello?")["problem"]["code"] == "HTTP409"


@pytest.mark.parametrize(
    ("content", "code"), [(b"{}", 1003), ("a" * 300_000, 1009)], ids=["bytes", "too large"]
)
def test_message_that_cannot_be_a_command_closes_the_socket(opened, content, code):
    opened.send(content)
    assert opened.closed() == code


def test_upgrade_without_a_caller_is_refused(server):
    for headers, status in (
        ({}, 401),
        ({"Authorization": "Bearer weft_a_b"}, 401),
        ({"Cookie": f"weft_session_{server.url.rpartition(':')[2]}=none"}, 401),
        ({"Origin": "https://elsewhere.example"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Host": "elsewhere.example"}, 421),
    ):
        with pytest.raises(InvalidStatus) as caught:
            Socket(server.url, headers=headers)
        assert caught.value.response.status_code == status
        assert json.loads(caught.value.response.body)["code"] == f"HTTP{status}"


# -- following


def test_client_that_comes_back_gets_what_it_missed_and_a_boundary(server, key):
    run = begin(server, key)
    with Socket(server.url, key) as first:
        first.do("follow", run=run)
        first.until_kind(run, "caught_up")
        assert not any(frame["kind"] == "boundary" for frame in first.frames)
        seen = first.numbers(run)
    say(server, key, run)  # It was not cancelled when its viewer left.
    with Socket(server.url, key) as again:
        again.do("follow", run=run, after=seen[-1])
        boundary = again.until_kind(run, "boundary")
        missed = again.numbers(run)
        assert boundary["seq"] == missed[-1]
        say(server, key, run)
        last = server.settled(run, key)["seq"]
        again.until(lambda: again.numbers(run)[-1] == last)
        assert seen + again.numbers(run) == list(range(1, last + 1))
        kinds = [frame["kind"] for frame in again.frames if "ts" not in frame]
        assert kinds.index("boundary") < kinds.index("caught_up")


@pytest.mark.parametrize("after", [0, 1, 5, 10**6])
def test_every_place_can_be_resumed_from(server, key, opened, after):
    run = begin(server, key)
    last = server.settled(run, key)["seq"]
    opened.do("follow", run=run, after=after)
    opened.until_kind(run, "caught_up")
    assert opened.numbers(run) == list(range(after + 1, last + 1))
    needs = [frame["seq"] for frame in opened.frames if frame["kind"] == "snapshot_needed"]
    assert needs == ([last] if after > last else []), "a number that the run has not reached"


def test_many_viewers_get_the_same(server, key):
    run = begin(server, key)

    def watch(number):
        with Socket(server.url, key) as viewer:
            viewer.do("follow", run=run, after=number % 4)
            viewer.until(lambda: any(event["kind"] == "RunEnded" for event in viewer.events[run]))
            return viewer.numbers(run)

    with ThreadPoolExecutor(12) as threads:
        viewers = [threads.submit(watch, number) for number in range(12)]
        for _ in range(3):
            say(server, key, run)
        server.post(f"/api/runs/{run}/cancel", {}, key=key)
        last = server.settled(run, key)["seq"]
        for number, viewer in enumerate(viewers):
            assert viewer.result(PATIENCE) == list(range(number % 4 + 1, last + 1))


def test_stream_over_http_has_the_same_frames(server, key, opened):
    run = begin(server, key)
    opened.do("follow", run=run)
    say(server, key, run)
    server.post(f"/api/runs/{run}/cancel", {}, key=key)
    last = server.settled(run, key)["seq"]
    opened.until(lambda: opened.numbers(run)[-1:] == [last])
    for after in (0, 4):
        headers = {"Last-Event-ID": str(after)}
        text = server.call("GET", f"/api/runs/{run}/stream", key=key, headers=headers).content
        frames = [
            dict(line.split(": ", 1) for line in block.split("\n"))
            for block in text.decode().split("\n\n")
            if block
        ]
        found = [json.loads(frame["data"]) for frame in frames]
        assert [data for data in found if "ts" in data] == opened.events[run][after:]
        ids = [int(frame["id"]) for frame in frames if "id" in frame]
        assert ids == sorted(ids)
        assert [frame["event"] for frame in frames] == [data["kind"] for data in found]


def test_stream_ends_with_its_run_also_if_it_has_everything_already(
    server, key, opened, monkeypatch
):
    host = server.opened.context.host
    events_of = host.events

    async def late(*given, follow=False, **named):
        """Give the last event when streams know already that it is the last one."""
        async for event in events_of(*given, follow=follow, **named):
            if follow and isinstance(event.data, RunEnded):
                await asyncio.sleep(0.5)
            yield event

    monkeypatch.setattr(host, "events", late)
    run = begin(server, key)
    opened.do("follow", run=run)
    opened.until_kind(run, "caught_up")
    server.post(f"/api/runs/{run}/cancel", {}, key=key)
    last = server.settled(run, key)["seq"]
    begun = monotonic()
    for after in (last, last - 1):
        stream = server.call("GET", f"/api/runs/{run}/stream?after={after}", key=key)
        assert (b"RunEnded" in stream.content) == (after < last)
        assert b"ping" not in stream.content
    assert monotonic() - begun < Limits.heartbeat_seconds / 2


def test_unfollowed_run_is_not_sent(server, key, opened):
    runs = [begin(server, key) for _ in range(2)]
    for run in runs:
        opened.do("follow", run=run)
        opened.until_kind(run, "caught_up")
    before = opened.numbers(runs[0])
    assert opened.do("unfollow", run=runs[0])["ok"]
    for run in runs:
        say(server, key, run)
    last = server.settled(runs[1], key)["seq"]
    opened.until(lambda: opened.numbers(runs[1])[-1] == last)
    assert opened.numbers(runs[0]) == before


def test_slow_client_gets_what_it_missed_and_others_are_served(server, key):
    run = begin(server, key)
    address = urlsplit(server.url)
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect((address.hostname, address.port))
    connecting = connect(
        f"ws://{address.netloc}/api/ws",
        sock=slow,
        additional_headers={"Authorization": f"Bearer {key}"},
        proxy=None,
        compression=None,
        max_size=None,
        max_queue=1,
    )
    with connecting as reader, Socket(server.url, key) as quick:
        command = {"v": 1, "id": "a", "cmd": "follow", "run": run}
        reader.send(json.dumps(command))
        quick.do("follow", run=run)
        for _ in range(12):
            say(server, key, run, "a" * (MAX_BYTES // 2))
            last = server.settled(run, key)["seq"]
            quick.until(lambda last=last: quick.numbers(run)[-1:] == [last])
        assert quick.numbers(run) == list(range(1, last + 1))
        seen, jumps = [], []
        end = monotonic() + PATIENCE
        while not seen or seen[-1] != last:
            for frame in json.loads(reader.recv(timeout=end - monotonic())):
                if "ts" in frame:
                    seen.append(frame["seq"])
                elif frame["kind"] == "snapshot_needed":
                    jumps.append((len(seen), frame["seq"]))
                    seen.append(frame["seq"])
    assert jumps, "nothing was left out"
    told = {place for place, _ in jumps}
    for place in range(1, len(seen)):
        assert seen[place] == seen[place - 1] + 1 or place in told, "a gap that was not announced"


# -- limits and rights


@pytest.fixture(scope="module")
def quick(workspace):
    """A server that soon looks whether its clients are there and who they are."""
    limits = Limits(heartbeat_seconds=0.3, identity_seconds=0.3, sockets=3)
    with serving(workspace, settings=ServerSettings(port=0, limits=limits)) as server:
        yield server


def test_silent_client_is_left_and_one_that_answers_stays(quick):
    key = quick.key("ada", "end_user")
    with Socket(quick.url, key, pongs=False) as silent:
        assert silent.closed() == 1011
        assert [frame["kind"] for frame in silent.frames] == ["ping"]
    with Socket(quick.url, key) as present:
        present.until(lambda: len(present.frames) > 5)


def test_too_many_connections_of_one_caller_are_refused(quick):
    key = quick.key("carl", "end_user")
    run = begin(quick, key)
    stream = HTTPConnection(urlsplit(quick.url).netloc, timeout=PATIENCE)
    stream.request("GET", f"/api/runs/{run}/stream", headers={"Authorization": f"Bearer {key}"})
    assert stream.getresponse().status == 200
    with Socket(quick.url, key), Socket(quick.url, key):
        with pytest.raises(InvalidStatus) as caught:
            Socket(quick.url, key)
        assert caught.value.response.status_code == 429
        assert quick.call("GET", f"/api/runs/{run}/stream", key=key).status == 429
        with Socket(quick.url, quick.key("dan", "end_user")):
            pass
    stream.close()


def test_socket_ends_when_its_key_or_its_rights_do(quick):
    keys = quick.opened.context.authenticator.keys
    made = quick.run(keys.create("local", "eve", ["end_user"]))
    other = quick.key("fay", "end_user")
    with Socket(quick.url, made.text) as deleted, Socket(quick.url, other) as changed:
        quick.run(keys.delete("local", made.id))
        assert deleted.closed() == 1008
        body = {"app": "local", "user": "fay", "roles": ["operator"]}
        quick.post("/api/users", body, key=quick.key("root", "administrator"))
        assert changed.closed() == 1008


def test_stopping_server_says_so(workspace):
    with serving(workspace) as server:
        found = Socket(server.url, server.key("ada", "end_user"))
        run = begin(server, server.key("ada", "end_user"))
        found.do("follow", run=run)
    with found:
        assert found.closed() == 1012


def test_stopping_server_refuses_sockets_and_streams(workspace):
    with serving(workspace) as server:
        key = server.key("ada", "end_user")
        run = begin(server, key)
        server.opened.context.is_stopping = True
        refused = server.call("GET", f"/api/runs/{run}/stream", key=key)
        assert (refused.status, refused.data["message"]) == (503, "the server is stopping")
        with pytest.raises(InvalidStatus) as caught:
            Socket(server.url, key)
        assert caught.value.response.status_code == 503


def test_request_that_outlasts_the_server_is_one_warning(workspace, monkeypatch, caplog):
    monkeypatch.setattr(serve, "_ANSWER_SECONDS", 0.2)
    begun = threading.Event()

    async def hang(*_given, **_named):
        begun.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as threads:
        with serving(workspace) as server:
            key = server.key("ada", "end_user")
            monkeypatch.setattr(server.opened.context.host, "runs", hang)
            request = threads.submit(server.call, "GET", "/api/runs", key=key)
            assert begun.wait(PATIENCE)
        assert request.exception() is not None
    text = "the request of /api/runs was cut off: the server is stopping"
    assert [each.getMessage() for each in caplog.records if each.name == "weft.http"] == [text]
    of_library = [each for each in caplog.records if each.name == "uvicorn.error"]
    assert of_library
    assert not any(map(serve._names_bug, of_library))


def test_stopping_server_cuts_off_no_follower_and_logs_nothing_of_its_library(tmp_path):
    write(tmp_path / "workflows" / "Greeter", GREETER)
    with (tmp_path / "errors").open("w") as errors:
        process = ServerProcess(tmp_path, errors=errors)
    with process.popen as popen:
        with pytest.raises(InvalidStatus):
            Socket(process.url, "weft_wrong")
        entry = json.loads(server_file(tmp_path, process.url).read_text("utf-8"))
        headers = {"Authorization": f"Bearer {entry['key']}", "Content-Type": "application/json"}
        connection = HTTPConnection(urlsplit(process.url).netloc, timeout=PATIENCE)
        body = json.dumps({"workflow": "Greeter", "message": "hello"})
        connection.request("POST", "/api/runs", body, headers)
        run = json.loads(connection.getresponse().read())["run"]
        connection.request("GET", f"/api/runs/{run}/stream", headers=headers)
        stream = connection.getresponse()
        assert stream.readline()
        popen.send_signal(signal.SIGINT)
        stream.read()
        with suppress(OSError, HTTPException):  # It may listen no more.
            connection.request("GET", f"/api/runs/{run}/stream", headers=headers)
            assert connection.getresponse().status == 503
        connection.close()
        popen.wait(PATIENCE)
    said = (tmp_path / "errors").read_text("utf-8").splitlines()
    assert [line for line in said if not line.startswith(("stopping", "stopped"))] == []
