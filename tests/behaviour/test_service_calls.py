"""Services that tools call: approved by a person, with a key, never sent by themselves."""

import asyncio
import json

import pytest
from aiohttp import web

from support.boundary_play import in_turns
from support.run_play import ADA
from support.service_play import Service, to
from support.source_play import declared, derived, desk, play, variable
from weft.adapters.services.http_services import HttpServices
from weft.engine.events import (
    ContextFetched,
    MessageSent,
    RequestOpened,
    ToolFailed,
    ToolReturned,
    TurnFailed,
    VariableSet,
)
from weft.ports.external import ExternalPorts
from weft.ports.scope import Scope
from weft.runtime.signals import Answer
from weft.testing.clock import ManualClock
from weft.testing.models import ScriptedModel, call

BOOK = '''
async def book(people: int, context_variables) -> dict:
    """Book a table."""
    context_variables.set("people", people)
    return {"got": await context_variables.refresh("booking")}
'''
TWICE = '''
async def book(people: int, context_variables) -> list:
    """Book two tables."""
    context_variables.set("people", people)
    return [await context_variables.refresh("booking") for _ in range(2)]
'''
BODY = {"table": {"people": "{people}", "for": "{user_id}!"}, "note": "{note}"}
OTHERS = {"people": derived("int", 0), "note": derived("optional[str]")}


class Desk(Service):
    """A service that keeps what it is sent."""

    def __init__(self, *answers):
        super().__init__(*answers)
        self.sent = []

    async def _handle(self, request):
        body = await request.text()
        key = request.headers.get("Idempotency-Key")
        self.sent.append((request.method, request.path, json.loads(body) if body else None, key))
        return await super()._handle(request)


class Lasting(HttpServices):
    """Outlives its hosts."""

    async def close(self):
        pass


async def empty(_request):
    return web.Response(status=204)


TOOL = {"tool_type": "Agent_Tool", "agent": "A", "file": "desk.py", "function": "book"}


def calling(service, type_="dict[str, any]", *, tool=TOOL, declare=None, auto=False, **source):
    """Declare a desk whose tool calls a service."""
    usual = {"service": "desk", "operation": "book", "url": service.url("/tables/{people}")}
    booking = variable(type_, "external", **{**usual, "method": "POST", **source})
    tools = [{**tool, "auto_invoke": auto}]
    spec = declared({"booking": booking, **OTHERS}, tools=tools, **(declare or {}))
    agent = spec.agents[0].model_copy(update={"auto_tool_mode": auto})
    return spec.model_copy(update={"agents": (agent,)})


def booked(*answers, people=3, code=BOOK, after=None, model=None, **source):
    """Play a run whose tool calls a service; return it and the service."""
    service = Desk(*(answers or ({"id": 7},)))
    model = model or ScriptedModel([call("book", people=people), "Done."])
    told = play(
        lambda running: calling(running, **source),
        model,
        service=service,
        code=desk(code),
        after=after,
    )
    return told, service


def answering(approved, scope=ADA):
    async def answer(host, run):
        requests = await host.requests(scope=scope, run=run)
        for request in requests:
            if request.kind == "ui":
                given = {"approved": approved, "comment": "not today"}
            await host.deliver(run, Answer(request.id, given), scope=scope)
        await host.settled(run, scope=ADA)

    return answer


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_method_and_body_are_sent_when_a_tool_refreshes_the_variable(method):
    told, service = booked(method=method, body=BODY, approval="never")
    ((sent, path, body, key),) = service.sent
    assert (sent, path) == (method, "/tables/3")
    assert body == {"table": {"people": 3, "for": "ada!"}, "note": None}
    assert told.of(ToolReturned)[0].value == {"got": {"id": 7}}
    assert VariableSet("booking", {"id": 7}, "source:external") in told.of(VariableSet)
    (fetched,) = told.of(ContextFetched)
    assert fetched.found["booking"].items() >= {"method": method, "key": key}.items()
    told.expect_same_again()


def test_nothing_is_sent_unless_a_tool_calls_the_service():
    told, service = booked(model=ScriptedModel(["Done."]), approval="never")
    assert service.sent == []
    assert told.state.variables["booking"] is None
    assert told.of(ContextFetched) == []


