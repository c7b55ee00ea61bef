"""Handoffs to whom a message is nearest to: compared once, recorded, without a language model."""

import asyncio

import pytest

from support.boundary_play import Kept, declared, derived, of
from support.cases import read_cases
from support.retrieval_play import local_model
from support.run_play import ADA, play, read
from weft.app.embeddings import open_embedder
from weft.check.run import check
from weft.check.subject import Subject
from weft.cli.pages.events import summary
from weft.engine.events import ConditionJudged, HandedOff, RunEnded
from weft.errors import RetrievalError, RunError, SetupError
from weft.inspect.replay import check_replay
from weft.inspect.run import inspect_run
from weft.ports.external import ExternalPorts
from weft.ports.model import ModelReply
from weft.testing import WordEmbedder
from weft.testing.hosts import host_for

CASES = read_cases(__file__)

UNATTENDED = {"human_in_the_loop": False}
SILENT = {**UNATTENDED, "startup_mode": "BackendOnly"}
ENDS = [{"source_agent": name, "target_agent": "terminate"} for name in ("B", "C", "D")]
OTHERWISE = {"source_agent": "A", "target_agent": "D"}


def near(target, words, **options):
    return {
        "source_agent": "A",
        "target_agent": target,
        "condition": words,
        "condition_type": "nearest",
        **options,
    }


TO_B = near("B", "money back, refund of an order")
TO_C = near("C", "the app crashes with an error")


def routed(*rules, orchestrator=UNATTENDED, **rest):
    handoffs = [*rules, OTHERWISE, *ENDS]
    return declared(*"ABCD", handoffs=handoffs, orchestrator=orchestrator, **rest)


class Speaker:
    """Speaks for agents by their names; it never judges."""

    def __init__(self):
        self.spoke = []

    async def reply(self, request, _on_text=None):
        assert request.output is None
        self.spoke.append(request.agent)
        return ModelReply(f"I am {request.agent}")


class Failing(WordEmbedder):
    """Embeds nothing."""

    def __init__(self, error):
        super().__init__()
        self._error = error

    async def embed(self, texts):
        raise self._error


def played(spec, message, embedder=None, **options):
    model = Speaker()
    outside = ExternalPorts(embedder=embedder or WordEmbedder())
    found = play(spec, model, message=message, outside=outside, **options)
    assert check_replay(found.workflow, found.run, found.events) == []
    return model.spoke, found


@pytest.mark.parametrize(
    ("message", "next_"),
    [
        ("I want a refund, my money back", "B"),
        ("with an error the app crashes", "C"),
        ("hello?", "D"),
    ],
)
def test_the_rule_whose_description_is_nearest_to_the_users_message_holds(message, next_):
    spoke, run = played(routed(TO_B, TO_C), message)
    assert spoke == ["A", next_]
    (judged,) = of(run, ConditionJudged)
    assert (judged.rule, judged.error, judged.model) == (0, "", "words")
    assert list(judged.scores) == ["0", "1"]
    assert judged.holds is (next_ == "B")
    (handed,) = [event for event in of(run, HandedOff) if event.source == "A"]
    assert (handed.target, handed.rule) == (next_, "BCD".index(next_))


@pytest.mark.parametrize(("threshold", "next_"), [(0.9, "D"), (0.1, "B")])
def test_it_holds_only_if_it_is_as_near_as_its_threshold(threshold, next_):
    spoke, _ = played(routed({**TO_B, "threshold": threshold}, TO_C), "refund of what?")
    assert spoke == ["A", next_]


def test_another_that_is_less_near_does_not_take_its_place():
    near_enough = {**TO_C, "threshold": 0.0}
    spoke, _ = played(routed({**TO_B, "threshold": 0.9}, near_enough), "refund of the order")
    assert spoke == ["A", "D"]


def test_before_the_turn_it_is_compared_once_and_not_again_inside_it():
    before = {**TO_B, "condition_scope": "pre"}
    spoke, run = played(routed(before, TO_C), "refund of an order")
    assert spoke == ["B"]
    (judged,) = of(run, ConditionJudged)
    assert list(judged.scores) == ["0"], "rules after the turn are compared after it"
    spoke, run = played(routed(before, TO_C), "the app crashes")
    assert spoke == ["A", "C"]
    assert [list(event.scores) for event in of(run, ConditionJudged)] == [["0"], ["1"]]


def test_other_rules_are_asked_in_their_order_and_nothing_is_compared_in_vain():
    known = {"source_agent": "A", "target_agent": "C", "condition": "done", "priority": 0}
    embedder = WordEmbedder()
    spec = routed(known, TO_B, variables={"done": derived("bool", True)})
    spoke, run = played(spec, "refund", embedder)
    assert spoke == ["A", "C"]
    assert embedder.texts == []
    between = {**known, "priority": 1}
    spec = routed(TO_B, between, {**TO_C, "priority": 2}, variables={"done": derived("bool", True)})
    spoke, run = played(spec, "the app crashes")
    assert spoke == ["A", "C"]
    assert [event.rule for event in of(run, HandedOff) if event.source == "A"] == [1]


