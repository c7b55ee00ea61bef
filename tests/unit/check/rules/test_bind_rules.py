"""Family BIND."""

import pytest

from unit.check.builders_code import (
    agent,
    codes,
    hits,
    hook,
    lifecycle,
    model,
    only,
    static,
    subject,
    tool,
)
from weft.findings import RenameKey, SetValue

FIND = {"tools/lookup.py": "def find(): ...\n"}


def test_BIND001_tool_of_no_agent():
    checked = subject(FIND, tools=[tool("find", agent="Routeragent")])
    hit = only("BIND001", checked)
    assert hit.path == ("tools", 0, "agent")
    assert hit.message == 'the tool find belongs to "Routeragent", which is no agent'
    assert hit.hint == ('did you mean "RouterAgent"?',)
    assert hit.fix is not None
    assert hit.fix.edits == (SetValue(("tools", 0, "agent"), "RouterAgent"),)
    assert codes(checked) == ["BIND001"]


def test_BIND001_is_not_mended_where_the_name_is_only_similar():
    assert only("BIND001", subject(tools=[tool("find", agent="RouterAgnt")])).fix is None


def test_BIND001_a_name_like_no_other():
    assert only("BIND001", subject(tools=[tool("find", agent="Zzz")])).hint == (
        "name one that is declared",
    )


def test_BIND001_tool_of_an_agent():
    assert hits("BIND001", subject(tools=[tool("find")])) == []


def test_BIND002_exposure_to_no_agent():
    checked = subject(exposure={"router_agent": ["chat_id"]})
    hit = only("BIND002", checked)
    assert (hit.path, hit.at_key) == (("exposure", "router_agent"), True)
    assert hit.message == 'variables are exposed to "router_agent", which is no agent'
    assert hit.fix is not None
    assert hit.fix.edits == (RenameKey(("exposure", "router_agent"), "RouterAgent"),)


@pytest.mark.parametrize("exposure", [{"Zzz": []}, {"RouterAgent": [], "routeragent": []}])
def test_BIND002_is_not_mended_where_it_is_not_certain(exposure: dict[str, list[str]]):
    assert only("BIND002", subject(exposure=exposure)).fix is None


def test_BIND002_exposure_to_an_agent():
    assert hits("BIND002", subject(exposure={"RouterAgent": ["chat_id"]})) == []


@pytest.mark.parametrize(
    ("bound", "part"),
    [("Ticket", "the model Ticket is bound to"), (None, "free text is set for")],
)
def test_BIND003_binding_of_no_agent(bound: str | None, part: str):
    checked = subject(models=[model("Ticket")], registry=[{"agent": "Clerk", "model": bound}])
    hit = only("BIND003", checked)
    assert hit.path == ("registry", 0, "agent")
    assert hit.message == f'{part} "Clerk", which is no agent'


def test_BIND003_binding_of_an_agent():
    assert hits("BIND003", subject(registry=[{"agent": "RouterAgent", "model": None}])) == []


def test_BIND004_hook_and_lifecycle_tool_of_no_agent():
    checked = subject(
        hooks=[hook("watch", "before_agent", agent="Clerk")],
        lifecycle_tools=[lifecycle("load", agent="Clerk", trigger="after_agent")],
    )
    first, second = hits("BIND004", checked)
    assert first.path == ("hooks", 0, "agent")
    assert first.message == 'the hook watch is for "Clerk", which is no agent'
    assert second.path == ("lifecycle_tools", 0, "agent")
    assert second.message == 'the lifecycle tool load is for "Clerk", which is no agent'


def test_BIND004_for_all_agents_or_one():
    checked = subject(
        hooks=[hook("watch", "before_agent"), hook("w", "before_agent", agent="RouterAgent")],
        lifecycle_tools=[
            lifecycle("load"),
            lifecycle("load", agent="RouterAgent", trigger="before_agent"),
        ],
    )
    assert hits("BIND004", checked) == []


@pytest.mark.parametrize("agent", ["RouterAgent", "Clerk"])
def test_BIND004_what_belongs_to_the_run_has_no_agent(agent: str):
    checked = subject(
        hooks=[hook("watch", "on_fail", agent=agent)],
        lifecycle_tools=[lifecycle("load", agent=agent)],
    )
    first, second = hits("BIND004", checked)
    assert first.path == ("hooks", 0, "agent")
    assert f"the hook watch is for {agent}, but on_fail belongs to the run" in first.message
    assert second.path == ("lifecycle_tools", 0, "agent")
    assert first.severity == second.severity == "warning"


def test_BIND005_initial_agent_is_none():
    checked = subject(orchestrator={"initial_agent": "Router Agent"})
    hit = only("BIND005", checked)
    assert hit.path == ("orchestrator", "initial_agent")
    assert hit.message == 'the run begins with "Router Agent", which is no agent'
    assert codes(checked) == ["BIND005"]


def test_BIND005_initial_agent():
    assert hits("BIND005", subject()) == []


def test_BIND006_visual_agent_is_none():
    checked = subject(orchestrator={"visual_agents": ["RouterAgent", "Clerk"]})
    hit = only("BIND006", checked)
    assert hit.path == ("orchestrator", "visual_agents", 1)
    assert '"Clerk"' in hit.message


@pytest.mark.parametrize("visual", [None, ["RouterAgent"]])
def test_BIND006_visual_agents(visual: list[str] | None):
    assert hits("BIND006", subject(orchestrator={"visual_agents": visual})) == []


