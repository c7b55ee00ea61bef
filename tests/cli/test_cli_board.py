"""weft board: publishing, looking, and why somebody sees something or not."""

import json
import re

import pytest

from support.board_play import make_news
from support.terminal_play import Terminal
from weft.cli.commands import board as board_commands
from weft.cli.commands import runs


@pytest.fixture
def board(workspace, monkeypatch):
    """A workspace with a board, and no model but the sample."""
    monkeypatch.delenv("WEFT_MODEL", raising=False)
    make_news(workspace)
    return workspace


@pytest.fixture
def rain(weft, board):
    """A board on which something happened, in the correlation rain."""
    result = weft("board", "publish", "News", "Topic", "title=Rain", "source=null", "pages=3",
                  "--correlation", "rain", "--tag", "weather")  # fmt: skip
    assert result.code == 0, result.err
    return result


def ids_of(weft):
    """Return the ids of what is on the board, by type; there is one of each."""
    listed = weft("board", "list", "News", "--json").data["artifacts"]
    return {it["type"]: it["id"] for it in listed}


def lines(result):
    return [json.loads(it) for it in result.out.splitlines()]


# -- publishing


def test_publish_follows_until_the_board_is_idle(weft, rain):
    ids = ids_of(weft)
    assert len(set(ids.values())) == 4
    ends = {type_: it[-8:] for type_, it in ids.items()}
    collected = "collected in News~Archive.0"
    assert rain.out.splitlines() == [
        f'Scout publishes Lead {ends["Lead"]} (1 tag): {{"title": "Rain!", "source": "Ann"}}',
        f'Editor (sample) publishes Draft {ends["Draft"]}: {{"text": "[sample] text"}}',
        f'Auditor publishes Verdict {ends["Verdict"]} ({collected}): {{"ok": true}}',
    ]
    told = rain.err.splitlines()
    assert told[0] == f"published Topic {ids['Topic']} in run rain"
    assert f'user:me publishes Topic {ends["Topic"]} (1 tag): {{"title": "Rain", ' in rain.err
    assert f"turn 1: Scout is woken by Topic {ends['Topic']}" in told
    assert f"not delivered to Critic.0: the turn failed ({ends['Verdict']})" in told
    assert "run rain is idle: it waits for artifacts or a schedule" in told
    assert "  inspect: weft inspect rain" in told


def test_fields_are_read_as_their_types_want_them(weft, board):
    weft("board", "publish", "News", "Topic", "title=5", "source=null", "pages=7", "--no-wait")
    (found,) = weft("board", "list", "News", "--json").data["artifacts"]
    assert found["payload"] == {"title": "5", "source": None, "pages": 7}
    weft("board", "publish", "News", "Note", "count=5", 'text=a "quote"', "ok=true", "--no-wait")
    (found, _) = weft("board", "list", "News", "--json").data["artifacts"]
    assert found["payload"] == {"count": 5, "text": 'a "quote"', "ok": True}


def test_a_payload_as_json_or_in_a_file(weft, board):
    given = '{"text": "file", "ticket": 1}'
    assert weft("board", "publish", "News", "Note", given, "--no-wait").code == 0
    (board / "note.json").write_text(f"\ufeff{given}", encoding="utf-8")
    written = weft("board", "publish", "News", "Note", "--input", "note.json", "--no-wait")
    assert written.code == 0
    found = weft("board", "list", "News", "--json").data
    assert [it["payload"] for it in found["artifacts"]] == [json.loads(given)] * 2


def test_publish_for_programs(weft, board):
    result = weft("board", "publish", "News", "Note", "text=skip", "--json", "--id", "n1",
                  "--correlation", "c")  # fmt: skip
    assert result.code == 0
    first, *events, last = lines(result)
    assert first == {
        "schema_version": 1,
        "published": {"id": "n1", "run": "c", "correlation_id": "c"},
    }
    assert [it["event"]["seq"] for it in events] == list(range(1, len(events) + 1))
    assert (last["run"]["status"], last["run"]["requests"]) == ("waiting", [])


