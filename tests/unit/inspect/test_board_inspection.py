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

NOTES = tuple(("Note", {"text": name, "ticket": name}) for name in ("skip", "block", "defer"))


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
        event.data.id
        for event in played.events
        if isinstance(event.data, ArtifactPublished) and event.data.type == type_
    ]
    return found, short_id(found)


def turn_of(played, agent, number=0):
    return [turn for turn in inspect(played).turns if turn.agent == agent][number].board


def test_agents_are_shown_with_inputs_and_publications(story):
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


def test_providers_and_redactions_are_shown(story):
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


def test_a_fallback_records_its_reason(story):
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
    record = next(turn for turn in inspect(story).turns if turn.agent == "Critic")
    assert record.board is not None
    (missed,) = record.board.missed
    assert (missed.subscription, missed.why) == ("Critic.0", "failed")
    assert missed.detail == record.error
    assert [point.hook for point in record.points] == ["engine", "error"]
    page = page_of(story)
    _, verdict = named(story, "Verdict")
    assert f"     not delivered to Critic.0: the turn failed ({verdict})" in page
    assert "     components are notified of the failed turn: done" in page


def test_the_board_beside_its_turns(story):
    board = inspect(story).board
    assert board is not None
    assert board.correlation == "c"
    assert [(item.type, item.by) for item in board.published] == [("Topic", "user:ada")]
    assert [(delivery.subscription, delivery.why) for delivery in board.missed] == [
        ("Matcher.0", "no_key")
    ]
    assert board.waiting == ()
    assert page_of(story).startswith(f"run {story.run} of News: idle\n")


def test_skipped_blocked_and_deferred(notes):
    skipped, blocked, deferred = (turn_of(notes, "Guard", number) for number in range(3))
    assert (skipped.verdict, skipped.detail) == ("skip", "by Gate.before_schedule")
    assert [delivery.why for delivery in skipped.missed] == ["skipped"]
    assert (blocked.verdict, [delivery.why for delivery in blocked.missed]) == (
        "block",
        ["blocked"],
    )
    assert deferred.verdict == "defer"
    assert deferred.deferred_until is not None
    page = page_of(notes)
    assert "     components say skip: by Gate.before_schedule\n" in page
    (note,) = blocked.inputs
    told = f"blocked: by Gate.before_schedule ({short_id(note.id)})"
    assert f"     not delivered to Guard.0: {told}\n" in page
    assert "     deferred until " in page


def test_waiting_artifacts_and_reasons(notes):
    board = inspect(notes).board
    assert board is not None
    waits = {
        (delivery.subscription, delivery.what): len(delivery.artifacts)
        for delivery in board.waiting
    }
    assert waits[("Matcher.0", "for others")] == 1
    two = play_board(*NOTES[:2])
    batch = next(item for item in inspect(two).board.waiting if item.what == "for a batch")
    assert [artifact.type for artifact in batch.artifacts] == ["Note", "Note"]
    notes = ", ".join(f"Note {artifact.id}" for artifact in batch.artifacts)
    assert f"  Clerk.0: {notes} wait for a batch" in page_of(two)


def test_delayed_artifact_waits():
    later = play_board(("Topic", TOPIC), visibility={"kind": "after", "seconds": 3600})
    board = inspect(later).board
    assert board is not None
    (record,) = board.waiting
    assert (record.subscription, record.what) == ("Scout.0", "until it is visible")


async def _collection(host, _made):
    return await host.run_of("News", "News~Archive.0", scope=ADA)


def test_a_run_that_collects_for_all():
    played = play_board(("Verdict", {"ticket": 1}), ("Verdict", {"ticket": 2}), after=_collection)
    board = inspect(played).board
    assert board is not None
    assert (board.collects, len(board.arrived)) == ("Archive.0", 2)
    (turn,) = inspect(played).turns
    assert turn.board is not None
    assert [input_.type for input_ in turn.board.inputs] == ["Verdict", "Verdict"]
    page = page_of(played)
    assert "  collects artifacts of all correlations for Archive.0\n" in page
    told = f"user:ada publishes Verdict {short_id(board.arrived[0].id)}"
    assert f"  from another run: {told}, for Archive.0\n" in page
    assert check_replay(played.workflow, played.run, played.events) == []


def test_parts_over_budget_are_left_out():
    context = [{"kind": "board", "max_tokens": 25}, {"kind": "history"}]
    people = [
        {**person, "context": context} if person["agent_name"] == "Editor" else person
        for person in PEOPLE
    ]
    played = play_board(("Topic", TOPIC), spec=news(agents=people))
    (out,) = turn_of(played, "Editor").left_out
    topic, short_topic = named(played, "Topic")
    assert (out.call, out.items) == (1, (topic,))
    assert f"     left out of call 1: {short_topic}, {out.reason}\n" in page_of(played)


def test_a_turn_with_what_its_model_was_sent(story):
    looked = inspect_turn(story.workflow, story.run, story.events, 2)
    (prompt,) = looked.prompts
    assert prompt.same
    assert [slice_.origin for slice_ in prompt.slices if slice_.kind == "board"] == ["standard"]
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
    return [event._replace(data=data) if event is place else event for event in played.events]


def test_another_publication_is_found(story):
    lead = next(
        event for event in story.events if event.turn and isinstance(event.data, ArtifactPublished)
    )
    other = replace(lead.data, payload={"title": "Sun"})
    events = [event._replace(data=other) if event is lead else event for event in story.events]
    found = check_replay(story.workflow, story.run, events)
    assert (found[0].seq, found[0].what) == (lead.seq, "something else would follow")


def test_other_inputs_are_found(story):
    events = changed(story, TurnStarted, {"inputs": ("c.1",)})
    (first, *_) = check_replay(story.workflow, story.run, events)
    assert first.seq == story.at(TurnStarted).seq
    assert first.expected["data"]["inputs"] == [named(story, "Topic")[0]]


def test_an_agent_that_left_the_board_is_a_stranger(story):
    fewer = [agent for agent in AGENTS if agent["agent"] != "Critic"]
    people = [person for person in PEOPLE if person["agent_name"] != "Critic"]
    spec = news(agents=people, board={"artifacts": ARTIFACTS, "agents": fewer})
    other = play_board(("Topic", TOPIC), spec=spec).workflow
    (found,) = check_replay(other, story.run, story.events)
    assert found.what == "the agent of this turn is not in this version of the package"


def test_a_fork_of_a_board_can_be_looked_at():
    parents = []

    async def fork(host, made):
        parents.append(made.run)
        return await host.fork(made.run, scope=ADA, turn=2)

    played = play_board(("Topic", TOPIC), after=fork)
    inspection = inspect(played)
    assert [inspection.parent] == parents
    assert [turn.agent for turn in inspection.turns] == ["Scout", "Editor", "Auditor", "Critic"]
    assert check_replay(played.workflow, played.run, played.events) == []