@pytest.mark.parametrize("registry", [[], [{"agent": "RouterAgent", "model": None}]])
def test_BIND007_no_model_to_fit(registry: list[dict[str, object]]):
    agents = [agent("RouterAgent", structured_outputs_required=True)]
    hit = only("BIND007", subject(agents=agents, registry=registry))
    assert hit.path == ("agents", 0, "structured_outputs_required")
    assert "no model is bound to it" in hit.message


@pytest.mark.parametrize("bound_agent", ["RouterAgent", "RouterAgnt"])
def test_BIND007_model_is_bound_if_perhaps_misspelt(bound_agent: str):
    checked = subject(
        agents=[agent("RouterAgent", structured_outputs_required=True), agent("Clerk")],
        registry=[{"agent": bound_agent, "model": "Ticket"}],
    )
    assert hits("BIND007", checked) == []


def test_BIND007_the_model_of_another_agent_does_not_count():
    checked = subject(
        agents=[agent("RouterAgent", structured_outputs_required=True), agent("RouterAgents")],
        registry=[{"agent": "RouterAgents", "model": "Ticket"}],
    )
    assert hits("BIND007", checked)


def test_BIND008_readers_and_writers_that_are_nobody():
    variable = static(readers=["RouterAgent", "find"], writers=["findd", "RouterAgent"])
    checked = subject(tools=[tool("find")], variables={"x": variable})
    first, second = hits("BIND008", checked)
    assert first.path == ("variables", "x", "readers", 1)
    assert first.message == 'x may be read by "find", which is no agent'
    assert second.path == ("variables", "x", "writers", 0)
    assert second.message == (
        'x may be written by "findd", which is neither an agent nor a tool or hook'
    )
    assert second.hint == ('did you mean "find"?',)


def test_BIND008_all_that_may_write():
    writers = ["RouterAgent", "find", "load", "watch"]
    checked = subject(
        tools=[tool("find")],
        lifecycle_tools=[lifecycle("load")],
        hooks=[hook("watch", "before_chat")],
        variables={"x": static(readers=["RouterAgent"], writers=writers), "y": static()},
    )
    assert hits("BIND008", checked) == []


API = {"tools/api.py": "def get_router(): ...\n", "tools/sub/__init__.py": "go = 1\n"}


def extended(entrypoint: str, code: dict[str, str] | None = None, folder: str = "Support"):
    extension = {"kind": "api_router", "entrypoint": entrypoint}
    return subject(code or API, folder=folder, orchestrator={"runtime_extensions": [extension]})


@pytest.mark.parametrize(
    ("entrypoint", "fact", "hint"),
    [
        (
            "tools.api:get_routes",
            "tools/api.py does not define get_routes",
            "did you mean tools.api:get_router?",
        ),
        ("tools.api:zzz", "tools/api.py does not define zzz", "define zzz in tools/api.py"),
        (
            "tools.apis:get_router",
            "no file of the package is the module tools.apis",
            "did you mean tools.api:get_router?",
        ),
        (
            "workflows.Other.zzzzzz.zz:f",
            "no file of the package is the module workflows.Other.zzzzzz.zz",
            "add the file zzzzzz/zz.py",
        ),
        ("qqqq:f", "no file of the package is the module qqqq", "add the file qqqq.py"),
    ],
)
def test_BIND009_extension_is_not_in_the_code(entrypoint: str, fact: str, hint: str):
    hit = only("BIND009", extended(entrypoint))
    assert hit.path == ("orchestrator", "runtime_extensions", 0, "entrypoint")
    assert hit.message == f"the api_router {entrypoint} cannot be found: {fact}"
    assert hit.hint == (hint,)


@pytest.mark.parametrize(
    "entrypoint",
    [
        "tools.api:get_router",
        "workflows.Support.tools.api:get_router",
        "workflows.Copy.tools.api:get_router",
        "tools.sub:go",
    ],
)
def test_BIND009_extension_is_in_the_code(entrypoint: str):
    assert hits("BIND009", extended(entrypoint, folder="Copy")) == []


def test_BIND009_a_file_that_does_not_parse_is_reported_by_itself():
    assert codes(extended("tools.api:f", {"tools/api.py": "("})) == ["TOOL003"]


def prefixed(prefix: str, kind: str = "api_router"):
    extension = {"kind": kind, "entrypoint": "tools.api:get_router", "prefix": prefix}
    code = {"tools/api.py": "def get_router(): ...\n"}
    return subject(code, orchestrator={"runtime_extensions": [extension]})


@pytest.mark.parametrize("prefix", ["a b", "a//b", "../a", "a/.", "https://a", "?a", "a/"])
def test_BIND009_a_prefix_that_is_no_path(prefix: str):
    hit = only("BIND009", prefixed(prefix))
    assert hit.path == ("orchestrator", "runtime_extensions", 0, "prefix")
    assert hit.message == f'"{prefix}" is no path of an address'


@pytest.mark.parametrize("prefix", ["/orders/new", "orders", "a-b_c.d~e"])
def test_BIND009_a_prefix_of_a_router(prefix: str):
    assert codes(prefixed(prefix)) == []


def test_BIND009_a_service_has_no_prefix():
    hit = only("BIND009", prefixed("orders", "startup_service"))
    assert "the prefix of the startup_service tools.api:get_router is not used" in hit.message
