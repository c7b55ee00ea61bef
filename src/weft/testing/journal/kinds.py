"""One event of every kind, with values of every type, as samples."""

from typing import Final

from weft.engine import events
from weft.engine.events import EventData
from weft.findings import Json

#: Whatever JSON can hold, nested.
ANYTHING: Final[dict[str, Json]] = {
    "nothing": None,
    "yes": True,
    "whole": -(2**70),
    "part": 0.1,
    "text": "äöü \x00 🙂",
    "list": [[], {}, [1, "2", None]],
    "": {"deep": {"deeper": {"deepest": False}}},
}

EVERY_KIND: Final[tuple[EventData, ...]] = (
    events.RunStarted("Support", "digest-1", "shop", "ann", ANYTHING, with_message=True, model="m"),
    events.RunStarted("Support", "digest-1", "shop", "ann", {}),
    events.RunForked("other", 7, "openai:small"),
    events.MessageShown("Welcome."),
    events.TurnStarted("Helper"),
    events.TurnStarted("Helper", fork=3),
    events.ContextAssembled("Helper", 1, ANYTHING, "hash"),
    events.ModelReplied(call=1, text="Let me see."),
    events.ModelReplied(
        call=2,
        text="",
        tool_requests=(
            events.ToolRequest("c1", "find", ANYTHING),
            events.ToolRequest("c2", "find", {}, fault="id is missing"),
        ),
        usage=events.Usage(120, 12, 0, 0.000_123),
        model="a-model",
        answerer="sample",
        finish="length",
        instead_of="openai:small, which gave no answer: it is busy",
        shown="Let me see.",
        retries=("attempt 1 of 4: it is busy",),
    ),
    events.ModelFailed(
        call=3, error="the model did not answer", attempts=2, retries=("attempt 1",)
    ),
    events.OutputRefused(call=2, fault="field `total` is missing"),
    events.ToolCalled("c1", "find", ANYTHING),
    events.ToolCalled("c2", "find", {}, auto=True),
    events.ToolCalled("c3", "hooks/audit.py:note", {}, point="before_agent"),
    events.ToolReturned("c1", ANYTHING),
    events.ToolReturned("c1", None, progress=(0.5, "half of it")),
    events.ToolFailed("c2", "no such order", "refused"),
    events.ModelConsulted("c1", "hash", "42", events.Usage(7, 1, None, None), "a-model", "sample"),
    events.SurfaceShown("c1", 0, "show_board", "Board", "artifact", ANYTHING),
    events.MessageSent("Helper", "It is on its way."),
    events.ContextFetched({"plan": ANYTHING}, {"limit": "the store gave no answer in time"}),
    events.ContextFetched({}, {}, tools={"shop": [ANYTHING], "empty": []}),
    events.DocumentWritten("order", 9),
    events.DocumentWritten("order", 9, fault="the store gave no answer in time"),
    events.ConditionJudged(
        0, holds=True, text="{}", usage=events.Usage(9, 2, 0, 0.1), model="m", answerer="script"
    ),
    events.ConditionJudged(1, holds=False, text="", fault="the model gave no answer"),
    events.VariableSet("status", ["sent", 3], "tool:find"),
    events.VariableRefused("status", "trigger", "not a number"),
    events.RequestOpened(
        id="q1",
        kind="ui",
        agent="Helper",
        tool="form",
        call="c3",
        number=1,
        payload=ANYTHING,
        digest="hash",
        expires_at=5000,
        otherwise={"ok": False},
        sets=("status", "ok"),
        component="Form",
        mode="inline",
        addressee="role:manager",
    ),
    events.RequestOpened("q2", "chat", "Helper"),
    events.RequestAnswered("q1", ANYTHING, "ann"),
    events.RequestAnswered("q2", "And now?", "ann", message_id="m1 \x00 🙂"),
    events.RequestExpired("q2"),
    events.TurnEnded("Helper"),
    events.TurnFailed("Helper", "the model did not answer", "model"),
    events.Forked("Readers", ("Helper", "Closer")),
    events.Joined("Readers", 3, (1, 2)),
    events.Joined("Readers", 3, (), text="both agree"),
    events.TimerSet("deadline:3", 5000, "deadline"),
    events.TimerFired("deadline:3"),
    events.HandedOff("Helper", "Closer", "rule", 0),
    events.HandedOff("Closer", "terminate", "default"),
    events.HandedOff("Helper", "Closer", "chosen"),
    events.StopAsked("after_turn", "ann"),
    events.RunEnding("failed", "the model did not answer"),
    events.RunEnded("completed", "all is said"),
)
