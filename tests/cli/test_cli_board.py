"""weft board: publishing, looking, and why somebody sees something or not."""

import json
import re

import pytest

from support.board_play import make_news
from support.cases import read_cases, scenario_tests
from support.terminal_play import Terminal
from weft.cli.commands import board as board_commands
from weft.cli.commands import runs

CASES = read_cases(__file__)


@pytest.fixture
def board(workspace, monkeypatch):
    """A workspace with a board, and no model but the sample."""
    monkeypatch.delenv("WEFT_MODEL", raising=False)
    make_news(workspace)
    return workspace


@pytest.fixture
def rain(weft, board, prepared):
    """A board on which something happened, in the correlation rain."""
    fields = ("title=Rain", "source=null", "pages=3")
    words = ("board", "publish", "News", "Topic", *fields, "--correlation", "rain")
    result = prepared("rain", lambda: weft(*words, "--tag", "weather"))
    assert result.code == 0, result.err
    return result


def ids_of(weft):
    """Return the ids of what is on the board, by type; there is one of each."""
    listed = weft("board", "list", "News", "--json").data["artifacts"]
    return {entry["type"]: entry["id"] for entry in listed}


def run_of(weft, correlation="rain"):
    """Return the run of a correlation."""
    return weft("runs", "show", correlation, "--json").data["run"]["run"]


def lines(result):
    return [json.loads(line) for line in result.out.splitlines()]


# -- publishing


def test_publish_follows_until_the_board_is_idle(weft, rain):
    ids = ids_of(weft)
    assert len(set(ids.values())) == 4
    ends = {type_: id_[-8:] for type_, id_ in ids.items()}
    collected = "collected in News~Archive.0"
    assert rain.out.splitlines() == [
        f'Scout publishes Lead {ends["Lead"]} (1 tag): {{"title": "Rain!", "source": "Ann"}}',
        f'Editor (sample) publishes Draft {ends["Draft"]}: {{"text": "[sample] text"}}',
        f'Auditor publishes Verdict {ends["Verdict"]} ({collected}): {{"ok": true}}',
    ]
    told = rain.err.splitlines()
    assert told[0] == f"published Topic {ids['Topic']} in run {run_of(weft)}"
    assert f'user:me publishes Topic {ends["Topic"]} (1 tag): {{"title": "Rain", ' in rain.err
    assert f"turn 1: Scout is woken by Topic {ends['Topic']}" in told
    assert f"not delivered to Critic.0: the turn failed ({ends['Verdict']})" in told
    assert f"run {run_of(weft)} is idle: it waits for artifacts or a schedule" in told
    assert f"  inspect: weft inspect {run_of(weft)}" in told


def test_fields_are_read_as_their_types_want_them(weft, board):
    weft("board", "publish", "News", "Topic", "title=5", "source=null", "pages=7")
    (found,) = weft("board", "list", "News", "--type", "Topic", "--json").data["artifacts"]
    assert found["payload"] == {"title": "5", "source": None, "pages": 7}
    weft("board", "publish", "News", "Note", "count=5", 'text=a "quote"', "ok=true")
    (found,) = weft("board", "list", "News", "--type", "Note", "--json").data["artifacts"]
    assert found["payload"] == {"count": 5, "text": 'a "quote"', "ok": True}


def test_a_payload_as_json_or_in_a_file(weft, board):
    given = '{"text": "file", "ticket": 1}'
    assert weft("board", "publish", "News", "Note", given).code == 0
    (board / "note.json").write_text(f"\ufeff{given}", encoding="utf-8")
    written = weft("board", "publish", "News", "Note", "--input", "note.json")
    assert written.code == 0
    found = weft("board", "list", "News", "--json").data
    assert [artifact["payload"] for artifact in found["artifacts"]] == [json.loads(given)] * 2


