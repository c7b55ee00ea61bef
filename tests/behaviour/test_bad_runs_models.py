"""Models that misbehave, seen through the real client: every run ends with an explanation."""

import asyncio
import json
from contextlib import asynccontextmanager
from random import Random

import pytest
from aiohttp import web

from behaviour.bad_run_play import ADA, finished, play, spec
from weft.adapters.live.memory import MemoryLiveStream
from weft.adapters.memory import MemoryStore
from weft.adapters.models.limits import RetryPolicy
from weft.adapters.models.registry import CallRules, ModelRegistry
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.system_clock import SystemClock
from weft.adapters.vault import MemoryVault
from weft.engine.events import ModelFailed, ModelReplied, OutputRefused, ToolFailed, ToolReturned
from weft.runtime.host import Host
from weft.runtime.workflow import link

CODE = {
    "tools/work.py": b'''
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"
'''
}
PLAN = {
    "models": [{"name": "Plan", "fields": {"steps": {"type": "int"}}}],
    "registry": [{"agent": "Clerk", "model": "Plan"}],
}
QUICK = CallRules(seconds=0.5, retries=RetryPolicy(attempts=3, first_wait=0.01, longest_wait=0.02))


def completion(content=None, *calls):
    """A well-formed answer."""
    asked = [
        {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content, "tool_calls": asked or None}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return web.json_response({"model": "m", "choices": [choice]})


def refusal(status, **headers):
    return web.json_response({"error": {"message": "not now"}}, status=status, headers=headers)


def raw(body):
    return web.Response(body=body, content_type="application/json")


class Server:
    """An OpenAI-compatible server that does one thing after another, then the last for ever."""

    def __init__(self, acts):
        self.acts = list(acts)
        self.asked = 0

    async def handle(self, request):
        body = await request.json()
        self.asked += 1
        act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
        return await act(request, body)


def act(make, *given):
    async def answer(_request, _body):
        return make(*given)

    return answer


async def silence(_request, _body):
    await asyncio.sleep(30)


async def hang_up(request, _body):
    request.transport.close()
    return web.Response()


async def cut(request, body):
    """Begin to answer, and break off."""
    response = web.StreamResponse()
    response.content_type = "text/event-stream" if body.get("stream") else "application/json"
    await response.prepare(request)
    if body.get("stream"):
        piece = {"choices": [{"delta": {"content": "I was about to "}}]}
        await response.write(b"data: " + json.dumps(piece).encode() + b"\n\n")
    else:
        await response.write(b'{"choices": [{"message": {"content": "I was ab')
    await asyncio.sleep(0.02)
    request.transport.close()
    return response


class Source:
    """Gives every agent the model behind the server."""

    def __init__(self, registry, name):
        self.registry = registry
        self.name = name

    def __call__(self, _name, _workflow, _scope):
        return self.registry.model(self.name)

    async def close(self):
        await self.registry.close()


@asynccontextmanager
async def serving(*acts, declared):
    server = Server(acts)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host_, port = runner.addresses[0][:2]
    clock, loader = SystemClock(), PythonToolLoader()
    registry = ModelRegistry(clock=clock, random=Random(1), settings={}, rules=QUICK)
    workflow = link(declared, CODE, loader)

    async def find(_app, _name):
        return workflow

    host = Host(
        store=MemoryStore(),
        live=MemoryLiveStream(),
        vault=MemoryVault(),
        models=Source(registry, f"http://{host_}:{port}/v1#m"),
        loader=loader,
        clock=clock,
        find=find,
    )
    try:
        async with host:
            yield host, server
    finally:
        await runner.cleanup()


def meet(*acts, follow=False, **declared):
    """Run once against a server that misbehaves and once against one that does not."""

    async def scenario():
        async with serving(*acts, declared=spec("pay", **declared)) as (host, server):
            if follow:
                with host._followers.subscribe((ADA.app, "first")):
                    run = await host.start("Desk", scope=ADA, message="hi", run="first")
                    bad = await finished(host, run)
            else:
                bad = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
            asked = server.asked
            server.acts = [act(completion, '{"steps": 1}')]
            good = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
            assert good.row.outcome == "completed"
            return bad, asked

    return play(scenario)


@pytest.mark.parametrize(
    ("misdeed", "said"),
    [
        (act(refusal, 429), "answered 429: not now"),
        (act(refusal, 500), "answered 500: not now"),
        (act(raw, b"<html>gateway</html>"), "not a chat completion"),
        (act(raw, b'{"choices": []}'), "not a chat completion"),
        (act(raw, b'{"choices": [{"message": {"content": 7}}]}'), "not a chat completion"),
        (act(raw, b'{"choices": [{"message": {"content": "\\ud800"}}]}'), "not a chat completion"),
        (act(completion, None, ("pay", "{amount")), "arguments for pay cannot be read"),
        (act(completion, None, ("pay", "[1]")), "they are not a JSON object"),
        (act(completion, None, ("pay", '{"amount": NaN}')), "arguments for pay cannot be read"),
        (silence, "no answer from"),
        (hang_up, "the connection failed"),
        (cut, "the connection failed"),
    ],
)
def test_a_model_that_stays_bad_ends_the_run_with_the_reason(misdeed, said):
    bad, asked = meet(misdeed)
    assert asked == 3, "what may pass is tried again, within limits"
    assert (bad.row.status, bad.row.outcome) == ("ended", "failed")
    failed = bad.only(ModelFailed)
    assert said in failed.error
    assert failed.attempts == 3
    assert said in bad.row.reason


@pytest.mark.parametrize("status", [400, 401, 404])
def test_permanent_error_is_not_retried(status):
    bad, asked = meet(act(refusal, status))
    assert asked == 1
    assert bad.row.outcome == "failed"
    assert f"answered {status}" in bad.row.reason


@pytest.mark.parametrize(
    "misdeed",
    [act(refusal, 429), act(refusal, 503), act(raw, b"{"), silence, hang_up, cut],
)
@pytest.mark.parametrize("follow", [False, True])
def test_a_model_that_is_bad_for_a_moment_is_asked_again(misdeed, follow):
    good = act(completion, "Here I am.")
    told, asked = meet(misdeed, good, follow=follow)
    assert asked == 2
    assert told.row.outcome == "completed"
    assert told.only(ModelReplied).text == "Here I am."


async def test_the_wait_a_server_asks_for_is_kept():
    waiting = act(refusal, 429)

    async def later(request, body):
        response = await waiting(request, body)
        response.headers["Retry-After"] = "0.2"
        return response

    async with serving(later, act(completion, "ok"), declared=spec("pay")) as (host, _):
        begun = asyncio.get_running_loop().time()
        told = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
        assert told.row.outcome == "completed"
        assert (asyncio.get_running_loop().time() - begun) >= 0.2


def test_unknown_tool_is_reported_to_the_model():
    told, _ = meet(act(completion, None, ("fly", "{}")), act(completion, "Then not."))
    failed = told.only(ToolFailed)
    assert (failed.error, failed.kind) == ("there is no tool fly; available: pay", "unknown")
    assert told.row.outcome == "completed"


def test_invalid_arguments_are_reported_to_the_model():
    told, _ = meet(
        act(completion, None, ("pay", '{"amount": "much"}')),
        act(completion, None, ("pay", '{"amount": 3}')),
        act(completion, "Paid."),
    )
    failed = told.only(ToolFailed)
    assert failed.kind == "retry"
    assert "amount should be a valid integer" in failed.error
    assert told.only(ToolReturned).value == "paid 3"


@pytest.mark.parametrize("reply", ["I will not", '{"steps": "many"}', "{", "[]"])
def test_output_that_never_fits_ends_the_run_with_what_does_not_fit(reply):
    told, asked = meet(act(completion, reply), **PLAN)
    faults = [event.data.error for event in told.events if isinstance(event.data, OutputRefused)]
    assert asked == len(faults) == 3
    assert told.row.outcome == "failed"
    assert told.row.reason.endswith(f"gave no valid reply: {faults[-1]}")


def test_output_that_fits_in_the_end_is_taken():
    told, asked = meet(act(completion, "hm"), act(completion, '{"steps": 2}'), **PLAN)
    assert asked == 2
    assert told.row.outcome == "completed"


def test_a_model_that_calls_tools_for_ever_is_stopped():
    told, asked = meet(act(completion, None, ("pay", '{"amount": 1}')))
    assert told.row.outcome == "failed"
    assert "25 model calls in one turn" in told.row.reason
    assert asked == 25
