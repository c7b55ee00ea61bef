"""Packages drawn at random from every kind of trigger, source, rule and boundary there is."""

import asyncio
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel

from weft.engine.events import ModelReplied
from weft.engine.variables.trigger_index import Fires
from weft.errors import ModelError, PortError, StoreError
from weft.ports.external import ExternalPorts, ServiceAnswer
from weft.runtime.workflow import Linking
from weft.spec.workflow import WorkflowSpec
from weft.testing.models import FunctionModel, call

CODE = {
    "hooks/h.py": b"""
from weft import Refuse, use_ui_tool


async def note(context_variables):
    context_variables.set("trail", [*context_variables.get("trail", []), "n"])


async def fail():
    raise ValueError("a hook broke")


async def refuse():
    raise Refuse("not me")


async def nothing(**given):
    return None


async def nonsense():
    return 7


async def ask(context_variables):
    context_variables.set("asked", await use_ui_tool("ask", "by a hook"))


async def add(messages):
    return [*messages, {"role": "user", "content": f"{len(messages)} so far"}]


async def shout(content):
    return content.upper()


async def instruct(agent, messages):
    agent.update_system_message(f"You are {agent.name}, {len(messages)}")


async def sign(message):
    return f"{message}!"
""",
    "tools/t.py": b'''
from weft import Refuse, show_ui_tool, use_ui_tool


async def work(how: str, context_variables) -> str:
    """Work."""
    if how == "raise":
        raise ValueError("it broke")
    if how == "refuse":
        raise Refuse("not today")
    if how == "ask":
        return await context_variables.ask("How long is a piece of string?")
    if how == "refresh":
        return str(await context_variables.refresh("db_demand"))
    if how == "show":
        await show_ui_tool("ask", "look")
        context_variables.progress(0.5, "half")
    if how == "set":
        context_variables.set("trail", [*context_variables.get("trail", []), "t"])
        context_variables.set("note", {"count": len(context_variables.get("trail"))})
    return how


async def ask(what: str) -> str:
    """Ask a person."""
    return str(await use_ui_tool("ask", what))


def merge(replies: dict) -> str:
    return "; ".join(f"{name}: {said}" for name, said in sorted(replies.items()))
''',
    "tools/rules.py": b"""
async def length(content):
    return len(content)


async def broken(values):
    return values["nothing there"]


async def count(trail):
    if trail is not None and len(trail) > 6:
        raise ValueError("too many to count")
    return len(trail or [])
""",
}