def test_publish_without_waiting_only_writes(weft, board):
    made = weft("board", "publish", "News", "Topic", "title=x", "source=null", "pages=null",
                "--no-wait", "--json").data["published"]  # fmt: skip
    run = made["run"]
    assert ids_of(weft) == {"Topic": made["id"]}
    shown = weft("runs", "show", run, "--json").data["run"]
    assert (shown["status"], shown["owner"], shown["turns"]) == ("running", "", 1)
    assert weft("inspect", run, "--json").data["inspection"]["turns"][0]["ended"] is None
    assert "stopped" in weft("runs", "list").out
    resumed = weft("runs", "resume", run)
    assert resumed.code == 0
    assert "Scout publishes Lead" in resumed.out
    assert "is idle" in resumed.err


def test_an_id_counts_once(weft, board):
    words = ("board", "publish", "News", "Note", "text=x", "--id", "n1", "--no-wait", "--json")
    assert weft(*words).data == weft(*words).data
    assert weft("board", "list", "News", "--json").data["total"] == 1


def test_publish_goes_on_with_a_correlation(weft, rain):
    again = weft("board", "publish", "News", "Note", "text=skip", "ticket=1",
                 "--correlation", "rain")  # fmt: skip
    assert again.code == 0
    assert "in run rain" in again.err
    assert "Topic" not in again.err
    note = ids_of(weft)["Note"][-8:]
    assert f"turn 5: Guard is woken by Note {note}" in again.err
    assert f"Clerk.0: Note {note} waits for a batch\n" in again.err


def test_publish_to_one_agent(weft, board):
    result = weft("board", "publish", "News", "Note", "text=x", "--to", "Clerk", "--json")
    started = [it["event"]["data"] for it in lines(result)
               if it.get("event", {}).get("kind") == "TurnStarted"]  # fmt: skip
    assert [it["agent"] for it in started] == ["Clerk"]


