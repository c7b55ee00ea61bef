"""Tools of servers in a run: offered, approved, called, recorded; against real servers."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.boundary_play import Kept, declared, derived, in_turns, of, rest
from support.run_play import ADA, read
from weft.adapters.mcp.servers import McpToolServers
from weft.adapters.system_clock import SystemClock
from weft.engine.events import (
    ContextFetched,
    RequestOpened,
    RunEnded,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    VariableSet,
)
from weft.engine.events.codec import encode
from weft.engine.reduce import fold
from weft.errors import UsageError
from weft.inspect.replay import check_replay
from weft.ports.external import ExternalPorts
from weft.ports.scope import Scope
from weft.runtime.signals import Answer
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel, call

SUPPORT = Path(__file__).parents[1] / "support"
CANARY = "canary-7f3a9c"
SECRETS = {"REAL_KEY": CANARY}
REAL = {
    "name": "real",
    "command": [sys.executable, str(SUPPORT / "mcp_server.py")],
    "env": {"KEY": {"secret_env": "REAL_KEY"}, "PLAIN": "plain"},
    "approval": "never",
    "timeout_seconds": 20,
}
OLD = {"name": "old", "command": [sys.executable, "-I", "-S", str(SUPPORT / "mcp_old_server.py")]}


class Lasting(McpToolServers):
    """Connections for all tests of this file: hosts come and go."""

    async def close(self):
        pass

    async def end(self):
        await super().close()


class Play:
    """One loop, and servers that are started once."""

    def __init__(self, runner):
        environment = {**os.environ, **SECRETS}
        self.run = lambda story: runner.run(asyncio.wait_for(story, 60))
        self.servers = Lasting(clock=SystemClock(), environment=environment)

    def outside(self, **environment):
        return ExternalPorts(servers=self.servers, environment={**SECRETS, **environment})

    def play(self, spec, lines, *scenes, outside=None, **ports):
        """Play a run, each scene in a host of its own; return it and what its model was sent."""
        model = ScriptedModel(lines)
        ports = {"outside": outside or self.outside(), **ports}
        scenes = scenes or (rest,)
        played = self.run(in_turns(spec, scenes, [model] * len(scenes), **ports))
        return played, model


@pytest.fixture(scope="module")
def server():
    with asyncio.Runner() as runner:
        made = Play(runner)
        yield made
        runner.run(made.servers.end())


def using(*servers, agents=("A",), **rest):
    ends = {"source_agent": agents[-1], "target_agent": "terminate"}
    pipeline = {"orchestration_pattern": "Pipeline"}
    return declared(
        *agents, mcp_servers=list(servers), handoffs=[ends], orchestrator=pipeline, **rest
    )


def names(request):
    return [tool.name for tool in request.tools]


def test_its_tools_are_offered_by_name_called_and_their_results_given_back(server):
    lines = [[call("real_add", a=2, b=3), call("real_echo", text_="hi")], "five"]
    played, model = server.play(using(REAL), lines)
    offered = {tool.name: tool.description for tool in model.requests[0].tools}
    assert len(offered) == 9
    assert offered["real_add"] == "It is add"
    assert [event.value for event in of(played, ToolReturned)] == [{"sum": 5}, "hi"]
    told = [
        message["content"] for message in model.requests[1].messages if message["role"] == "tool"
    ]
    assert told == ['{"sum": 5}', "hi"]
    assert check_replay(played.workflow, played.run, played.events) == []


def test_allow_says_which_of_its_tools_and_agents_who_may_use_them(server):
    spec = using({**REAL, "allow": ["add", "echo"], "agents": ["B"]}, agents=("A", "B"))
    lines = [call("real_add", a=1, b=1), "no", call("real_slow", seconds=1), "none"]
    played, model = server.play(spec, lines)
    assert [names(request) for request in model.requests] == [
        [],
        [],
        *([["real_add", "real_echo"]] * 2),
    ]
    told = [event.error for event in of(played, ToolFailed)]
    assert told == [
        "there is no tool real_add; available: none",
        "there is no tool real_slow; available: real_add, real_echo",
    ]
    assert of(played, ToolCalled) == []


def deciding(answer):
    async def decide(host, run):
        while (await rest(host, run)).status == "waiting":
            (asked,) = await host.requests(scope=ADA, run=run)
            assert asked.tool.partition(":")[0] == "approve_tool_call"
            assert asked.component == "ToolApproval"
            await host.deliver(run, Answer(asked.id, answer), scope=ADA)

    return decide


@pytest.mark.parametrize(
    ("approval", "asked"), [("never", []), ("write", ["real_echo"]), ("always", None)]
)
@pytest.mark.parametrize("approved", [True, False])
def test_approval_says_which_calls_a_person_must_approve(server, approval, asked, approved):
    lines = [call("real_add", a=2, b=3), call("real_echo", text_="hi"), "done"]
    asked = ["real_add", "real_echo"] if asked is None else asked
    spec = using({**REAL, "approval": approval})
    played, _ = server.play(spec, lines, deciding({"approved": approved}))
    questions = [event.payload for event in of(played, RequestOpened) if event.kind == "ui"]
    assert [question["tool"] for question in questions] == asked
    if "real_add" in asked:
        assert questions[0]["arguments"] == {"a": 2, "b": 3}
    refused = [event.error for event in of(played, ToolFailed)]
    wanted = [] if approved else [f"a person did not approve the call of {item}" for item in asked]
    assert refused == wanted
    assert len(of(played, ToolReturned)) == 2 - len(wanted)
    assert played.at(RunEnded).data.outcome == "completed"


def test_an_approval_may_come_after_a_restart_and_only_with_an_answer_that_fits(server):
    spec = using({**REAL, "approval": "always"})
    played, _ = server.play(
        spec, [call("real_add", a=2, b=3), "done"], rest, deciding({"approved": True})
    )
    assert of(played, ToolReturned)[0].value == {"sum": 5}
    assert len([event for event in of(played, RequestOpened) if event.kind == "ui"]) == 1


def test_recorded_tool_list_makes_runs_independent_of_the_server(server):
    spec = using({**REAL, "allow": ["add"]})
    sent = []
    thinking = asyncio.Event()

    async def reply(request):
        sent.append((request.key, request.messages, request.tools))
        if len(sent) == 1:
            thinking.set()
            await asyncio.Event().wait()
        return call("real_add", a=1, b=1) if len(sent) == 2 else "it is gone"

    async def story():
        journal, model = Kept(), FunctionModel(reply)
        async with host_for(spec, model, store=journal, outside=server.outside()) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await thinking.wait()
        async with host_for(spec, model, store=journal, outside=ExternalPorts()) as host:
            await host.resume(run, scope=ADA)
            await rest(host, run)
            return await read(host, run)

    played = server.run(story())
    (fetched,) = of(played, ContextFetched)
    assert [entry["name"] for entry in fetched.tools["real"]] == ["real_add"]
    assert sent[0] == sent[1], "the same bytes, tools included"
    assert of(played, ToolFailed)[0].error == "this host has no tool servers"
    assert check_replay(played.workflow, played.run, played.events) == []
    folded = fold(played.workflow.compiled, played.run, played.events)
    assert folded == fold(played.workflow.compiled, played.run, played.events)
    assert folded.outcome == "completed"


def test_call_after_the_death_of_a_tool_server_works(server):
    trigger = {"type": "tool_failed", "tool": "real_die", "response_key": "message"}
    lines = [call("real_die", words=f"my key is {CANARY}"), call("real_add", a=1, b=1), "done"]
    spec = using(REAL, variables={"why": derived("str", "", trigger)})
    played, model = server.play(spec, lines)
    (failed,) = of(played, ToolFailed)
    assert "was lost during die: its program ended with exit code 3" in failed.error
    assert "my key is (secret)" in failed.error
    assert of(played, VariableSet)[0].value == failed.error
    assert model.requests[1].messages[-1]["content"] == f"error: {failed.error}"
    assert of(played, ToolReturned)[0].value == {"sum": 2}


def test_approvals_of_mcp_servers_may_be_for_somebody_else(server):
    manager = Scope("app", "max", roles=("manager",))

    async def approve(host, run):
        await rest(host, run)
        (asked,) = await host.requests(scope=manager)
        assert asked.addressee == "role:manager"
        with pytest.raises(UsageError, match="is for role:manager"):
            await host.deliver(run, Answer(asked.id, {"approved": True}), scope=ADA)
        await host.deliver(run, Answer(asked.id, {"approved": True}), scope=manager)
        await rest(host, run)

    asking = {**REAL, "approval": "always", "for": "role:manager"}
    played, _ = server.play(using(asking), [call("real_add", a=1, b=2), "three"], approve)
    assert [event.value for event in of(played, ToolReturned)] == [{"sum": 3}]


def test_a_call_that_takes_too_long_is_given_up(server):
    command = [*OLD["command"], "--hang"]
    hanging = {"name": "old", "command": command, "approval": "never", "timeout_seconds": 1}
    trigger = {"type": "tool_failed", "kind": "timeout"}
    spec = using(hanging, variables={"late": derived("bool", False, trigger)})
    played, _ = server.play(spec, [call("old_hang"), "late"])
    assert "took longer than 1 second for hang" in of(played, ToolFailed)[0].error
    assert of(played, VariableSet)[0].name == "late"


def test_its_progress_is_kept_and_no_secret_of_its_settings_is_anywhere(server):
    lines = [call("real_slow", seconds=0, words=CANARY), call("real_whoami"), "done"]
    played, model = server.play(using(REAL), lines)
    slow, whoami = of(played, ToolReturned)
    assert slow.progress == (0.0, "somewhere")
    assert whoami.value["env"]["KEY"] == "(secret)", "it had its secret"
    assert whoami.value["env"]["PLAIN"] == "plain"
    # What a model itself says is kept; nothing that came from the server may hold the secret.
    events = [event for event in played.events if not event.actor.startswith("agent:")]
    kept = b"".join(
        encode(event.data) for event in events if not isinstance(event.data, ToolCalled)
    )
    assert CANARY.encode() not in kept
    assert CANARY not in str(model.requests[2].messages[-1])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"command": ["no-such-program-here"]}, "no-such-program-here"),
        ({"allow": ["add", "addd"]}, "it has no tool addd; available: echo, add, slow"),
        ({"env": {"KEY": {"secret_env": "NOWHERE"}}}, "environment variable NOWHERE is not set"),
    ],
)
def test_a_server_that_cannot_be_used_ends_the_run_explained_and_the_next_run_works(
    server, changes, told
):
    played, _ = server.play(using({**REAL, **changes}), [])
    ended = played.at(RunEnded).data
    assert ended.outcome == "failed"
    assert ended.reason.startswith("mcp:real could not be read: ")
    assert told in ended.reason
    assert told in of(played, ContextFetched)[0].errors["mcp:real"]
    played, _ = server.play(using(REAL), [call("real_add", a=1, b=1), "two"])
    assert played.at(RunEnded).data.outcome == "completed"


def test_without_a_port_for_servers_the_run_says_so(server):
    played, _ = server.play(using(REAL), [], outside=ExternalPorts())
    assert "this host has no tool servers" in played.at(RunEnded).data.reason


def test_several_servers_are_asked_at_once_and_an_old_one_is_understood(server):
    old = {**OLD, "approval": "never", "allow": ["pid"]}
    spec = using({**REAL, "allow": ["add"]}, old)
    played, model = server.play(spec, [call("old_pid"), "done"])
    assert names(model.requests[0]) == ["real_add", "old_pid"]
    assert int(of(played, ToolReturned)[0].value) > 0


def test_a_server_at_an_address_knows_us_by_a_secret(server):
    command = [sys.executable, str(SUPPORT / "mcp_server.py"), "--http"]
    environment = {**os.environ, "LOGINS": f"authorization=Bearer {CANARY}"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
            auth = {"type": "bearer", "secret_env": "WEB_KEY"}
            web = {"name": "web", "url": url, "auth": auth, "approval": "never", "allow": ["add"]}
            lines = [call("web_add", a=2, b=2), "four"]
            outside = server.outside(WEB_KEY=CANARY)
            played, _ = server.play(using(web), lines, outside=outside)
            assert of(played, ToolReturned)[0].value == {"sum": 4}
            source = {"type": "environment", "env_var": "WEB_URL"}
            base = {"base": {"type": "str", "source": source}}
            named = using({**web, "url": "{base}/mcp"}, variables=base)
            there = server.outside(WEB_KEY=CANARY, WEB_URL=url.removesuffix("/mcp"))
            played, _ = server.play(named, lines, outside=there)
            assert of(played, ToolReturned)[0].value == {"sum": 4}
            unset, _ = server.play(named, [], outside=server.outside(WEB_KEY=CANARY))
            assert "the environment variable WEB_URL is not set" in unset.at(RunEnded).data.reason
            wrong = server.outside(WEB_KEY="wrong-secret")
            played, _ = server.play(using(web), [], outside=wrong)
        finally:
            process.kill()
    reason = played.at(RunEnded).data.reason
    assert "HTTP 401" in reason
    assert "wrong-secret" not in reason