_SAID = {"agent": "A", "match": {"contains": "done"}}
TRIGGERS: dict[str, dict[str, Any]] = {
    "agent_text": {"type": "agent_text", **_SAID, "value": "said"},
    "user_text": {"type": "user_text", "match": {"contains": "go"}, "value": None},
    "ui_response": {"type": "ui_response", "tool": "ask", "response_key": "pick"},
    "tool_call": {"type": "tool_call", "tool": "work", "argument": "how"},
    "tool_response": {"type": "tool_response", "tool": "work"},
    "handoff": {"type": "handoff", "target_agent": "B"},
    "before_chat": {"type": "lifecycle", "event": "before_chat"},
    "after_chat": {"type": "lifecycle", "event": "after_chat"},
    "before_agent": {"type": "lifecycle", "event": "before_agent", "agent": "B"},
    "after_agent": {"type": "lifecycle", "event": "after_agent"},
    "agent_turn_count": {"type": "agent_turn_count", "agent": "A", "count": 2},
    "timer_expired": {"type": "timer_expired", "after_seconds": 60},
    "function": {"type": "function", "function": "tools.rules:length"},
    "function_broken": {"type": "function", "function": "tools.rules:broken"},
    "tool_failed": {"type": "tool_failed", "response_key": "kind"},
    "model_failed": {"type": "model_failed", "response_key": "message"},
    "custom": {"type": "x:words", "at_least": 2},
    "custom_broken": {"type": "x:words", "at_least": 0},
}
_DOWN = {"collection": "down", "search_by": "user_id"}
_OWN = {"collection": "good", "search_by": "user_id", "field": "n"}
SOURCES: dict[str, dict[str, Any]] = {
    "db_once": {"type": "database", **_OWN},
    "db_phase": {"type": "database", **_OWN, "refresh_strategy": "per_phase"},
    "db_query": {"type": "database", "collection": "good", "query_template": {"n": "{limit}"}},
    "db_down": {"type": "database", **_DOWN, "default": "fallback"},
    "db_fatal": {"type": "database", **_DOWN},
    "service": {"type": "external", "service": "s", "operation": "o", "url": "http://s/{limit}"},
    "file": {"type": "file", "path": "data/a.txt"},
    "env": {"type": "environment", "env_var": "SOME", "default": "unset"},
    "size": {"type": "computed", "computation": "tools.rules:count", "inputs": ["trail"]},
    "big": {"type": "computed", "computation": "limit > 2", "inputs": ["limit"]},
    "bigger": {"type": "computed", "computation": "trigger_function > 3",
               "inputs": ["trigger_function"], "persist_to": "note"},
}  # fmt: skip
_NOTE = {"type": "entity", "collection": "notes", "search_by": "user_id", "default": {}}
_STRATEGIES = st.sampled_from(["immediate", "on_phase_transition", "on_workflow_end"])
POINTS = (
    *("on_start", "before_chat", "before_agent", "after_agent", "after_chat", "on_complete"),
    *("on_fail", "update_agent_state", "process_all_messages_before_reply"),
    *("process_last_received_message", "process_message_before_send"),
)
_OWN_EFFECTS = {
    "update_agent_state": "instruct",
    "process_all_messages_before_reply": "add",
    "process_last_received_message": "shout",
    "process_message_before_send": "sign",
}
LINES = (
    *("one", "it is done now", call("ask", what="tea"), call("hand_off_to_B"), call("nothing")),
    *(call("work", how=name) for name in ("raise", "refuse", "ask", "refresh", "show", "set")),
    *(call("work"), ModelError("down")),
)
_TO_B = {"source_agent": "A", "target_agent": "B"}
_JUDGED = {**_TO_B, "condition": "It is enough.", "condition_type": "llm"}
RULES: dict[str, dict[str, Any]] = {
    "pre": {**_TO_B, "condition": "'n' in trail", "condition_scope": "pre"},
    "judged": {**_JUDGED, "condition_scope": "pre"},
    "judged_after": {**_JUDGED, "condition_scope": "post"},
    "group": {**_TO_B, "target_agent": "Team", "condition": "flag_group", "priority": 3},
    "end": {"source_agent": "B", "target_agent": "terminate", "condition": "'n' in trail"},
}


class Words(BaseModel):
    at_least: int


class WordCount:
    settings = Words

    def fires(self, settings, event, _state):
        if not isinstance(event.data, ModelReplied):
            return None
        count = len(event.data.text.split()) // settings.at_least
        return Fires(count) if count else None


LINKING = Linking(kinds={"words": WordCount()})


@st.composite
def hooks(draw: Any) -> dict[str, Any]:
    """Draw a hook at any boundary, with any effect, for one agent or all."""
    point = draw(st.sampled_from(POINTS))
    own = [_OWN_EFFECTS[point]] * 3 if point in _OWN_EFFECTS else []
    function = draw(
        st.sampled_from(["note", "note", "nothing", "fail", "refuse", "nonsense", "ask", *own])
    )
    return {
        "hook_type": point,
        "file": "h.py",
        "function": function,
        "agent": draw(st.sampled_from([None, None, "A", "C"])),
        "on_error": draw(st.sampled_from(["log", "log", "log", "stop"])),
    }


def subset(names: Mapping[str, Any], least: int = 0, most: int = 6) -> Any:
    return st.sets(st.sampled_from(sorted(names)), min_size=least, max_size=most)


