"""No answer of the proof is ever contradicted by a run of the engine."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from proof_world import Choices, World

from weft.check.explore import prove
from weft.check.subject import Subject
from weft.spec.workflow import WorkflowSpec

AGENTS = ("A", "B", "C", "D")
MATCHES = (
    {"equals": "go"}, {"equals": "GO ON"}, {"contains": "GO"}, {"contains": "ON"},
    {"exact": "STOP"}, {"exact": "go"}, {"regex": "G."}, {"regex": ".*"}, {"regex": "x^"},
)  # fmt: skip
TEXTS = (
    "go", "GO", "GO ON", "we GO", "ON", "gone on", "STOP", "STOP ON GO", "hm", "", "Gx ON",
    "mode", '"b"', "a true", 'mode "b"', "mode a true", '"b" a true', 'mode "b" a true',
    "mode GO", '"b" GO', "a true GO", 'mode "b" GO', "mode a true GO", '"b" a true GO',
    'mode "b" a true GO',
)  # fmt: skip
CONDITIONS = (
    "flag", "not flag", "other", "flag and not other", "other and not flag", "mode == 'b'",
    "mode == 'a' and flag", "mode == null", "mode != 'a' and not flag", "n >= 2", "n == 0 and flag",
    "n < 2 and mode == 'b'", "wish", "wish == null", "flag == other", "mode == 'c'",
)  # fmt: skip
KINDS = {
    "flag": ("bool", (True, False)),
    "other": ("bool", (True, False)),
    "mode": ("optional[literal['a', 'b', 'c']]", ("a", "b", "c", None)),
    "n": ("int", (0, 1, 2, 3)),
}
ARGUMENTS = (
    {}, {"mode": "a"}, {"mode": "b"}, {"mode": "c"}, {"mode": None}, {"flag": True},
    {"flag": False}, {"n": 1, "flag": True}, {"n": 3, "mode": "b"}, {"n": 2}, {"n": 0},
    {"n": -1}, {"n": 4}, {"flag": True, "mode": "a"}, {"flag": True, "mode": "b"}, {"mode": 7},
)  # fmt: skip
OUTPUTS = tuple({"mode": mode, "flag": flag} for mode in "ab" for flag in (False, True))
ANSWERS = ({}, {"mode": "a"}, {"mode": "b"}, {"flag": True}, {"mode": "b", "flag": False}, "no")
TRIGGERS = (
    "agent_text", "agent_text", "agent_text", "user_text", "tool_call", "tool_call argument",
    "ui_response", "tool_response", "tool_response key", "handoff", "agent_turn_count",
)  # fmt: skip
WRITES = {
    "flag": ("True", "False"), "other": ("True", "False"), "mode": ("'a'", "'b'", "'zzz'", "None"),
    "n": ("0", "2", "'two'", "{'a': None}.get('a')"),
}  # fmt: skip
WAYS = (
    *["context_variables.set('{name}', {value})"] * 6,
    "context_variables.setdefault('{name}', {value})",
    "context_variables.remove('{name}')",
    "context_variables.pop('{name}')",
    "del context_variables['{name}']",
    "context_variables.clear()",
    "context_variables['{name}'] = {value}",
    "context_variables.update({{'{name}': {value}}})",
    "context_variables.set('{name}', {place})",
    "use_ui_tool('ask')",
    "use_ui_tool('as' + 'k')",
    "return",
    "return {{'mode': mode, 'flag': flag}}",
    "raise ValueError('no')",
    "raise Refuse('no')",
    "raise RetryModel('no')",
    "raise Again('no')",
    "check(flag)",
    "put(context_variables, flag)",
)
#: What stands before every tool in its file.
HELPERS = """
from weft import RetryModel as Again

def check(flag):
    if not flag:
        raise RetryModel('no')

def put(context_variables, flag):
    if flag:
        context_variables.set('mode', 'b')

