"""What an inspection says about boards that a host really played, and whether they replay."""

from dataclasses import replace

import pytest
from pydantic_core import from_json, to_json, to_jsonable_python

from support.board_play import AGENTS, ARTIFACTS, PEOPLE, TOPIC, news, play_board
from support.run_play import ADA
from weft.cli.pages.board import short_id
from weft.cli.pages.inspect import run_page, turn_page
from weft.cli.streams import Streams
from weft.engine.events import ArtifactPublished, TurnStarted
from weft.inspect.board import ArtifactRef, slice_records
from weft.inspect.replay import check_replay
from weft.inspect.run import inspect_run
from weft.inspect.turn import inspect_turn

NOTES = tuple(("Note", {"text": it, "ticket": it}) for it in ("skip", "block", "defer"))


def inspect(played):
    return inspect_run(played.workflow, played.run, played.events)


def page_of(played):
    return run_page(inspect(played), Streams())


@pytest.fixture(scope="module")
def story():
    return play_board(("Topic", TOPIC))


@pytest.fixture(scope="module")
def notes():
    return play_board(*NOTES)


def named(played, type_):
    """Return the id of the artifact of a type, and how it stands in a line."""
    (found,) = [
        it.data.id
        for it in played.events
        if isinstance(it.data, ArtifactPublished) and it.data.type == type_
    ]
    return found, short_id(found)


def turn_of(played, agent, number=0):
    return [it for it in inspect(played).turns if it.agent == agent][number].board


def test_what_woke_an_agent_and_what_it_published(story):
    board = turn_of(story, "Scout")
    assert board.subscription == "Scout.0"
    topic, short_topic = named(story, "Topic")
    assert board.inputs == (ArtifactRef(topic, "Topic"),)
    (lead,) = board.published
    assert (lead.type, lead.by, lead.tags, lead.wakes) == ("Lead", "Scout", ("hot",), ("Editor.0",))
    page = page_of(story)
    assert f"     woken by Topic {short_topic} (Scout.0)\n" in page
    assert f"     Scout publishes Lead {short_id(lead.id)} tagged hot, for Editor.0\n" in page
    assert "     tools.work:scout works: done (" in page


def test_who_furnished_what_and_what_was_redacted(story):
    (given,) = turn_of(story, "Editor").slices
    assert given.provider == "CompositeProvider(RedactingProvider(DefaultCorrelationProvider))"
    lead, short_lead = named(story, "Lead")
    topic, short_topic = named(story, "Topic")
    assert given.items == (ArtifactRef(lead, "Lead"), ArtifactRef(topic, "Topic"))
    assert given.redacted == ("source",)
    assert (given.foreign, given.engines, given.instead_of) == (0, (0,), "")
    assert given.ms >= 0
    assert given.started_at > 0
    page = page_of(story)
    assert f"     context: 2 items from {given.provider} (" in page
    assert f"         Lead {short_lead}, Topic {short_topic}\n         redacted: source\n" in page


def test_a_fallback_says_why_it_serves(story):
    (given,) = turn_of(story, "Auditor").slices
    assert (given.provider, given.instead_of) == ("RecentProvider", "broken")
    assert given.error == "the provider broken failed: RuntimeError: no index"
    assert "         instead of broken: the provider broken failed: RuntimeError" in page_of(story)


def test_foreign_items_are_counted_and_not_named(story):
    (given,) = turn_of(story, "Critic").slices
    assert given.foreign == 1
    assert given.items == (ArtifactRef("", "Hint"),)
    page = page_of(story)
    assert "         dropped 1 item that the agent may not see\n" in page
    assert "elsewhere" not in page


def test_a_failed_turn_and_what_it_leaves(story):
    record = next(it for it in inspect(story).turns if it.agent == "Critic")
    assert record.board is not None
    (missed,) = record.board.missed
    assert (missed.subscription, missed.why) == ("Critic.0", "failed")
    assert missed.detail == record.error
    assert [it.hook for it in record.points] == ["engine", "error"]
    page = page_of(story)
    _, verdict = named(story, "Verdict")
    assert f"     not delivered to Critic.0: the turn failed ({verdict})" in page
    assert "     components are notified of the failed turn: done" in page


def test_the_board_beside_its_turns(story):
    board = inspect(story).board
    assert board is not None
    assert board.correlation == "c"
    assert [(it.type, it.by) for it in board.published] == [("Topic", "user:ada")]
    assert [(it.subscription, it.why) for it in board.missed] == [("Matcher.0", "no_key")]
    assert board.waiting == ()
    assert page_of(story).startswith("run c of News: idle\n")


def test_skipped_blocked_and_deferred(notes):
    skipped, blocked, deferred = (turn_of(notes, "Guard", it) for it in range(3))
    assert (skipped.verdict, skipped.detail) == ("skip", "by Gate.before_schedule")
    assert [it.why for it in skipped.missed] == ["skipped"]
    assert (blocked.verdict, [it.why for it in blocked.missed]) == ("block", ["blocked"])
    assert deferred.verdict == "defer"
    assert deferred.deferred_until is not None
    page = page_of(notes)
    assert "     components say skip: by Gate.before_schedule\n" in page
    (note,) = blocked.inputs
    told = f"blocked: by Gate.before_schedule ({short_id(note.id)})"
    assert f"     not delivered to Guard.0: {told}\n" in page
    assert "     deferred until " in page