@st.composite
def packages(draw: Any) -> WorkflowSpec:
    """Draw a package that runs: a desk, a boss, and a team that may work side by side."""
    group = draw(st.sampled_from([None, "concatenate", "majority", "collect", "custom"]))
    wanted = draw(subset(RULES)) | {"group"} if draw(st.booleans()) else draw(subset(RULES))
    wanted -= {"group"} if group is None else set[str]()
    sources = draw(subset(SOURCES)) - ({"db_fatal"} if draw(st.integers(0, 4)) else set[str]())
    triggers = draw(subset(TRIGGERS, 6, 12)) | {"function"}
    variables: dict[str, Any] = {
        "trail": {"type": "list[str]", "source": {"type": "derived", "default": []},
                  "merge": draw(st.sampled_from([None, "append"]))},
        "asked": {"type": "any", "source": {"type": "derived"}},
        "limit": {"type": "int", "source": {"type": "static", "value": draw(st.integers(1, 4))}},
        "flag_group": {"type": "bool", "source": {"type": "derived", "default": True}},
        "db_demand": {"type": "any", "source": {"type": "database", **_OWN,
                                                "refresh_strategy": "on_demand", "default": 0}},
        "note": {"type": "any", "source": {**_NOTE, "write_strategy": draw(_STRATEGIES)}},
    }  # fmt: skip
    for name in sorted(triggers):
        source = {"type": "derived", "triggers": [TRIGGERS[name]], "persist": name == "handoff"}
        variables[f"trigger_{name}"] = {"type": "any", "source": source}
    for name in sorted(sources):
        variables[name] = {"type": "str" if name == "env" else "any", "source": SOURCES[name]}
    merging = {"function": "tools.t:merge"} if group == "custom" else {}
    team = {"name": "Team", "members": ["C", "D"], "next": "B", "merge": group,
            "on_failure": draw(st.sampled_from(["fail", "continue"])), **merging}  # fmt: skip
    tool = {"tool_type": "Agent_Tool", "file": "t.py", "function": "work"}
    ask = {"tool_type": "UI_Tool", "file": "t.py", "function": "ask",
           "ui": {"component": "Ask", "mode": "inline"}}  # fmt: skip
    on_error = draw(st.sampled_from(["tell", "tell", "fail"]))
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "W",
                "initial_agent": "A",
                "max_turns": 9,
                "startup_mode": draw(st.sampled_from(["UserDriven", "AgentDriven"])),
                "llm_conditions": True,
                "parallel": [] if group is None else [team],
            },
            "agents": [
                {"agent_name": name, "handoff_tools": draw(st.booleans())}
                for name in ("A", "B", "C", "D")
            ],
            "variables": variables,
            "exposure": {"A": sorted(variables), "C": ["trail"]},
            "tools": [
                {**item, "agent": agent, "on_error": on_error}
                for agent in ("A", "C", "D")
                for item in (tool, ask)
            ],
            "hooks": draw(st.lists(hooks(), min_size=2, max_size=6)),
            "handoffs": [
                *(RULES[item] for item in sorted(wanted)),
                *({"source_agent": name, "target_agent": "user"} for name in ("A", "B")),
            ],
        }
    )


async def moments(count: int = 4) -> None:
    """Take a while, so that a host may be closed meanwhile."""
    for _ in range(count):
        await asyncio.sleep(0)


class World:
    """Documents, a service and files, as they are scripted; what is written is kept."""

    def __init__(self) -> None:
        self.notes: dict[str, Any] = {}

    async def find(self, _scope, collection, _query, *, fields=()):
        await moments()
        if collection.name == "down":
            raise StoreError("the store is down")
        if collection.name == "notes":
            return None
        return {"_id": "1", "n": len(fields) + 6}

    async def put(self, _scope, _collection, _query, values):
        await moments()
        self.notes = {**self.notes, **values}
        return "1"

    async def ask(self, _scope, request):
        if request.url.endswith("4"):
            raise PortError("the service is down")
        return ServiceAnswer({"url": request.url})

    async def read(self, _workflow, path):
        return f"text of {path}"

    async def close(self) -> None:
        pass

    @property
    def outside(self) -> ExternalPorts:
        return ExternalPorts(documents=self, services=self, files=self)  # type: ignore[arg-type]


class Team(FunctionModel):
    """Speaks for all by turn and call, and remembers the bytes it was sent by their keys."""

    def __init__(self, lines: Mapping[str, Any], verdict: str) -> None:
        super().__init__(self._line)
        self.sent: dict[str, Any] = {}
        self._lines = lines
        self._verdict = verdict

    async def _line(self, request: Any) -> Any:
        if request.call:
            sent = request.agent, request.messages, request.tools
            assert self.sent.setdefault(request.key, sent) == sent, "the same bytes again"
        await moments()
        if not request.call:
            return "as long as twice its half" if request.output is None else self._verdict
        lines = self._lines[request.agent]
        if request.call > 3 or not lines:
            return f"I am {request.agent}"
        line = lines[(request.turn + request.call) % len(lines)]
        if isinstance(line, ModelError):
            raise line
        return line


SCRIPTS = st.fixed_dictionaries(
    {
        name: st.lists(st.sampled_from(LINES), min_size=2, max_size=5)
        for name in ("A", "B", "C", "D")
    }
)
_HOLDS, _NOT = '{"holds": true, "reason": "x"}', '{"holds": false, "reason": "x"}'
VERDICTS = st.sampled_from([_HOLDS, _NOT, _HOLDS, _NOT, _NOT, "perhaps"])
