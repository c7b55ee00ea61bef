"""Models that ask nobody's machine: a person, a recorded run; and what a call costs."""

from collections.abc import Sequence

import pytest

from support.engine_play import workflow
from support.model_play import LOOKUP, Canned, ask, run, said
from weft.adapters.models.recorded import PersonModel, RecordedModel
from weft.adapters.models.usage import Priced, PriceList
from weft.context.history import HistoryLimits
from weft.context.prompt import assemble, digest_of
from weft.context.view import View, extras
from weft.engine.events import (
    ContextAssembled,
    Event,
    EventData,
    ModelFailed,
    ModelReplied,
    RequestAnswered,
    RequestOpened,
    RunStarted,
    ToolRequest,
    Usage,
)
from weft.engine.reduce import fold
from weft.errors import ModelError, ReplayMismatch
from weft.ports.model import ChatMessage, ModelReply, ModelRequest, OutputSchema

VERDICT = OutputSchema("Verdict", {"type": "object"})

#: No tools and no output are sent beside the messages.
NOTHING = extras((), None)


def person(reply: ModelReply, request: ModelRequest) -> ModelReply:
    async def answer(_: ModelRequest) -> ModelReply:
        return reply

    return run(PersonModel(answer).reply(request))


def test_a_person_answers_and_it_shows():
    reply = person(ModelReply("Hello", usage=Usage(7, 7)), ask())
    assert (reply.text, reply.answerer, reply.model) == ("Hello", "you", "you")
    assert reply.usage.cost_usd == 0.0


def test_a_person_may_call_tools():
    call = ToolRequest("1", "lookup", {"order": "A1"})
    request = ask(tools=(LOOKUP,), output=VERDICT)
    assert person(ModelReply("", (call,)), request).tool_requests == (call,)


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (ModelReply("", (ToolRequest("1", "lookupp", {}),)), "did you mean lookup"),
        (ModelReply("", (ToolRequest("1", "zzz", {}),)), "available: lookup"),
        (ModelReply("", (ToolRequest("1", "lookup", {"x": object()}),)), "not JSON"),
        (ModelReply("", (ToolRequest("1", "lookup", {}),) * 2), "same identity"),
        (ModelReply("no json"), "must be JSON that fits Verdict"),
    ],
)
def test_answers_that_are_refused(reply: ModelReply, fault: str):
    with pytest.raises(ModelError, match=fault) as caught:
        person(reply, ask(tools=(LOOKUP,), output=VERDICT))
    assert caught.value.retryable


def test_without_tools_none_can_be_called():
    with pytest.raises(ModelError, match="available: none"):
        person(ModelReply("", (ToolRequest("1", "lookup", {}),)), ask())


def test_message_of_a_person_is_delivered():
    async def answer(request: ModelRequest) -> ModelReply:
        return ModelReply(request.agent if request.agent == "Helper" else "")

    heard: list[str] = []
    run(PersonModel(answer).reply(ask(), heard.append))
    run(PersonModel(answer).reply(ask(agent="Silent"), heard.append))
    assert heard == ["Helper"]


def recorded(*entries: tuple[str, Sequence[ChatMessage], EventData]) -> RecordedModel:
    events: list[Event] = [Event(1, 0, "user", 0, 0, RunStarted("W", "d", "a", "u", {}))]
    for turn, (agent, messages, answer) in enumerate(entries, start=1):
        seq = len(events) + 1
        context = ContextAssembled(agent, 1, {}, digest_of(messages, NOTHING))
        events.append(Event(seq, 0, "engine", seq - 1, turn, context))
        events.append(Event(seq + 1, 0, f"agent:{agent}", seq, turn, answer))
    return RecordedModel("old", events)


HELLO = [said("user", "Hello")]
BYE = [said("user", "Bye")]


def test_recorded_answers_come_back_for_the_same_call():
    call = ToolRequest("c", "lookup", {"order": "A1"})
    model = recorded(
        ("A", HELLO, ModelReplied(1, "first", usage=Usage(3, 4), model="m")),
        ("B", HELLO, ModelReplied(1, "other", (call,))),
        ("A", BYE, ModelReplied(1, "second", finish_reason="length")),
    )
    heard: list[str] = []
    second = run(model.reply(ask(*HELLO, agent="B", turn=2), heard.append))
    first = run(model.reply(ask(*HELLO, agent="A"), heard.append))
    assert second.tool_requests == (call,)
    assert (first.text, first.model, first.answerer) == ("first", "m", "replay")
    assert first.usage.cost_usd == 0.0
    assert run(model.reply(ask(*BYE, agent="A", turn=3))).text == "second"
    assert run(model.reply(ask(*BYE, agent="A", turn=3))).text == "second"
    assert run(model.reply(ask(*BYE, agent="A", turn=3))).finish_reason == "length"
    assert first.finish_reason == ""
    assert heard == ["other", "first"]