@pytest.mark.parametrize(
    ("words", "code", "fact", "hint"),
    [
        (("Topik", "title=x"), 6, "the board has no artifact type Topik", "Topic?"),
        (("Topic", "titel=x"), 2, "the payload is no Topic: ", ""),
        (("Topic", "title"), 2, 'invalid field "title"', "write fields, title=News"),
        (("Topic", "a=1", "a=2"), 2, "a is given twice", "keep one"),
        (("Topic", "{"), 2, "the payload is not valid JSON: ", "write an object"),
        (("Topic", "a=1", "--input", "x"), 2, "the payload is given twice", "leave out"),
        (("Topic", "--input", "x.json"), 6, "cannot read x.json: ", "name a JSON file"),
        (("Note", "a=1", "--to", "Clark"), 6, "the board has no agent Clark", "Clerk?"),
        (("Topic", "--to", "Clerk", '{"title": "x", "source": null, "pages": null}'), 2,
         "Clerk takes no Topic that it is given", "it takes: Note"),
        (("Note", "a=1", "--visibility", "secret"), 2, "the visibility cannot be used: ", "use p"),
        (("Note", "a=1", "--visibility", "{"), 2, "the visibility is not valid JSON: ", "write an"),
        (("Note", "a=1", "--tag", "x" * 300), 2, "", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_published(weft, board, words, code, fact, hint):
    result = weft("board", "publish", "News", *words)
    assert result.code == code
    assert result.err.startswith(f"error[CLI00{code}]: {fact}")
    assert hint in result.err
    assert not (board / ".weft" / "journal.db").exists() or "no run" in weft("runs", "list").err


def test_a_file_that_is_no_text(weft, board):
    (board / "x.json").write_bytes(b"\xff\xfe[")
    result = weft("board", "publish", "News", "Note", "--input", "x.json")
    assert (result.code, "x.json is not UTF-8 text" in result.err) == (2, True)


def test_packages_that_are_no_boards(weft, board):
    result = weft("board", "list", "Support")
    assert result.code == 2
    assert "Support has no board" in result.err
    assert "weft run Support" in result.err
    assert "did you mean News?" in weft("board", "list", "Newz").err
    started = weft("run", "News", "hello", "--model", "sample")
    assert started.code == 2
    assert "News is a board: it begins with an artifact" in started.err
    assert "weft board publish News TYPE key=value" in started.err


# -- looking


def test_list(weft, rain):
    result = weft("board", "list", "News")
    rows = [it.split("\t") for it in result.out.splitlines()]
    assert [row[1:3] for row in rows] == [
        ["Verdict", "Auditor"],
        ["Draft", "Editor"],
        ["Lead", "Scout"],
        ["Topic", "user:me"],
    ]
    assert {row[1]: row[0] for row in rows} == ids_of(weft)
    assert rows[3][4:] == ["weather", '{"title": "Rain", "source": null, "pages": 3}']
    assert result.err == "4 artifacts\n"


@pytest.mark.parametrize(
    ("words", "types"),
    [
        (("--type", "Lead", "--type", "Topic"), ["Lead", "Topic"]),
        (("--tag", "hot"), ["Lead"]),
        (("--by", "user:me"), ["Topic"]),
        (("--correlation", "sun"), []),
        (("--partition", "north"), []),
        (("--text", "sample"), ["Draft"]),
        (("--since", "1h", "--limit", "1"), ["Verdict"]),
        (("--limit", "2", "--offset", "1"), ["Draft", "Lead"]),
        (("--limit", "2", "--offset", "3"), ["Topic"]),
        (("--limit", "2", "--offset", "4"), []),
        (("--since", "2999-01-01"), []),
        (("--visible-to", "Critic"), ["Verdict", "Lead", "Topic"]),
        (("--visible-to", "Critic", "--limit", "9", "--offset", "1"), ["Lead", "Topic"]),
        (("--visible-to", "Auditor", "--type", "Draft"), ["Draft"]),
    ],
)
def test_list_what_is_asked_for(weft, rain, words, types):
    found = weft("board", "list", "News", *words, "--json").data
    assert [it["type"] for it in found["artifacts"]] == types
    everything = 3 if "Critic" in words else 4
    assert found["total"] == (everything if "--limit" in words else len(types))
    assert found["schema_version"] == 1


def test_list_one_partition(weft, rain):
    for partition in ("north", "south", "north"):
        weft("board", "publish", "News", "Note", "text=x", "--partition", partition, "--no-wait")
    found = weft("board", "list", "News", "--partition", "north", "--json").data
    assert [(it["type"], it["partition_key"]) for it in found["artifacts"]] == [
        ("Note", "north"),
        ("Note", "north"),
    ]
    assert found["total"] == 2


def test_list_says_how_many_more_there_are(weft, rain):
    assert weft("board", "list", "News", "--limit", 1).err == (
        "1 of 4 artifacts: --offset 1 shows older ones\n"
    )
    page = weft("board", "list", "News", "--limit", 2, "--offset", 1)
    assert page.err == "2 of 4 artifacts: --offset 3 shows older ones\n"
    assert weft("board", "list", "News", "--offset", 3).err == "1 of 4 artifacts\n"
    assert weft("board", "list", "News", "--offset", 9).err == "0 of 4 artifacts\n"
    # How many there are that an agent may not see is nothing it is told.
    seen = weft("board", "list", "News", "--limit", 1, "--visible-to", "Critic")
    assert seen.err.startswith("1 of 3 ")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--type", "Leed"), 6, "did you mean Lead?"),
        (("--visible-to", "Critik"), 6, "did you mean Critic?"),
        (("--limit", "0"), 2, "use a number from 1 to 1000"),
        (("--offset", "-1"), 2, "use a number from 0 on"),
        (("--offset", str(2**60)), 2, "use a number from 0 on"),
        (("--partition", ""), 2, "the partition is empty"),
        (("--correlation", ""), 2, "the correlation is empty"),
        (("--since", "soon"), 2, "write 30m, 2h, 7d"),
    ],
)
def test_what_cannot_be_listed(weft, rain, words, code, told):
    result = weft("board", "list", "News", *words)
    assert (result.code, told in result.err) == (code, True)


def test_nothing_is_listed_where_nothing_was_kept(weft, board):
    result = weft("board", "list", "News")
    assert result.code == 6
    assert "there are no runs" in result.err


def test_show(weft, rain):
    draft = ids_of(weft)["Draft"]
    result = weft("board", "show", "News", draft)
    assert result.out.startswith(f"Draft {draft}\n  by          Editor\n")
    assert "  visible     private to Auditor\n" in result.out
    assert "  woke        Auditor in turn 3 of run rain\n" in result.out
    assert "  event       14 of run rain\n" in result.out
    assert result.out.endswith('Payload\n  {\n    "text": "[sample] text"\n  }\n')
    assert "  woke        nobody\n" not in result.out
    whole = weft("board", "show", "News", draft[-6:], "--json").data["artifact"]
    assert (whole["id"], whole["run"], whole["seq"]) == (draft, "rain", 14)
    assert whole["visibility"]["policy"] == "private"
    assert [(it["agent"], it["turn"]) for it in whole["consumed"]] == [("Auditor", 3)]


def test_the_end_of_an_id_may_be_that_of_several(weft, board, monkeypatch):
    monkeypatch.setattr(board_commands, "MAX_LIMIT", 2)  # They are looked for page by page.
    for name in ("a-1", "b-1", "c-1", "d-1", "e-1", "f-2"):
        weft("board", "publish", "News", "Note", "text=x", "--id", name, "--no-wait")
    result = weft("board", "show", "News", "-1")
    assert result.code == 2
    assert '"-1" matches 5 artifacts' in result.err
    assert "write more of the id: e-1, d-1, c-1, b-1 and 1 more" in result.err
    assert weft("board", "show", "News", "a-1").out.startswith("Note a-1\n")
    assert weft("board", "show", "News", "2").out.startswith("Note f-2\n")
    assert weft("board", "show", "News", "").code == 6


def test_why(weft, rain):
    ids = ids_of(weft)
    lead, draft = ids["Lead"], ids["Draft"]
    seen = weft("board", "why", "News", lead[-8:], "Critic")
    assert (seen.code, seen.out) == (0, f"Critic can see {lead}: it is public\n")
    hidden = weft("board", "why", "News", draft, "Critic")
    assert (hidden.code, hidden.out) == (
        0,
        f"Critic cannot see {draft}: it is private to Auditor\n",
    )
    own = weft("board", "why", "News", draft, "Auditor")
    assert own.out == f"Auditor can see {draft}: it is private to Auditor\n"
    told = weft("board", "why", "News", draft, "Critic", "--json").data["why"]
    assert told == {
        "artifact": draft,
        "agent": "Critic",
        "visible": False,
        "because": "it is private to Auditor",
    }


@pytest.mark.parametrize(
    ("visibility", "agent", "told"),
    [
        ('{"kind": "labelled", "labels": ["field"]}', "Scout",
         "can see n: it is for agents with all of the labels field"),
        ('{"kind": "labelled", "labels": ["field"]}', "Editor",
         "cannot see n: Editor lacks the label field"),
        ('{"kind": "after", "seconds": 3600}', "Editor", "cannot see n: it is visible only in "),
        ("tenant", "Editor", "can see n: it is for the tenant local"),
    ],
)  # fmt: skip
def test_why_by_policy(weft, board, visibility, agent, told):
    weft("board", "publish", "News", "Note", "text=x", "--id", "n", "--visibility", visibility,
         "--no-wait")  # fmt: skip
    assert f"{agent} {told}" in weft("board", "why", "News", "n", agent).out


def test_show_what_is_not_visible_yet(weft, board):
    weft("board", "publish", "News", "Topic", '{"title": "x", "source": null, "pages": null}',
         "--id", "t", "--visibility", '{"kind": "after", "seconds": 3600}')  # fmt: skip
    assert re.search(r"visible     public, visible in 3[56]\d\d(\.\d+)? s",
                     weft("board", "show", "News", "t").out)  # fmt: skip


@pytest.mark.parametrize("words", [("show", "News", "ooo"), ("why", "News", "ooo.12", "Critic")])
def test_artifacts_that_are_not_there(weft, rain, words):
    result = weft("board", *words)
    assert result.code == 6
    assert "there is no artifact ooo" in result.err
    assert "weft board list News" in result.err


def test_why_knows_the_agents(weft, rain):
    result = weft("board", "why", "News", ids_of(weft)["Lead"], "Critik")
    assert (result.code, "did you mean Critic?" in result.err) == (6, True)


def test_missed(weft, rain):
    result = weft("board", "missed", "News", "rain")
    first, second = result.out.splitlines()
    assert "not delivered to Matcher.0: has no join key: it has no key" in first
    assert re.search(r"rain  \d+  .*not delivered to Critic\.0: the turn failed: .*no opinion", (
        second))  # fmt: skip
    found = weft("board", "missed", "News", "--json").data["missed"]
    assert [(it["run"], it["why"]) for it in found] == [("rain", "no_key"), ("rain", "failed")]
    assert found[1]["detail"].endswith("no opinion")
    cut = weft("board", "missed", "News", "--limit", 1)
    assert len(cut.out.splitlines()) == 1
    assert "there are more than these 1: use --limit N" in cut.err
    assert weft("board", "missed", "News", "--limit", 0).code == 2
    empty = weft("board", "missed", "News", "News~Archive.0")
    assert (empty.out, empty.err) == ("", "everything was delivered\n")


def test_flush(weft, board):
    weft("board", "publish", "News", "Note", "text=skip", "--correlation", "c")
    result = weft("board", "flush", "News", "c")
    assert result.code == 0
    assert "me processes all pending batches now" in result.err
    assert f"Clerk is woken by Note {ids_of(weft)['Note'][-8:]}" in result.err
    weft("runs", "cancel", "c")
    ended = weft("board", "flush", "News", "c")
    assert ended.code == 2
    assert "run c has ended and has no pending batches" in ended.err


def test_runs_of_other_packages_are_refused(weft, rain):
    run = lines(weft("run", "Support", "hi", "--model", "sample", "--json"))[-1]["run"]["run"]
    for words in (("flush", "News", run), ("missed", "News", run)):
        result = weft("board", *words)
        assert (result.code, "is a run of Support" in result.err) == (2, True)


# -- runs of boards


def test_runs_say_idle(weft, rain):
    listed = {row.split("\t")[0]: row.split("\t")[1] for row in weft("runs", "list").out.split("\n")
              if row}  # fmt: skip
    assert listed == {"rain": "idle", "News~Archive.0": "idle"}
    assert "  status    idle: it waits for artifacts\n" in weft("runs", "show", "rain").out
    assert weft("runs", "show", "rain", "--json").data["run"]["status"] == "waiting"
    answered = weft("runs", "answer", "rain", "hello")
    assert answered.code == 2
    assert "run rain is idle; it has no open request" in answered.err


def test_a_conversation_that_waits_is_not_idle(weft, board):
    weft("run", "Support", "hi", "--model", "sample")
    assert "\twaiting\t" in weft("runs", "list").out


def test_tail(weft, rain, monkeypatch):
    monkeypatch.setattr(runs, "PATIENCE", 0.3)
    result = weft("runs", "tail", "rain")
    assert result.code == 0
    lead = ids_of(weft)["Lead"][-8:]
    assert f"ArtifactPublished  Scout publishes Lead {lead} (1 tag): " in result.out
    assert f"TurnStarted        turn 2: Editor is woken by Lead {lead}" in result.out
    assert "TimerSet           checks for activity at " in result.out
    assert result.err.splitlines()[-1].startswith("run rain is idle")
    users = lines(weft("runs", "tail", "rain", "--as-user"))
    assert {it["event"]["kind"] for it in users} == {"RunStarted", "TurnStarted", "TurnEnded"}


def test_inspect_and_replay(weft, rain):
    page = weft("inspect", "rain")
    assert page.code == 0
    assert f"woken by Lead {ids_of(weft)['Lead'][-8:]} (Editor.0)" in page.out
    assert "redacted: source" in page.out
    board = weft("inspect", "rain", "--json").data["inspection"]["board"]
    assert board["correlation"] == "rain"
    assert weft("inspect", "rain@2").out.startswith("run rain, turn 2: Editor\n")
    assert weft("inspect", "rain@2", "--against", "1").code == 0
    assert weft("replay", "rain", "--check").out.endswith("replay is identical\n")
    again = weft("replay", "rain")
    assert again.code == 0
    assert again.out == rain.out
    assert "run rain is idle" in again.err
    forked = weft("replay", "rain", "--fork", "2", "--model", "sample")
    assert forked.code == 0
    assert "Editor (sample) publishes Draft " in forked.out


def test_a_chat_with_a_board_shows_it(weft, rain):
    result = weft("chat", "--run", "rain")
    assert result.code == 0
    assert "run rain is idle" in result.err


def test_on_a_terminal(rain, board):
    with Terminal("board", "list", "News", cwd=board, columns=70) as terminal:
        terminal.end()
    assert "ARTIFACT" in terminal.shown
    assert all(len(it) <= 70 for it in terminal.shown.splitlines())
    with Terminal("board", "publish", "News", "Note", "text=skip", cwd=board) as terminal:
        terminal.end()
    assert "Guard is woken by Note" in terminal.shown
    assert "is idle" in terminal.shown