def test_what_waits_and_for_what(notes):
    board = inspect(notes).board
    assert board is not None
    waits = {(it.subscription, it.what): len(it.artifacts) for it in board.waiting}
    assert waits[("Matcher.0", "for others")] == 1
    two = play_board(*NOTES[:2])
    batch = next(it for it in inspect(two).board.waiting if it.what == "for a batch")
    assert [it.type for it in batch.artifacts] == ["Note", "Note"]
    assert (
        f"  Clerk.0: {', '.join(f'Note {it.id}' for it in batch.artifacts)} wait for a batch"
        in (page_of(two))
    )


def test_what_is_not_visible_yet_waits():
    later = play_board(("Topic", TOPIC), visibility={"kind": "after", "seconds": 3600})
    board = inspect(later).board
    assert board is not None
    (it,) = board.waiting
    assert (it.subscription, it.what) == ("Scout.0", "until it is visible")


async def _collection(_host, _made):
    return "News~Archive.0"


def test_a_run_that_collects_for_all():
    played = play_board(("Verdict", {"ticket": 1}), ("Verdict", {"ticket": 2}), after=_collection)
    board = inspect(played).board
    assert board is not None
    assert (board.collects, len(board.arrived)) == ("Archive.0", 2)
    (turn,) = inspect(played).turns
    assert turn.board is not None
    assert [it.type for it in turn.board.inputs] == ["Verdict", "Verdict"]
    page = page_of(played)
    assert "  collects artifacts of all correlations for Archive.0\n" in page
    told = f"user:ada publishes Verdict {short_id(board.arrived[0].id)}"
    assert f"  from another run: {told}, for Archive.0\n" in page
    assert check_replay(played.workflow, played.run, played.events) == []


def test_what_is_over_budget_is_left_out():
    context = [{"kind": "board", "max_tokens": 25}, {"kind": "history"}]
    people = [{**it, "context": context} if it["agent_name"] == "Editor" else it for it in PEOPLE]
    played = play_board(("Topic", TOPIC), spec=news(agents=people))
    (out,) = turn_of(played, "Editor").left_out
    topic, short_topic = named(played, "Topic")
    assert (out.call, out.items) == (1, (topic,))
    assert f"     left out of call 1: {short_topic}, {out.reason}\n" in page_of(played)


def test_a_turn_with_what_its_model_was_sent(story):
    looked = inspect_turn(story.workflow, story.run, story.events, 2)
    (prompt,) = looked.prompts
    assert prompt.same
    assert [it.origin for it in prompt.slices if it.kind == "board"] == ["standard"]
    page = turn_page(looked, Streams())
    assert "  [board standard] system, " in page
    assert f"     woken by Lead {named(story, 'Lead')[1]} (Editor.0)\n" in page


def test_everything_is_json(story, notes):
    for played in (story, notes):
        found = to_jsonable_python(inspect(played))
        assert from_json(to_json(found)) == found
        assert found["turns"][0]["board"]["subscription"]


def test_metadata_of_any_shape_is_read():
    odd = {"redacted": None, "providers": [3, {"redacted": ["b", 1]}, {"providers": None}]}
    given = {"provider": "p", "items": [], "metadata": odd, "foreign": 0, "started_at": 0, "ms": 1}
    (found,) = slice_records({"slices": [given], "engines": [0, 0]})
    assert (found.redacted, found.engines) == (("b",), (0, 1))


@pytest.mark.parametrize("name", ["story", "notes"])
def test_boards_replay(name, request):
    played = request.getfixturevalue(name)
    assert check_replay(played.workflow, played.run, played.events) == []


def changed(played, kind, change):
    """Return the events with one of a kind changed."""
    place = played.at(kind)
    data = replace(place.data, **change)
    return [it._replace(data=data) if it is place else it for it in played.events]


def test_another_publication_is_found(story):
    lead = next(it for it in story.events if it.turn and isinstance(it.data, ArtifactPublished))
    other = replace(lead.data, payload={"title": "Sun"})
    events = [it._replace(data=other) if it is lead else it for it in story.events]
    found = check_replay(story.workflow, story.run, events)
    assert (found[0].seq, found[0].what) == (lead.seq, "something else would follow")


def test_other_inputs_are_found(story):
    events = changed(story, TurnStarted, {"inputs": ("c.1",)})
    (first, *_) = check_replay(story.workflow, story.run, events)
    assert first.seq == story.at(TurnStarted).seq
    assert first.expected["data"]["inputs"] == [named(story, "Topic")[0]]


def test_an_agent_that_left_the_board_is_a_stranger(story):
    fewer = [it for it in AGENTS if it["agent"] != "Critic"]
    people = [it for it in PEOPLE if it["agent_name"] != "Critic"]
    spec = news(agents=people, board={"artifacts": ARTIFACTS, "agents": fewer})
    other = play_board(("Topic", TOPIC), spec=spec).workflow
    (found,) = check_replay(other, story.run, story.events)
    assert found.what == "the agent whose turn it is is not in this version of the package"


async def _fork(host, made):
    return await host.fork(made.run, scope=ADA, turn=2)


def test_a_fork_of_a_board_can_be_looked_at():
    played = play_board(("Topic", TOPIC), after=_fork)
    inspection = inspect(played)
    assert inspection.parent == "c"
    assert [it.agent for it in inspection.turns] == ["Scout", "Editor", "Auditor", "Critic"]
    assert check_replay(played.workflow, played.run, played.events) == []