def test_silent_replies_are_not_sent():
    model = recorded(("A", HELLO, ModelReplied(1, "")))
    heard: list[str] = []
    run(model.reply(ask(*HELLO, agent="A"), heard.append))
    assert heard == []


def test_a_failure_is_recorded_too():
    model = recorded(("A", HELLO, ModelFailed(1, "too busy")))
    with pytest.raises(ModelError, match="recorded: too busy"):
        run(model.reply(ask(*HELLO, agent="A")))


def test_a_call_too_many_is_loud():
    model = recorded(("A", HELLO, ModelReplied(1, "x")))
    for turn, call in ((1, 2), (2, 1)):
        with pytest.raises(
            ReplayMismatch, match=f"recorded answer for A, turn {turn}, call {call}"
        ):
            run(model.reply(ask(*HELLO, agent="A", turn=turn, call=call)))
    with pytest.raises(ReplayMismatch, match="run old has no recorded answer for B, turn 1"):
        run(model.reply(ask(*HELLO, agent="B")))


def test_another_request_is_loud():
    model = recorded(("A", HELLO, ModelReplied(1, "x")))
    with pytest.raises(ReplayMismatch, match="A, turn 1, call 1: the request differs") as caught:
        run(model.reply(ask(*BYE, agent="A")))
    assert digest_of(HELLO, NOTHING)[:12] in str(caught.value)
    assert digest_of(BYE, NOTHING)[:12] in str(caught.value)


def test_an_answer_to_nothing_is_loud():
    with pytest.raises(ReplayMismatch, match="event 4"):
        RecordedModel("old", [Event(4, 0, "agent:A", 3, 1, ModelReplied(1, "x"))])


def test_the_digest_is_the_one_of_the_journal():
    compiled = workflow()
    begun = (
        RunStarted("W", "d", "a", "u", {}, with_message=True),
        RequestOpened("r:1", "chat", "A"),
        RequestAnswered("r:1", "Gr\u00fc\u00df Gott", "u"),
    )
    events = [Event(seq, 0, "user", 0, 0, data) for seq, data in enumerate(begun, start=1)]
    history = HistoryLimits("history", "standard", 100)
    view = View("A", (history,), (), (), None, extras=NOTHING)
    assembly = assemble(view, fold(compiled, "r", events), 0)
    assert assembly.messages == [said("user", "Gr\u00fc\u00df Gott")]
    assert digest_of(assembly.messages, NOTHING) == assembly.digest


PRICES = PriceList({"openai:own": (1.0, 2.0), "bare": (10.0, 20.0)})


def cost(usage: Usage, provider: str | None, *names: str) -> float | None:
    return PRICES.cost(usage, provider=provider, names=names)


def test_own_prices_go_first():
    used = Usage(1_000_000, 500_000)
    assert cost(used, "openai", "openai:own", "gpt-4o") == 2.0
    assert cost(used, None, "x:bare", "bare") == 20.0


def test_public_prices_are_known_and_caching_counts():
    full = cost(Usage(1_000_000, 0), "openai", "gpt-4o")
    cached = cost(Usage(1_000_000, 0, 1_000_000), "openai", "gpt-4o")
    assert full is not None
    assert cached is not None
    assert 0 < cached < full
    assert cost(Usage(1_000_000, 0), "openai", "no-such-name", "gpt-4o") == full


@pytest.mark.parametrize(
    ("usage", "provider", "name"),
    [
        (Usage(None, 5), "openai", "gpt-4o"),
        (Usage(5, None), "openai", "gpt-4o"),
        (Usage(5, 5), "openai", "no-such-model"),
        (Usage(5, 5), "no-such-provider", "gpt-4o"),
        (Usage(5, 5), None, "gpt-4o"),
        (Usage(5, 5, 50), "openai", "gpt-4o"),
    ],
)
def test_unknown_values_stay_unknown(usage: Usage, provider: str | None, name: str):
    assert cost(usage, provider, name) is None


def test_replies_carry_their_cost():
    model = Priced(
        Canned(ModelReply("a", usage=Usage(1_000_000, 0), model="bare"), ModelReply("b")),
        PRICES,
        provider=None,
        names=("openai:own", "own"),
    )
    priced, unpriced = run(model.reply(ask())), run(model.reply(ask()))
    assert priced.usage == Usage(1_000_000, 0, None, 10.0)
    assert unpriced.usage.cost_usd is None


def test_the_name_that_was_asked_for_counts_where_the_reply_names_none():
    model = Priced(
        Canned(ModelReply("a", usage=Usage(1_000_000, 0))), PRICES, provider=None, names=("bare",)
    )
    assert run(model.reply(ask())).usage.cost_usd == 10.0