@pytest.mark.parametrize("approved", [True, False])
def test_approval_write_asks_a_person_before_the_call(approved):
    told, service = booked(body=BODY, after=answering(approved))
    (asked,) = [opened for opened in told.of(RequestOpened) if opened.kind == "ui"]
    assert (asked.component, asked.addressee) == ("ToolApproval", "")
    assert asked.payload["tool"] == "desk book"
    assert asked.payload["arguments"]["method"] == "POST"
    assert asked.payload["arguments"]["body"]["table"]["people"] == 3
    assert len(service.sent) == approved
    if approved:
        assert told.of(ToolReturned)[0].value == {"got": {"id": 7}}
    else:
        (failed,) = told.of(ToolFailed)
        assert (failed.kind, failed.error) == (
            "refused",
            "a person did not approve the call of desk book: not today",
        )


def test_for_says_who_approves_a_call():
    mia = Scope("app", "mia", roles=("manager",))
    told, service = booked(**{"for": "role:manager"}, after=answering(approved=True, scope=mia))
    (asked,) = [opened for opened in told.of(RequestOpened) if opened.kind == "ui"]
    assert asked.addressee == "role:manager"
    assert len(service.sent) == 1


def test_answer_may_be_empty():
    told, _ = booked(empty, method="DELETE", type_="optional[str]", approval="never")
    assert told.of(ToolReturned)[0].value == {"got": None}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (404, "it answered 404"),
        (to("/elsewhere", 307), "it answered 307"),
        ([1], "it has the wrong shape"),
    ],
)
def test_a_failed_call_fails_the_tool_though_there_is_a_default(answer, error):
    told, service = booked(answer, default={"id": 0}, approval="never")
    (failed,) = told.of(ToolFailed)
    assert error in failed.error
    assert len(service.sent) == 1
    assert told.state.variables["booking"] == {"id": 0}


def test_attempts_of_a_call_have_one_key_and_calls_have_their_own():
    retry = {"attempts": 2, "backoff_seconds": 0.01}
    told, service = booked(503, {"id": 1}, {"id": 2}, code=TWICE, retry=retry, approval="never")
    keys = [key for *_, key in service.sent]
    assert keys[0] == keys[1] != keys[2]
    assert told.of(ToolReturned)[0].value == [{"id": 1}, {"id": 2}]


def test_a_call_repeated_after_a_restart_has_the_same_key():
    asking = '''
async def book(people: int, context_variables) -> dict:
    """Book a table, then ask."""
    context_variables.set("people", people)
    got = await context_variables.refresh("booking")
    await use_ui_tool("book", got)
    return got
'''
    ui = {"tool_type": "UI_Tool", "ui": {"component": "Card", "mode": "inline"}}

    async def whole():
        async with Desk({"id": 7}) as service:
            spec = calling(service, approval="never", tool={**TOOL, **ui})

            async def ask(host, run):
                await host.settled(run, scope=ADA)

            async def answer(host, run):
                (request,) = await host.requests(scope=ADA, run=run)
                await host.deliver(run, Answer(request.id, {}), scope=ADA)
                await host.settled(run, scope=ADA)

            services = Lasting(ManualClock(), frozenset([service.place]))
            played = await in_turns(
                spec,
                [ask, answer],
                [ScriptedModel([call("book", people=3)]), ScriptedModel(["Done."])],
                code=desk("from weft import use_ui_tool", asking),
                outside=ExternalPorts(services=services),
            )
            await HttpServices.close(services)
            assert (
                len([event for event in played.events if isinstance(event.data, ToolReturned)]) == 1
            )
            return [key for *_, key in service.sent]

    keys = asyncio.run(asyncio.wait_for(whole(), 30))
    assert len(keys) == 2
    assert keys[0] == keys[1]


@pytest.mark.parametrize("approved", [True, False])
def test_a_structured_reply_is_not_shown_before_its_call_is_approved(approved):
    texts = {"agent_message": {"type": "str"}, "people": {"type": "int"}}
    declare = {
        "models": [{"name": "Table", "fields": texts}],
        "registry": [{"agent": "A", "model": "Table"}],
    }
    seen = []

    async def answer(host, run):
        seen.append([event async for event in host.events(run, scope=ADA)])
        await answering(approved)(host, run)

    told, _ = booked(
        model=ScriptedModel([{"agent_message": "Booked.", "people": 3}]),
        declare=declare,
        auto=True,
        after=answer,
    )
    assert not [event for event in seen[0] if isinstance(event.data, MessageSent)]
    assert len(told.of(MessageSent)) == approved
    assert len(told.of(TurnFailed)) == (not approved)
