"""Whatever a valid spec holds, the rules about context and routing answer and never raise."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from weft.catalogue import CATALOGUE
from weft.check.rules import (
    conditions,
    environment,
    exposure,
    handoffs,
    secrets,
    sources,
    states,
    triggers,
    usage,
    variables,
)
from weft.check.subject import Subject, rules_of
from weft.spec.workflow import WorkflowSpec

RULES = rules_of(
    conditions,
    environment,
    exposure,
    handoffs,
    secrets,
    sources,
    states,
    triggers,
    usage,
    variables,
)

AGENTS = ("RouterAgent", "TechAgent", "router_agent", "user", "terminate", "Nobody")
NAMES = ("plan", "is_done", "phase", "api_key", "user_id", "_x", "class", "pln", "a b", "é", "{")
TOOLS = ("look", "ask", "lok")
FUNCTIONS = ("tools.look:look", "tools.look:lok", "nowhere:f", "workflows.Demo.tools.look:look")
TYPES = (
    "any", "str", "int", "float", "bool", "list[int]", "dict", "optional[bool]", "Plan", "Nowhere",
    'literal["a", "b", 1, true]', "list[Plan]", "int | Nowhere",
)  # fmt: skip
CONDITIONS = (
    "plan", "not is_done", "plan == 'a'", "phase in ['a', 1, null]", "plan < 5", "phase >= 'b'",
    "is_done == plan", "'a' in phase", "${pln} is not null", "1 == 2", "3 in [1]", "plan =", " ",
    "When plan is a AND phase is true", "5 in user_id", "api_key in 'x'", "plan and (phase or pln)",
    " ",
)  # fmt: skip
PROMPTS = (
    "", "{plan}", "{pln} {{plan}} { plan }", "${plan} {{plan}", "mind is_done", "{api_key}",
    '{"x": {phase}}', "NEXT", "{plan.x}", "{is_done}",
)  # fmt: skip
REGEXES = ("a+", "(a+)+", "(", "[[a]", "a{99999999999}", "")
PATHS = ("data.json", "/x", "../x", ".env", "a\\b", "~")

# Names that mean something come more often, so that the rules have something to say.
agents = st.sampled_from((*AGENTS, *(AGENTS[:2] * 4)))
names = st.sampled_from((*NAMES, *(NAMES[:3] * 4)))
maybe_agent = st.none() | agents
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False)
    | st.sampled_from(["a", "b", "", "sk-" + "a1" * 12, "hunter2hunter2", "{plan}"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)


def record(**fields):
    return st.fixed_dictionaries(
        {key: field for key, (field, needed) in fields.items() if needed},
        optional={key: field for key, (field, needed) in fields.items() if not needed},
    )


def must(strategy):
    return strategy, True


def may(strategy):
    return strategy, False


def kind(name, **fields):
    return record(type=must(st.just(name)), **fields)


said = st.sampled_from([prompt for prompt in PROMPTS if prompt.strip()])
matches = st.one_of(
    record(equals=must(said)),
    record(exact=must(said)),
    record(contains=must(said)),
    record(regex=must(st.sampled_from([regex for regex in REGEXES if regex.strip()]))),
)
tools = st.sampled_from(TOOLS)
triggers = st.one_of(
    kind("agent_text", agent=must(agents), match=must(matches), value=may(values)),
    kind("user_text", match=must(matches), value=may(values)),
    kind("ui_response", tool=must(tools), response_key=must(names)),
    kind("tool_call", tool=must(tools), argument=may(names), value=may(values)),
    kind("tool_response", tool=must(tools), response_key=may(names), value=may(values)),
    kind("handoff", source_agent=may(maybe_agent), target_agent=may(maybe_agent)),
    kind(
        "lifecycle",
        event=must(st.sampled_from(["before_agent", "before_chat"])),
        agent=may(maybe_agent),
    ),
    kind("tool_failed", tool=may(st.none() | tools), value=may(values)),
    kind("model_failed", agent=may(maybe_agent), response_key=may(st.just("message"))),
    kind("agent_turn_count", agent=must(agents), count=must(st.just(2)), value=may(values)),
    kind("timer_expired", after_seconds=must(st.just(1)), value=may(values)),
    kind("function", function=must(st.sampled_from(FUNCTIONS))),
)
steps = st.fixed_dictionaries({"from": values, "to": values}, optional={"trigger": triggers})
sources = st.one_of(
    kind("static", value=must(values)),
    kind("environment", env_var=must(names), default=may(values)),
    kind(
        "database",
        collection=must(names),
        search_by=must(names),
        field=may(names),
        default=may(values),
    ),
    kind(
        "database",
        collection=must(names),
        query_template=must(st.dictionaries(names, values, max_size=2)),
        fields=may(st.lists(names, max_size=2)),
        refresh_strategy=may(st.sampled_from(["once", "per_phase", "on_demand"])),
    ),
    kind(
        "entity",
        collection=must(names),
        search_by=must(names),
        schema=may(st.dictionaries(names, record(type=must(st.sampled_from(TYPES))), max_size=2)),
        default=may(values),
    ),
    kind(
        "external",
        service=must(names),
        operation=must(names),
        url=must(st.sampled_from(["https://x.example?api_key=9f2c81d0&a", "a://b:c@d", "{plan}"])),
    ),
    kind(
        "computed",
        computation=must(st.sampled_from((*CONDITIONS, *FUNCTIONS))),
        inputs=must(st.lists(names, max_size=3)),
        persist_to=may(st.none() | names),
    ),
    kind(
        "derived",
        default=may(values),
        triggers=may(st.lists(triggers, max_size=3)),
        transitions=may(st.lists(steps, max_size=3)),
    ),
    kind("file", path=must(st.sampled_from(PATHS))),
)
variables = record(
    type=must(st.sampled_from(TYPES)),
    source=must(sources),
    readers=may(st.none() | st.lists(agents, max_size=2)),
    writers=may(st.none() | st.lists(agents | tools, max_size=2)),
    routing=may(st.none() | st.booleans()),
    secret=may(st.booleans()),
    merge=may(st.sampled_from(["append", "merge"])),
)
plain_handoffs = record(source_agent=must(agents), target_agent=must(agents))
handoffs = plain_handoffs | record(
    source_agent=must(agents),
    target_agent=must(agents),
    condition=must(st.sampled_from(CONDITIONS)),
    condition_type=may(st.sampled_from(["expression", "llm"])),
    condition_scope=may(st.sampled_from(["pre", "post"])),
    priority=may(st.integers(0, 1)),
    reason=may(st.just("why")),
)
sections = record(id=must(st.just("part")), content=must(st.sampled_from(PROMPTS)))
team = st.fixed_dictionaries(
    {"agent_name": agents, "prompt_sections": st.lists(sections, max_size=2)}
)
tool = st.fixed_dictionaries(
    {
        "tool_type": st.just("Agent_Tool"),
        "agent": agents,
        "file": st.sampled_from(["look.py", "broken.py", "absent.py", "/x.py"]),
        "function": tools,
    }
)
specs = st.fixed_dictionaries(
    {
        "orchestrator": record(
            workflow_name=must(st.just("Demo")),
            initial_agent=must(agents),
            default_target=may(maybe_agent),
            human_in_the_loop=may(st.booleans()),
            condition_profile=may(st.sampled_from(["full", "strict"])),
            llm_conditions=may(st.booleans()),
        ),
        "agents": st.lists(team, max_size=3),
        "variables": st.dictionaries(names, variables, max_size=5),
        "exposure": st.dictionaries(agents, st.lists(names, max_size=4), max_size=3),
        "handoffs": st.lists(handoffs, max_size=5),
        "tools": st.lists(tool, max_size=2),
        "models": st.just([{"name": "Plan", "fields": {"plan": {"type": "Nowhere"}}}]),
        "registry": st.lists(st.just({"agent": "RouterAgent", "model": "Plan"}), max_size=1),
    }
)
CODE = {
    "tools/look.py": "def look(plan, context_variables):\n    context_variables.set('phase', 1)\n",
    "tools/broken.py": "def broken(:",
}


@settings(max_examples=60 * TIMES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(specs, st.sampled_from(["development", "production"]))
def test_rules_answer_with_places_inside_the_spec(spec, profile):
    checked = Subject(WorkflowSpec.model_validate(spec), code=CODE, profile=profile)
    dumped = checked.spec.model_dump(mode="python", by_alias=True)
    for rule in RULES:
        for hit in rule.check(checked):
            assert rule.code in CATALOGUE
            assert hit.message
            assert 0 < len(hit.hint) <= 2
            value = dumped
            for step in hit.path:
                value = value[step]
            if hit.offset or hit.length:
                assert isinstance(value, str)
                assert hit.offset + (hit.length or 0) <= len(value)