def test_values_stand_in_descriptions_if_the_agent_may_see_them():
    embedder = WordEmbedder()
    rules = near("B", "{topic} of an order"), near("C", "${hidden} things")
    hidden = {**derived("str", "canary"), "readers": ["B"]}
    variables = {"topic": derived("str", "refund"), "hidden": hidden}
    spec = routed(*rules, variables=variables, exposure={"A": ["topic"]})
    spoke, _ = played(spec, "the refund of the order", embedder)
    assert spoke == ["A", "B"]
    assert "refund of an order" in embedder.texts
    assert "canary" not in str(embedder.texts)


def test_the_user_counts_before_the_agent_and_the_agent_where_no_user_spoke():
    class Echo(Speaker):
        async def reply(self, request, _on_text=None):
            await super().reply(request)
            return ModelReply("the app crashes with an error")

    cases = (("refund of an order", UNATTENDED, "B"), (None, SILENT, "C"))
    for message, orchestrator, next_ in cases:
        model = Echo()
        spec = routed(TO_B, TO_C, orchestrator=orchestrator)
        play(spec, model, message=message, outside=ExternalPorts(embedder=WordEmbedder()))
        assert model.spoke == ["A", next_]


def test_empty_message_matches_no_description():
    spec = routed({**TO_B, "condition_scope": "pre"}, orchestrator=SILENT)
    embedder = WordEmbedder()
    spoke, run = played(spec, None, embedder)
    assert spoke == ["A", "D"]
    assert of(run, ConditionJudged)[0].scores == {"0": 0.0}
    assert embedder.texts == []


@pytest.mark.parametrize("error", [RetrievalError("down"), ValueError("odd"), TimeoutError()])
def test_embeddings_that_fail_end_the_run_explained(error):
    spoke, run = played(routed(TO_B), "refund", Failing(error))
    assert spoke == ["A"]
    (judged,) = of(run, ConditionJudged)
    assert judged.error
    assert judged.scores == {}
    ended = run.at(RunEnded).data
    assert (ended.outcome, ended.reason) == (
        "failed",
        f"a condition of A could not be judged: {judged.error}",
    )


async def test_without_embeddings_no_run_begins():
    async with host_for(routed(TO_B), Speaker()) as host:
        with pytest.raises(SetupError, match="a handoff of A is of the type nearest") as refused:
            await host.start("W", scope=ADA, message="refund")
        assert "weft embeddings install" in refused.value.hint
        assert "WEFT_EMBEDDINGS" in refused.value.hint
        assert await host.runs(scope=ADA) == []


class Hanging(WordEmbedder):
    """Never answers."""

    def __init__(self):
        super().__init__()
        self.asked = asyncio.Event()

    async def embed(self, texts):
        self.asked.set()
        await asyncio.Event().wait()


async def test_run_continues_only_with_embeddings():
    spec, journal = routed(TO_B), Kept()
    embedder = Hanging()
    hanging = ExternalPorts(embedder=embedder)
    async with host_for(spec, Speaker(), store=journal, outside=hanging) as host:
        run = await host.start("W", scope=ADA, message="refund of an order")
        await embedder.asked.wait()
    async with host_for(spec, Speaker(), store=journal) as host:
        with pytest.raises(SetupError):
            await host.resume(run, scope=ADA)
        await host.recover()
        with pytest.raises(RunError, match="weft embeddings install"):
            await host.settled(run, scope=ADA)
    with_words = ExternalPorts(embedder=WordEmbedder())
    async with host_for(spec, Speaker(), store=journal, outside=with_words) as host:
        await host.resume(run, scope=ADA, take_over=True)
        await host.settled(run, scope=ADA)
        run = await read(host, run)
    assert [event.target for event in of(run, HandedOff) if event.source == "A"] == ["B"]


def test_comparisons_are_shown():
    _, run = played(routed(TO_B, TO_C), "the app crashes with an error")
    event = run.at(ConditionJudged)
    assert summary(event, run.workflow) == (
        "compared the messages with the descriptions of B 0.17, C 1.00"
    )
    page = inspect_run(run.workflow, run.run, run.events)
    [asked] = [
        handoff.evaluated
        for turn in page.turns
        for handoff in turn.handoffs
        if handoff.source == "A"
    ]
    assert [(item.target, item.verdict) for item in asked] == [
        ("B", "no, similarity 0.17"),
        ("C", "yes, similarity 1.00"),
    ]


def codes(spec):
    return [finding.code for finding in check(Subject(spec=spec, folder="W", code={}))]


def test_it_needs_no_llm_conditions_and_may_hold_as_far_as_the_checker_knows():
    found = codes(routed(TO_B, TO_C))
    assert not [text for text in found if text.startswith("HAND")]


DESKS = {
    "B": "I want a refund, or something is wrong with a payment or an invoice",
    "C": "The app crashes, shows an error, or does not let me log in",
    "D": "Where a shop is, and when it is open",
}


@pytest.mark.parametrize(
    ("message", "next_"), CASES["test_a_real_model_routes_messages_by_what_they_mean"]
)
def test_a_real_model_routes_messages_by_what_they_mean(message, next_):
    embedder = open_embedder({**local_model(), "WEFT_EMBEDDINGS": "local"})
    rules = [near(target, words) for target, words in DESKS.items()]
    otherwise = {"source_agent": "A", "target_agent": "terminate"}
    spec = declared(*"ABCD", handoffs=[*rules, otherwise, *ENDS], orchestrator=UNATTENDED)
    _, run = played(spec, message, embedder)
    assert [event.target for event in of(run, HandedOff) if event.source == "A"] == [next_]
