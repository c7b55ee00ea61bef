"""Boards over HTTP: what is published and found, by whom, and the change log."""

import asyncio
import json
import shutil
from http.client import HTTPConnection
from time import monotonic
from urllib.parse import quote, urlsplit

import pytest

from support.server_play import PATIENCE, serving
from support.socket_play import Socket
from weft.client import Client
from weft.errors import NotFoundError, StoreError
from weft.packages.workspace import shipped_folder
from weft.ports.scope import Scope
from weft.runtime.board.change_log import SETTLED_AFTER
from weft.server.settings import Limits, ServerSettings

OBJECT = {"type": "object"}
CODE = '''
def file(inputs):
    """Answer every note that says so."""
    text = inputs.artifacts[0].payload.get("text", "")
    if text == "fail":
        raise ValueError("it fails")
    return {"type": "Reply", "payload": {"to": text}} if text == "answer" else None
'''


def agent(name, *types, publishes=(), **fields):
    return {
        "agent": name,
        "consumes": [{"types": list(types)}],
        "publishes": [{"type": type_} for type_ in publishes],
        "engines": [{"kind": "function", "function": "tools.work:file"}],
        **fields,
    }


def make_board(workspace, name, *, shared):
    folder = workspace / "workflows" / name
    (folder / "tools").mkdir(parents=True)
    agents = [
        agent("Filer", "Note", publishes=["Reply"], labels=["ward"]),
        {**agent("Matcher"), "consumes": [{"types": ["Note", "Seal"]}]},
    ]
    for file, content in {
        "orchestrator": {"workflow_name": name},
        "agents": {
            "agents": [
                {
                    "agent_name": each["agent"],
                    "prompt_sections": [{"id": "role", "content": "Work."}],
                }
                for each in agents
            ]
        },
        "board": {
            "artifacts": [{"name": item, "schema": OBJECT} for item in ("Note", "Reply", "Seal")],
            "agents": agents,
            "shared": shared,
        },
    }.items():
        (folder / f"{file}.json").write_text(json.dumps(content), encoding="utf-8")
    (folder / "tools" / "work.py").write_text(CODE, encoding="utf-8")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A workspace with a board that all users share, and one that they do not."""
    folder = tmp_path_factory.mktemp("boards")
    make_board(folder, "Wall", shared=True)
    make_board(folder, "Desk", shared=False)
    return folder


@pytest.fixture(scope="module")
def server(workspace):
    with serving(workspace) as server:
        yield server


@pytest.fixture(scope="module")
def keys(server):
    """Keys by name; Lara has the label `ward`."""
    server.post(
        "/api/users",
        {"app": "local", "user": "lara", "labels": ["ward"]},
        key=server.key("root", "administrator"),
    )
    users = {name: server.key(name, "end_user") for name in ("ada", "bob", "lara")}
    return {**users, "dev": server.key("dev", "developer"), "op": server.key("op", "operator")}


def publish(server, key, board="Wall", text="hello", status=201, **fields):
    body = {"type": "Note", "payload": {"text": text}, **fields}
    return server.post(f"/api/boards/{board}/artifacts", body, key=key, status=status)


def listed(server, key, board="Wall", query=""):
    return server.get(f"/api/boards/{board}/artifacts{query}", key=key)["items"]


def texts(items):
    return [item["payload"].get("text") for item in items]


#: What is published in a correlation, and who of the others sees it.
POLICIES = {
    "public": ({"kind": "public"}, {"ada", "bob", "lara"}),
    "tenant": ({"kind": "tenant"}, {"ada", "bob", "lara"}),
    "private": ({"kind": "private", "agents": ["user:bob"]}, {"bob"}),
    "agent": ({"kind": "private", "agents": ["Filer"]}, set()),
    "labelled": ({"kind": "labelled", "labels": ["ward"]}, {"lara"}),
    "later": ({"kind": "after", "seconds": 3600, "then": {"kind": "public"}}, set()),
}


@pytest.fixture(scope="module")
def policies(server, keys):
    """Publish an artifact of each policy in one correlation; return the ids."""
    return {
        name: publish(
            server, keys["ada"], text=name, correlation="policies", tags=[name], visibility=policy
        )["artifact"]
        for name, (policy, _) in POLICIES.items()
    }


@pytest.mark.parametrize("reader", ["ada", "bob", "lara"])
def test_users_find_what_they_may_see_and_nothing_else(server, keys, policies, reader):
    key = keys[reader]
    wanted = [name for name, (_, readers) in POLICIES.items() if reader in readers]
    whole = listed(server, key, query="?correlation=policies&type=Note")
    assert texts(whole) == wanted[::-1]
    unknown = server.call("GET", "/api/boards/Wall/artifacts/none", key=key)
    for name, id_ in policies.items():
        tagged = listed(server, key, query=f"?tag={name}")
        reply = server.call("GET", f"/api/boards/Wall/artifacts/{id_}", key=key)
        if name in wanted:
            assert texts(tagged) == [name]
            assert reply.data == tagged[0]
        else:
            assert tagged == []
            assert reply.status == unknown.status == 404
            assert reply.content.replace(id_.encode(), b"none") == unknown.content
    correlation = server.get("/api/correlations/policies?workflow=Wall", key=key)
    assert correlation["artifacts"] >= len(wanted)
    assert correlation["artifacts"] == len(listed(server, key, query="?correlation=policies"))


def test_pages_and_cursors_do_not_show_what_is_hidden(server, keys, policies):
    found, path = [], "/api/boards/Wall/artifacts?correlation=policies&type=Note&limit=1"
    page = server.get(path, key=keys["ada"])
    while True:
        found += texts(page["items"])
        if page["next"] is None:
            break
        page = server.get(f"{path}&cursor={page['next']}", key=keys["ada"])
    assert found == ["tenant", "public"]


def test_developers_see_everything_and_why_agents_do_not(server, keys, policies):
    assert len(listed(server, keys["dev"], query="?correlation=policies&type=Note")) == len(
        POLICIES
    )
    for name, id_ in policies.items():
        path = f"/api/boards/Wall/artifacts/{id_}"
        whole = server.get(path, key=keys["dev"])
        assert whole["visibility"]["policy"] == {"later": "public", "agent": "private"}.get(
            name, name
        )
        assert whole["run"]
        for reader, sees in (
            ("Filer", {"public", "tenant", "agent", "labelled"}),
            ("Matcher", {"public", "tenant"}),
        ):
            why = server.get(f"{path}/why?agent={reader}", key=keys["dev"])
            assert why["visible"] == (name in sees), (why, reader)
            assert (why["reason"] is None) == why["visible"]
        server.get(f"{path}/why?agent=Filer", key=keys["ada"], status=404)
    near = server.get(f"{path}/why?agent=Filr", key=keys["dev"], status=422)
    assert near["hint"] == ["did you mean Filer?"]


def test_developers_list_what_an_agent_may_see(server, keys, policies):
    path = "/api/boards/Wall/artifacts?correlation=policies&type=Note&agent="
    for agent, seen in (("Filer", ["labelled", "agent", "tenant", "public"]),
                        ("Matcher", ["tenant", "public"])):  # fmt: skip
        assert texts(server.get(path + agent, key=keys["dev"])["items"]) == seen
    server.get(f"{path}Filr", key=keys["dev"], status=422)
    server.get(f"{path}Filer", key=keys["ada"], status=404)


def test_changes_continue_after_a_list(server, keys):
    marked(server, keys, "dev")
    after = server.get("/api/boards/Wall/artifacts?limit=1", key=keys["dev"])["changes"]
    publish(server, keys["bob"], text="after the list")
    found, _ = changes_until(server, keys["dev"], 1, after)
    assert texts([item["artifact"] for item in found]) == ["after the list"]


def test_operators_see_what_people_see(server, keys, policies):
    seen = listed(server, keys["op"], query="?correlation=policies&type=Note")
    assert texts(seen) == ["tenant", "public"]


def test_boards_that_are_not_shared_belong_to_their_users(server, keys):
    mine = publish(server, keys["ada"], "Desk", "mine", correlation="c")
    publish(server, keys["bob"], "Desk", "his", correlation="c")
    assert texts(listed(server, keys["ada"], "Desk", "?type=Note")) == ["mine"]
    assert texts(listed(server, keys["bob"], "Desk", "?type=Note")) == ["his"]
    assert set(texts(listed(server, keys["dev"], "Desk", "?type=Note"))) == {"mine", "his"}
    server.get(f"/api/boards/Desk/artifacts/{mine['artifact']}", key=keys["bob"], status=404)
    other = server.key("ada", "developer", app="elsewhere")
    assert listed(server, other, "Desk") == []
    server.get(f"/api/boards/Desk/artifacts/{mine['artifact']}", key=other, status=404)


def test_agents_are_woken_and_a_correlation_says_how_far_it_is(server, keys):
    made = publish(server, keys["ada"], text="answer")
    path = f"/api/correlations/{made['correlation']}?workflow=Wall"
    idle = server.until(
        path,
        keys["ada"],
        is_so=lambda found: (found["status"], found["artifacts"]) == ("idle", 2),
    )
    query = f"?correlation={made['correlation']}"
    reply, note = listed(server, keys["ada"], query=query)
    assert (reply["type"], reply["produced_by"], note["produced_by"]) == (
        "Reply", "Filer", "user:ada",
    )  # fmt: skip
    assert listed(server, keys["bob"], query=f"{query}&producer=Filer") == [reply]
    whole = server.get(f"/api/boards/Wall/artifacts/{note['id']}", key=keys["dev"])
    assert [woken["agent"] for woken in whole["consumed"]] == ["Filer"]
    agents = {
        item["agent"]: item
        for item in server.get("/api/agents?workflow=Wall", key=keys["dev"])["items"]
    }
    assert agents["Filer"]["consumes"] == ["Note"]
    assert agents["Filer"]["publishes"] == ["Reply"]
    waits = [agent for agent in agents["Matcher"]["waiting"] if agent["run"] == idle["run"]]
    assert [(wait["what"], wait["artifacts"]) for wait in waits] == [
        ("for others", [{"id": note["id"], "type": "Note"}])
    ]
    server.get("/api/agents?workflow=Wall", key=keys["ada"], status=404)


def test_correlations_of_others_and_unknown_ones_are_not_found(server, keys):
    publish(server, keys["ada"], "Desk", correlation="hers")
    assert server.get("/api/correlations/hers?workflow=Desk", key=keys["dev"])["workflow"] == "Desk"
    mine = server.get("/api/correlations/hers?workflow=Desk", key=keys["ada"])
    assert mine["status"] in ("active", "idle")
    nothing = server.call("GET", "/api/correlations/x?workflow=Desk", key=keys["bob"])
    hers = server.call("GET", "/api/correlations/hers?workflow=Desk", key=keys["bob"])
    assert (
        (hers.status, hers.content) == (nothing.status, nothing.content) == (404, nothing.content)
    )
    server.post(f"/api/runs/{mine['run']}/cancel", {}, key=keys["ada"])
    ended = server.get("/api/correlations/hers?workflow=Desk", key=keys["ada"])
    assert ended["status"] == "cancelled"
    hidden = publish(
        server, keys["ada"], "Desk", visibility={"kind": "private", "agents": ["Filer"]}
    )
    found = server.get(f"/api/correlations/{hidden['correlation']}?workflow=Desk", key=keys["ada"])
    assert found["artifacts"] == 0


def test_publication_that_is_repeated_with_its_key_counts_once(server, keys):
    headers = {"Idempotency-Key": "order-7"}
    body = {"type": "Note", "payload": {"text": "once"}}
    replies = [
        server.call("POST", "/api/boards/Wall/artifacts", body, key=keys[who], headers=headers)
        for who in ("ada", "ada", "bob")
    ]
    assert [reply.status for reply in replies] == [201, 200, 201]
    assert replies[0].data == replies[1].data != replies[2].data
    found = [item for item in listed(server, keys["ada"]) if item["payload"].get("text") == "once"]
    assert len(found) == 2


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"type": "Note"}, "payload"),
        ({"type": "Other", "payload": {}}, "Other"),
        ({"type": "Note", "payload": 3}, "Note"),
        ({"type": "Note", "payload": {}, "visibility": {"kind": "pubic"}}, "visibility"),
        (
            {"type": "Note", "payload": {}, "visibility": {"kind": "labelled", "labels": []}},
            "label",
        ),
        ({"type": "Note", "payload": {}, "agent": "Nemo"}, "Nemo"),
        ({"type": "Note", "payload": {}, "id": "mine"}, "id"),
    ],
)
def test_invalid_artifacts_are_refused(server, keys, body, says):
    before = len(listed(server, keys["dev"], query="?limit=200"))
    problem = server.post("/api/boards/Wall/artifacts", body, key=keys["ada"], status=422)
    assert says in json.dumps(problem)
    assert len(listed(server, keys["dev"], query="?limit=200")) == before


def test_types_are_listed_with_their_schemas(server, keys):
    found = server.get("/api/boards/Wall/types", key=keys["ada"])["items"]
    assert found == [{"type": each, "schema": OBJECT} for each in ("Note", "Reply", "Seal")]
    server.get("/api/boards/Missing/types", key=keys["ada"], status=404)


def test_fields_of_declared_models_are_described(tmp_path):
    shutil.copytree(shipped_folder() / "NewsDesk", tmp_path / "workflows" / "NewsDesk")
    with serving(tmp_path) as server:
        key = server.key("ada", "end_user")
        found = server.get("/api/boards/NewsDesk/types", key=key)["items"]
    [lead] = [each["schema"] for each in found if each["type"] == "Lead"]
    headline = lead["$defs"]["Lead"]["properties"]["headline"]
    assert headline == {"type": "string", "description": "What it is about."}


@pytest.mark.parametrize(
    "query",
    ["?cursor=x", "?limit=0", "?since=-1", "?type=", "?typo=Note", f"?tag={quote(chr(0))}"],
)
def test_invalid_filters_are_refused(server, keys, query):
    server.get(f"/api/boards/Wall/artifacts{query}", key=keys["ada"], status=422)


def test_filters_narrow(server, keys):
    for number, who in enumerate(("ada", "bob", "ada")):
        publish(
            server, keys[who], text=f"filter {number}", tags=["f", f"f{number}"],
            partition="east" if number else "west",
        )  # fmt: skip
    for query, wanted in (
        ("tag=f", "210"),
        ("tag=f0&tag=f2", "20"),
        ("tag=f&producer=user:ada", "20"),
        ("tag=f&partition=east", "21"),
        ("tag=f&text=FILTER%201", "1"),
        (f"tag=f&since={2**53}", ""),
    ):
        found = texts(listed(server, keys["lara"], query=f"?{query}"))
        assert found == [f"filter {number}" for number in wanted], query


# -- the change log


def read_changes(server, key, after=None, board="Wall"):
    """Return all changes of a board that the log has now, and the cursor behind them."""
    found, gaps = [], []
    while True:
        query = f"?limit=3&after={after}" if after else "?limit=3"
        page = server.get(f"/api/boards/{board}/changes{query}", key=key)
        found += page["items"]
        gaps.append(page["gap"])
        after = page["next"]
        if not page["has_more"]:
            return found, after, any(gaps)


def changes_until(server, key, number, after=None, board="Wall"):
    """Return the changes after a cursor as soon as there are so many."""
    end, found = monotonic() + PATIENCE, []
    while len(found) < number:
        more, after, _ = read_changes(server, key, after, board)
        found += more
        assert monotonic() < end, found
    return found, after


def marked(server, keys, *readers):
    """Publish an artifact, and return a cursor behind it for each of some readers."""
    marker = publish(server, keys["bob"], text="marker")["artifact"]
    return [cursor_behind(server, keys[reader], marker) for reader in readers]


def cursor_behind(server, key, artifact):
    end, after = monotonic() + PATIENCE, None
    while monotonic() < end:
        found, after, _ = read_changes(server, key, after)
        for change in found:
            if change["artifact"]["id"] == artifact:
                return change["cursor"]
    raise AssertionError(f"{artifact} has not appeared")


def test_changes_come_once_in_order_and_only_what_is_visible(server, keys):
    after, all_after = marked(server, keys, "ada", "dev")
    for number, kind in enumerate(("public", "agent", "public", "labelled", "public")):
        publish(server, keys["bob"], text=f"change {number}", visibility=POLICIES[kind][0])
    found, _ = changes_until(server, keys["ada"], 3, after)
    assert texts(item["artifact"] for item in found) == ["change 0", "change 2", "change 4"]
    again, _, gap = read_changes(server, keys["ada"], found[0]["cursor"])
    assert (again, gap) == (found[1:], False)
    everything, _ = changes_until(server, keys["dev"], 5, all_after)
    assert texts(item["artifact"] for item in everything) == [f"change {n}" for n in range(5)]


def test_delayed_artifact_is_a_change_when_it_appears(server, keys):
    (after,) = marked(server, keys, "ada")
    delayed = {"kind": "after", "seconds": 2, "then": {"kind": "public"}}
    publish(server, keys["bob"], text="delayed", visibility=delayed)
    publish(server, keys["bob"], text="at once")
    first, after = changes_until(server, keys["ada"], 1, after)
    second, _ = changes_until(server, keys["ada"], 1, after)
    assert texts(item["artifact"] for item in first + second) == ["at once", "delayed"]


class Stream:
    """A stream of changes."""

    def __init__(self, server, key, board="Wall", after=None, last=None):
        self._connection = HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE)
        headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = last
        query = "" if after is None else f"?after={after}"
        self._connection.request("GET", f"/api/boards/{board}/changes{query}", None, headers)
        self.answer = self._connection.getresponse()

    def next(self):
        """Return the next event: its id, its kind and its data."""
        lines = []
        while (line := self.answer.readline().decode().rstrip("\n")) or not lines:
            if line and not line.startswith(":"):
                lines.append(line)
        fields = dict(line.split(": ", 1) for line in lines)
        return fields["id"], fields["event"], json.loads(fields["data"])

    def close(self):
        self._connection.close()


def test_stream_has_the_same_changes_and_continues_after_the_last_id(server, keys):
    (after,) = marked(server, keys, "ada")
    stream = Stream(server, keys["ada"], after=after)
    assert stream.answer.getheader("content-type").startswith("text/event-stream")
    for number in range(3):
        hidden = POLICIES["agent"][0]
        publish(server, keys["bob"], text="hidden", visibility=hidden)
        publish(server, keys["bob"], text=f"sent {number}")
    first = stream.next()
    stream.close()
    resumed = Stream(server, keys["ada"], last=first[0])
    events = [first, resumed.next(), resumed.next()]
    resumed.close()
    assert [kind for _, kind, _ in events] == ["artifact"] * 3
    found, _ = changes_until(server, keys["ada"], 3, after)
    assert [data["artifact"] for _, _, data in events] == [item["artifact"] for item in found]
    assert [id_ for id_, _, _ in events] == [item["cursor"] for item in found]


def test_socket_has_the_same_frames_as_a_stream(server, keys):
    (after,) = marked(server, keys, "ada")
    publish(server, keys["bob"], text="sent")
    stream = Stream(server, keys["ada"], after=after)
    wanted = stream.next()[2]
    stream.close()
    with Socket(server.url, keys["ada"]) as found:
        assert found.do("follow_board", workflow="Wall", after=after)["ok"]
        found.until(lambda: any(frame["kind"] == "artifact" for frame in found.frames))
        assert found.frames[-1] == wanted


def test_followers_get_what_many_publish_once_and_in_order(server, keys):
    (after,) = marked(server, keys, "dev")
    streams = [Stream(server, keys["dev"], after=after) for _ in range(5)]
    host, sent = server.opened.context.host, 60

    async def publish_all():
        scopes = [Scope("local", name) for name in ("ada", "bob")]
        await asyncio.gather(
            *(
                host.publish(
                    "Wall", "Note", {"text": f"n{number}"}, scope=scopes[number % 2],
                    correlation=f"many {number % 7}",
                )
                for number in range(sent)
            )
        )  # fmt: skip

    server.run(publish_all())
    got = [[stream.next() for _ in range(sent)] for stream in streams]
    for stream in streams:
        stream.close()
    names = [data["artifact"]["payload"]["text"] for _, _, data in got[0]]
    assert sorted(names) == sorted(f"n{number}" for number in range(sent))
    assert all(each == got[0] for each in got)
    times = [data["artifact"]["created_at"] for _, _, data in got[0]]
    assert times == sorted(times)


def test_board_without_followers_is_not_read(server, keys):
    log = server.opened.context.host._board_log
    stream = Stream(server, keys["ada"])
    end = monotonic() + PATIENCE
    while not log._watches:
        assert monotonic() < end
    stream.close()
    while log._watches:
        publish(server, keys["bob"], text="anybody?")  # The server notices when it sends.
        assert monotonic() < end
    assert SETTLED_AFTER == 1_000


def test_log_that_starts_later_than_asked_says_so(workspace, tmp_path):
    make_board(tmp_path, "Wall", shared=True)
    with serving(tmp_path) as server:
        key, dev = server.key("ada", "end_user"), server.key("dev", "developer")
        made = publish(server, key, text="old")
        (old,), _ = changes_until(server, key, 1)
        page = server.get(f"/api/correlations/{made['correlation']}?workflow=Wall", key=key)
        server.post(f"/api/runs/{page['run']}/cancel", {}, key=key)
        host = server.opened.context.host
        publish(server, key, text="new")
        before = server.opened.context.clock.now() + 1
        gone = server.run(
            host.prune(scope=Scope.operator("local"), ended_before=before, dry_run=False)
        )
        assert gone.runs == 1
        for reader in (key, dev):
            found, next_, gap = read_changes(server, reader, old["cursor"])
            assert gap
            found += changes_until(server, reader, 1 - len(found), next_)[0]
            assert texts(item["artifact"] for item in found) == ["new"]
            assert read_changes(server, reader)[2] is False
        stream = Stream(server, key, after=old["cursor"])
        assert [stream.next()[1] for _ in range(2)] == ["gap", "artifact"]
        stream.close()
        latest = changes_until(server, key, 1)[1]
        end = monotonic() + PATIENCE
        while read_changes(server, key, latest)[2] and monotonic() < end:
            latest = read_changes(server, key, latest)[1]  # It moves on with the time.
        assert read_changes(server, key, latest)[2] is False


@pytest.mark.parametrize("reason", ["key", "store"])
def test_stream_ends_when_its_caller_is_revoked_or_its_store_fails(
    tmp_path, monkeypatch, caplog, reason
):
    make_board(tmp_path, "Wall", shared=True)
    limits = Limits(heartbeat_seconds=0.1, identity_seconds=0.1)
    with serving(tmp_path, settings=ServerSettings(port=0, limits=limits)) as server:
        context = server.opened.context
        keys = context.authenticator.keys
        made = server.run(keys.create("local", "ada", ["end_user"]))
        stream = Stream(server, made.text)
        publish(server, made.text, text="sent")
        assert stream.next()[1] == "artifact"
        if reason == "key":
            server.run(keys.delete("local", made.id))
        else:
            log = context.host._board_log
            read = log._read

            async def fail(view, *query, **options):
                if view.reader is not None:
                    raise StoreError("the disk is gone")
                return await read(view, *query, **options)

            monkeypatch.setattr(log, "_read", fail)
            publish(server, made.text, text="not sent")
        assert set(stream.answer.read().splitlines()) <= {b": ping", b""}
        stream.close()
    assert "Traceback" not in caplog.text
    assert ("the disk is gone" in caplog.text) == (reason == "store")


@pytest.mark.parametrize("stream", ["", "&stream=true"])
def test_change_log_refuses_what_it_does_not_know(server, keys, stream):
    server.get(f"/api/boards/Nothing/changes?limit=5{stream}", key=keys["ada"], status=404)
    server.get(f"/api/boards/Wall/changes?after=x{stream}", key=keys["ada"], status=422)
    assert server.call("GET", f"/api/boards/Wall/changes?limit=5{stream}").status == 401


async def until_published(changes, artifact):
    """Yield changes of a client up to that of an artifact."""
    async for cursor, change in changes:
        if change is not None:
            yield cursor, change
            if change.id == artifact:
                return


def test_client_publishes_reads_and_follows_boards(server, keys):
    async def whole():
        async with Client(server.url, key=keys["dev"]) as client:
            made = await client.publish("Wall", "Note", {"text": "by client"}, tags=["c", "d"])
            again = await client.publish("Wall", "Note", {"n": 1}, id="one", correlation="client")
            assert again == await client.publish(
                "Wall", "Note", {"n": 1}, id="one", correlation="client"
            )
            found = await client.artifacts("Wall", types=("Note",), tags=("c", "other"))
            whole = await client.artifact("Wall", made.id)
            changes = client.follow_board("Wall")
            appeared = [
                cursor
                async for cursor, change in until_published(changes, made.id)
                if change.id == made.id
            ]
            later = client.follow_board("Wall", after=appeared[0])
            following = (await asyncio.wait_for(anext(later), 20))[1]
            for each in (changes, later):
                await each.aclose()
            run = await client.run_of("Wall", "client")
            with pytest.raises(NotFoundError):
                await client.artifact("Wall", "nothing")
            why = await client.why("Wall", made.id, "Filer")
            return made, again, found, whole, following, run, why

    made, again, found, whole, following, run, why = asyncio.run(asyncio.wait_for(whole(), 60))
    assert [each.id for each in found] == [made.id]
    assert found[0].visibility is None, "pages do not have it"
    assert (whole.payload, whole.visibility["policy"]) == ({"text": "by client"}, "public")
    assert whole.correlation == made.correlation_id
    assert following is not None
    assert following.id == again.id
    assert (run, why) == (again.run, None)