"""
#: How a line of code is reached.
SHAPES = (
    "{line}", "{line}", "{line}",
    "if flag:\n        {line}",
    "if flag:\n        {line}\n    else:\n        context_variables.set('mode', 'a')",
    "for _ in range(2):\n        {line}",
    "try:\n        {line}\n    except ValueError:\n        pass",
)  # fmt: skip
#: Where a variable's value stands among arguments, in outputs and answers; two share one place.
PLACES = {"flag": "flag", "other": "flag", "mode": "mode", "n": "n"}
SCHEMA = {
    "type": "object",
    "properties": {"mode": {"enum": ["a", "b"]}, "flag": {"type": "boolean"}},
}


@dataclass(frozen=True)
class Scope:
    """What is drawn from; `fillers` may have the tool `fill`, `filled` says how it is called."""

    agents: tuple[str, ...]
    tools: tuple[str, ...] = ("look", "act", "fill")
    kinds: tuple[str, ...] = TRIGGERS
    matches: tuple[dict, ...] = MATCHES
    conditions: tuple[str, ...] = CONDITIONS
    fillers: tuple[str, ...] = AGENTS
    filled: tuple[str, ...] = ("by choice", "with a model", "automatic")


@st.composite
def triggers(draw, name, scope):
    """A trigger of a kind that the engine performs."""
    tools = st.sampled_from(scope.tools)
    agents, matches = st.sampled_from(scope.agents), st.sampled_from(scope.matches)
    values = KINDS[name][1]
    kind = draw(st.sampled_from(scope.kinds))
    trigger = {"type": kind.partition(" ")[0]}
    match kind:
        case "agent_text":
            trigger |= {"agent": draw(agents), "match": draw(matches)}
        case "user_text":
            trigger["match"] = draw(matches)
        case "tool_call" | "tool_response":
            trigger["tool"] = draw(tools)
        case "tool_call argument":
            return trigger | {"tool": draw(tools), "argument": PLACES[name]}
        case "tool_response key":
            return trigger | {"tool": draw(tools), "response_key": PLACES[name]}
        case "ui_response":
            return trigger | {"tool": "ask", "response_key": PLACES[name]}
        case "handoff":
            trigger |= {"source_agent": draw(st.none() | agents), "target_agent": draw(agents)}
        case _:
            trigger |= {"agent": draw(agents), "count": draw(st.integers(1, 3))}
    return trigger | {"value": draw(st.sampled_from((*values, *values, "misfit")))}


@st.composite
def variables(draw, scope):
    found = {"wish": {"type": "bool", "source": {"type": "environment", "env_var": "W"}}}
    for name, (kind, values) in KINDS.items():
        source = {
            "type": "derived",
            "default": draw(st.sampled_from(values)),
            "triggers": draw(st.lists(triggers(name, scope), max_size=3)),
        }
        if name == "mode" and draw(st.integers(0, 3)) == 0:
            by_itself = st.none() | triggers(name, scope)
            one = st.tuples(st.sampled_from(values), st.sampled_from(values), by_itself)
            steps = draw(st.lists(one, min_size=1, max_size=3))
            source["transitions"] = [
                {"from": old, "to": new, "trigger": trigger} for old, new, trigger in steps
            ]
        writers = draw(st.sampled_from((None, None, None, ["act"], ["A"])))
        found[name] = {"type": kind, "source": source, "writers": writers}
    return found


@st.composite
def bodies(draw):
    """The body of a tool that sets variables."""
    lines = []
    for name in draw(st.lists(st.sampled_from(tuple(WRITES)), max_size=3)):
        value = draw(st.sampled_from(WRITES[name]))
        line = draw(st.sampled_from(WAYS)).format(name=name, value=value, place=PLACES[name])
        lines.append(draw(st.sampled_from(SHAPES)).format(line=line))
    return "\n    ".join(lines) or "..."


@st.composite
def workflows(draw, scope=None):
    """A workflow with its code: four tools, one of which may be automatic."""
    scope = scope or Scope(AGENTS[: draw(st.integers(2, 4))])
    names = scope.agents
    target = st.sampled_from((*names, *names, *names, "user", "terminate"))
    owner = st.sampled_from(names)
    handoff = st.fixed_dictionaries(
        {
            "source_agent": owner,
            "target_agent": target,
            "condition": st.sampled_from(scope.conditions),
            "condition_scope": st.sampled_from(("post", "post", "pre")),
            "priority": st.integers(0, 2),
        }
    )
    plain = st.fixed_dictionaries({"source_agent": owner, "target_agent": target})
    filled = draw(st.sampled_from(scope.filled))
    filler = draw(st.sampled_from([it for it in names if it in scope.fillers]))
    limit = draw(st.sampled_from((400, 400, 400, 1, 2)))

    def tool(function, agent, **more):
        kind = {"tool_type": "Agent_Tool", "file": f"{function}.py"}
        return {**kind, "agent": agent, "function": function, **more}

    ui = {"component": "Ask", "mode": "inline"}
    schema = draw(st.sampled_from((None, SCHEMA)))
    ask = {"tool_type": "UI_Tool", "ui": ui, "response_schema": schema}
    spec = {
        "orchestrator": {
            "workflow_name": "W",
            "initial_agent": "A",
            "max_turns": 500,
            "orchestration_pattern": draw(st.sampled_from(PATTERNS)),
            "human_in_the_loop": draw(st.booleans()),
            "default_target": draw(st.none() | target),
            "startup_mode": draw(st.sampled_from(("AgentDriven", "UserDriven"))),
        },
        "agents": [
            {
                "agent_name": name,
                "max_consecutive_auto_reply": limit,
                "auto_tool_mode": name == filler and filled == "automatic",
            }
            for name in names
        ],
        "variables": draw(variables(scope)),
        "handoffs": draw(st.lists(handoff, min_size=2, max_size=7))
        + draw(st.lists(plain, max_size=3)),
        "tools": [
            tool("look", draw(owner)),
            tool("act", draw(owner)),
            tool("ask", draw(owner), **ask),
            tool("fill", filler, auto_invoke=filled == "automatic"),
        ],
        "models": [
            {
                "name": "Form",
                "fields": {"mode": {"type": 'literal["a", "b"]'}, "flag": {"type": "bool"}},
            }
        ],
        "registry": [{"agent": filler, "model": "Form"}] if filled != "by choice" else [],
    }
    heads = {
        it: f"{HELPERS}def {it}(context_variables, mode='a', flag=False, n=0):\n    "
        for it in TOOLS
    }
    code = {f"tools/{it}.py": head + draw(bodies()) for it, head in heads.items()}
    code["tools/ask.py"] = heads["ask"] + "use_ui_tool('ask')"
    return WorkflowSpec.model_validate(spec), code


TOOLS = ("look", "act", "ask", "fill")
PATTERNS = ("DefaultPattern", "DefaultPattern", "Pipeline", "Star")


def played(spec, code, most=600):
    """All runs of a workflow, as far as they have no more states."""
    answers = ANSWERS
    if spec.tools[2].response_schema is None:
        answers = (*answers, {"mode": "c"})
    starts = tuple(
        ({"wish": wish}, words) for wish in (True, False, None) for words in (None, "go", "hm ON")
    )
    return World(spec, Choices(TEXTS, ARGUMENTS, OUTPUTS, answers, starts), code).explore(most)


def _whole(endless):
    """The way into an endless run, and once around, as far as that is known."""
    _, *onward = endless.cycle.split(" -> ")
    return " -> ".join((endless.witness, *onward))


SIMPLE = (
    "flag", "not flag", "mode == 'b'", "mode == 'a'", "mode == null", "mode == 'c'",
    "mode == 'a' and flag", "mode == 'b' and not flag",
)  # fmt: skip
#: An agent whose replies are JSON, with texts that are in them or not, and answers on the way.
FORMS = Scope(
    agents=("A", "B"),
    tools=("fill",),
    kinds=(
        "agent_text", "agent_text", "agent_text", "tool_call argument", "tool_call argument",
        "tool_call", "tool_response", "tool_response key", "ui_response", "handoff",
    ),
    matches=(
        {"contains": "mode"}, {"contains": '"b"'}, {"regex": "a.*true"}, {"equals": "go"},
        {"contains": "GO"}, {"regex": ".*"}, {"regex": "x^"},
    ),
    conditions=SIMPLE,
    fillers=("A",),
    filled=("with a model", "automatic", "automatic", "automatic"),
)  # fmt: skip


#: An agent whose tools do everything.
CALLS = Scope(
    agents=("A", "B"),
    tools=("act",),
    kinds=(
        "tool_call", "tool_call argument", "tool_response", "tool_response", "tool_response key",
        "ui_response", "handoff",
    ),
    conditions=SIMPLE,
    fillers=("A",),
    filled=("by choice",),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(workflows())
def test_no_run_contradicts_the_proof(workflow):
    agree(*workflow)


@settings(max_examples=40, deadline=None)
@given(workflows(FORMS))
def test_no_run_of_agents_that_fill_in_forms_does(workflow):
    agree(*workflow)


@settings(max_examples=40, deadline=None)
@given(workflows(CALLS))
def test_no_run_of_agents_that_call_tools_does(workflow):
    agree(*workflow)


def agree(spec, code):
    """Fail if a run does what the proof rules out, or if the way that it shows is none."""
    proof = prove(Subject(spec, code=code))
    world = played(spec, code)
    assert world.spoke.isdisjoint(proof.unreachable_agents)
    assert world.rules.isdisjoint(unused.index for unused in proof.unused_rules)
    if world.truncated or spec.agents[0].max_consecutive_auto_reply < 100:
        return
    if proof.status == "proven":
        assert not world.lost()
    elif proof.status == "refuted":
        assert world.lost()
        for endless in (*proof.dead_ends, *proof.cycles):
            shortened = "..." in _whole(endless)
            assert world.broken or shortened or world.replays(_whole(endless))