def test_publish_for_programs(weft, board):
    result = weft("board", "publish", "News", "Note", "text=skip", "--json", "--id", "n1",
                  "--correlation", "c")  # fmt: skip
    assert result.code == 0
    first, *events, last = lines(result)
    assert first == {
        "schema_version": 1,
        "published": {"id": "n1", "run": run_of(weft, "c"), "correlation_id": "c"},
    }
    assert [event["event"]["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (last["run"]["status"], last["run"]["requests"]) == ("waiting", [])


def test_publish_without_waiting_leaves_the_work_to_a_worker(weft, board, monkeypatch):
    words = ("board", "publish", "News", "Note", "text=x", "--id", "n1", "--correlation", "c")
    published = weft(*words, "--no-wait")
    assert published.code == 0
    assert published.out.startswith("published Note n1 in run ")
    assert published.err == "  a worker processes it: weft worker\n"
    assert ids_of(weft) == {}
    monkeypatch.setenv("WEFT_MODEL", "sample")  # The run was begun without a model.
    weft("board", "publish", "News", "Note", "text=y", "--id", "n2", "--correlation", "c")
    listed = weft("board", "list", "News", "--type", "Note", "--json").data["artifacts"]
    assert [artifact["id"] for artifact in listed] == ["n2", "n1"]  # In the order they came.
    assert published.out.endswith(f" in run {run_of(weft, 'c')}\n")


def test_an_id_counts_once(weft, board):
    words = ("board", "publish", "News", "Note", "text=x", "--id", "n1", "--json")
    first, second = (lines(weft(*words))[0] for _ in range(2))
    assert first == second
    assert weft("board", "list", "News", "--type", "Note", "--json").data["total"] == 1


def test_publish_continues_a_correlation(weft, rain):
    again = weft("board", "publish", "News", "Note", "text=skip", "ticket=1",
                 "--correlation", "rain")  # fmt: skip
    assert again.code == 0
    assert f"in run {run_of(weft)}" in again.err
    assert "Topic" not in again.err
    note = ids_of(weft)["Note"][-8:]
    assert f"turn 5: Guard is woken by Note {note}" in again.err
    assert f"Clerk.0: Note {note} waits for a batch\n" in again.err


def test_publish_to_one_agent(weft, board):
    result = weft("board", "publish", "News", "Note", "text=x", "--to", "Clerk", "--json")
    started = [line["event"]["data"] for line in lines(result)
               if line.get("event", {}).get("kind") == "TurnStarted"]  # fmt: skip
    assert [entry["agent"] for entry in started] == ["Clerk"]


@pytest.mark.parametrize(
    ("words", "code", "fact", "hint"),
    [
        (("Topik", "title=x"), 6, "the board has no artifact type Topik", "Topic?"),
        (("Topic", "titel=x"), 2, "the payload is not a valid Topic: ", ""),
        (("Topic", "title"), 2, 'invalid value "title" for FIELD=VALUE', "write fields"),
        (("Topic", "a=1", "a=2"), 2, "a is given twice", "keep one"),
        (("Topic", "{"), 2, "the payload is not valid JSON: ", "write an object"),
        (("Topic", "a=1", "--input", "x"), 2, "the payload is given twice", "leave out"),
        (("Topic", "--input", "x.json"), 6, "cannot read x.json: ", "name a JSON file"),
        (("Note", "a=1", "--to", "Clark"), 6, "the board has no agent Clark", "Clerk?"),
        (("Topic", "--to", "Clerk", '{"title": "x", "source": null, "pages": null}'), 2,
         "Clerk does not accept a Topic that is", "it accepts: Note"),
        (("Note", "a=1", "--visibility", "secret"), 2, "the visibility cannot be used: ", "use p"),
        (("Note", "a=1", "--visibility", "{"), 2, "the visibility is not valid JSON: ", "write an"),
        (("Note", "a=1", "--tag", "x" * 300), 2, "", ""),
    ],
)  # fmt: skip
def test_publications_that_are_refused(weft, board, words, code, fact, hint):
    result = weft("board", "publish", "News", *words)
    assert result.code == code
    assert result.err.startswith(f"error[CLI00{code}]: {fact}")
    assert hint in result.err
    assert not (board / ".weft" / "journal.db").exists() or "no run" in weft("runs", "list").err


def test_binary_file_is_refused(weft, board):
    (board / "x.json").write_bytes(b"\xff\xfe[")
    result = weft("board", "publish", "News", "Note", "--input", "x.json")
    assert (result.code, "x.json is not UTF-8 text" in result.err) == (2, True)


# -- looking


def test_list(weft, rain):
    result = weft("board", "list", "News")
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert [row[1:3] for row in rows] == [
        ["Verdict", "Auditor"],
        ["Draft", "Editor"],
        ["Lead", "Scout"],
        ["Topic", "user:me"],
    ]
    assert {row[1]: row[0] for row in rows} == ids_of(weft)
    assert rows[3][4:] == ["weather", '{"title": "Rain", "source": null, "pages": 3}']
    assert result.err == "4 artifacts\n"


@pytest.mark.parametrize(("words", "types"), CASES["test_list_what_is_asked_for"])
def test_list_what_is_asked_for(weft, rain, words, types):
    found = weft("board", "list", "News", *words, "--json").data
    assert [artifact["type"] for artifact in found["artifacts"]] == types
    everything = 3 if "Critic" in words else 4
    assert found["total"] == (everything if "--limit" in words else len(types))
    assert found["schema_version"] == 1


def test_list_one_partition(weft, rain):
    for partition in ("north", "south", "north"):
        weft("board", "publish", "News", "Note", "text=x", "--partition", partition)
    found = weft("board", "list", "News", "--partition", "north", "--json").data
    assert [(artifact["type"], artifact["partition_key"]) for artifact in found["artifacts"]] == [
        ("Note", "north"),
        ("Note", "north"),
    ]
    assert found["total"] == 2


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
def test_lists_that_are_refused(weft, rain, words, code, told):
    result = weft("board", "list", "News", *words)
    assert (result.code, told in result.err) == (code, True)


def test_show(weft, rain):
    draft = ids_of(weft)["Draft"]
    result = weft("board", "show", "News", draft)
    assert result.out.startswith(f"Draft {draft}\n  by          Editor\n")
    assert "  visible     private to Auditor\n" in result.out
    assert f"  woke        Auditor in turn 3 of run {run_of(weft)}\n" in result.out
    assert f"  event       14 of run {run_of(weft)}\n" in result.out
    assert result.out.endswith('Payload\n  {\n    "text": "[sample] text"\n  }\n')
    assert "  woke        nobody\n" not in result.out
    whole = weft("board", "show", "News", draft[-6:], "--json").data["artifact"]
    assert (whole["id"], whole["run"], whole["seq"]) == (draft, run_of(weft), 14)
    assert whole["visibility"]["policy"] == "private"
    assert [(entry["agent"], entry["turn"]) for entry in whole["consumed"]] == [("Auditor", 3)]


def test_the_end_of_an_id_may_be_that_of_several(weft, board, monkeypatch):
    monkeypatch.setattr(board_commands, "MAX_LIMIT", 2)  # They are looked for page by page.
    for name in ("a-1", "b-1", "c-1", "d-1", "e-1", "f-2"):
        weft("board", "publish", "News", "Note", "text=x", "--id", name)
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


def test_show_what_is_not_visible_yet(weft, board):
    weft("board", "publish", "News", "Topic", '{"title": "x", "source": null, "pages": null}',
         "--id", "t", "--visibility", '{"kind": "after", "seconds": 3600}')  # fmt: skip
    assert re.search(r"visible     public, visible in 3[56]\d\d(\.\d+)? s",
                     weft("board", "show", "News", "t").out)  # fmt: skip


def test_why_knows_the_agents(weft, rain):
    result = weft("board", "why", "News", ids_of(weft)["Lead"], "Critik")
    assert (result.code, "did you mean Critic?" in result.err) == (6, True)


def test_missed(weft, rain):
    result = weft("board", "missed", "News", "rain")
    first, second = result.out.splitlines()
    assert "not delivered to Matcher.0: has no join key: it has no key" in first
    assert re.search(r"\w{26}  \d+  .*not delivered to Critic\.0: the turn failed: .*no opinion", (
        second))  # fmt: skip
    found = weft("board", "missed", "News", "--json").data["missed"]
    assert [(entry["run"], entry["why"]) for entry in found] == [
        (run_of(weft), "no_key"),
        (run_of(weft), "failed"),
    ]
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
    assert f"run {run_of(weft, 'c')} has ended and has no pending batches" in ended.err


def test_runs_of_other_packages_are_refused(weft, rain):
    run = lines(weft("run", "Support", "hi", "--model", "sample", "--json"))[-1]["run"]["run"]
    for words in (("flush", "News", run), ("missed", "News", run)):
        result = weft("board", *words)
        assert (result.code, "is a run of Support" in result.err) == (2, True)


# -- runs of boards


def test_runs_say_idle(weft, rain):
    listed = {row.split("\t")[0]: row.split("\t")[1] for row in weft("runs", "list").out.split("\n")
              if row}  # fmt: skip
    assert listed == {run_of(weft): "idle", run_of(weft, "News~Archive.0"): "idle"}
    assert "  status    idle: it waits for artifacts\n" in weft("runs", "show", "rain").out
    assert weft("runs", "show", "rain", "--json").data["run"]["status"] == "waiting"
    answered = weft("runs", "answer", "rain", "hello")
    assert answered.code == 2
    assert f"run {run_of(weft)} is idle; it has no open request" in answered.err


def test_tail(weft, rain, monkeypatch):
    monkeypatch.setattr(runs, "PATIENCE", 0.3)
    result = weft("runs", "tail", "rain")
    assert result.code == 0
    lead = ids_of(weft)["Lead"][-8:]
    assert f"ArtifactPublished  Scout publishes Lead {lead} (1 tag): " in result.out
    assert f"TurnStarted        turn 2: Editor is woken by Lead {lead}" in result.out
    assert "TimerSet           checks for activity at " in result.out
    assert result.err.splitlines()[-1].startswith(f"run {run_of(weft)} is idle")
    users = lines(weft("runs", "tail", "rain", "--as-user"))
    assert {user["event"]["kind"] for user in users} == {"RunStarted", "TurnStarted", "TurnEnded"}


def test_inspect_and_replay(weft, rain):
    page = weft("inspect", "rain")
    assert page.code == 0
    assert f"woken by Lead {ids_of(weft)['Lead'][-8:]} (Editor.0)" in page.out
    assert "redacted: source" in page.out
    board = weft("inspect", "rain", "--json").data["inspection"]["board"]
    assert board["correlation"] == "rain"
    assert weft("inspect", "rain@2").out.startswith(f"run {run_of(weft)}, turn 2: Editor\n")
    assert weft("inspect", "rain@2", "--against", "1").code == 0
    assert weft("replay", "rain", "--check").out.endswith("replay is identical\n")
    again = weft("replay", "rain")
    assert again.code == 0
    assert again.out == rain.out
    assert f"run {run_of(weft)} is idle" in again.err
    forked = weft("replay", "rain", "--fork", "2", "--model", "sample")
    assert forked.code == 0
    assert "Editor (sample) publishes Draft " in forked.out


def test_on_a_terminal(rain, board):
    with Terminal("board", "list", "News", cwd=board, columns=70) as terminal:
        terminal.end()
    assert "ARTIFACT" in terminal.shown
    assert all(len(line) <= 70 for line in terminal.shown.splitlines())
    with Terminal("board", "publish", "News", "Note", "text=skip", cwd=board) as terminal:
        terminal.end()
    assert "Guard is woken by Note" in terminal.shown
    assert "is idle" in terminal.shown


test_scenarios = scenario_tests(__file__)
