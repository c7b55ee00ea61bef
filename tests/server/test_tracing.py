"""Spans of runs arrive at a collector, whichever processes have worked on a run."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from time import monotonic

import pytest

from support.desk_play import make_desk
from support.otlp_receiver import collecting
from support.retrieval_play import by_keywords
from support.server_play import serving
from weft.app.hosts import open_host
from weft.engine.events import ToolRequest
from weft.inspect.spans import trace_id
from weft.ports.model import ModelReply
from weft.ports.scope import Scope
from weft.runtime.signals import Answer, Stop

ADA = Scope("local", "ada")
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


#: Takes as long as a file says.
SLOW_GREET = '''
import time
from pathlib import Path


def greet(name: str, language: str = "English") -> str:
    """Greet somebody."""
    time.sleep(float(Path("s").read_text()))
    return f"Hello, {name}!"
'''


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    """Spans are sent every 50 ms."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")


@pytest.fixture
def collector():
    with collecting() as found:
        yield found


@pytest.fixture
def desk(tmp_path):
    make_desk(tmp_path)
    return tmp_path


def given(collector, **more):
    return {
        "PATH": os.environ["PATH"],
        "WEFT_MODEL": "sample",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        **more,
    }


def has_ended(spans):
    return any(span.name.startswith("invoke_workflow") for span in spans)


def expect_one_tree(spans, run, app="local"):
    """Every span is there once, in the trace of the run, below another one or the run."""
    assert {span.trace for span in spans} == {trace_id(app, run)}
    assert [id_ for id_, times in Counter(span.id for span in spans).items() if times > 1] == []
    known = {span.id: span for span in spans}
    (root,) = [span for span in spans if not span.parent]
    assert root.name.startswith("invoke_workflow")
    for span in spans:
        assert span.start <= span.end
        if span is not root:
            parent = known[span.parent]
            assert parent.start <= span.start
            assert span.end <= parent.end
    return root


def test_a_run_of_the_server_is_a_trace_and_the_same_spans_can_be_read_there(desk, collector):
    with serving(desk, given(collector)) as server:
        ada, dev = server.key("ada", "end_user"), server.key("dev", "developer")
        body = {"workflow": "HelloWorld", "message": "canary-message"}
        run = server.post("/api/runs", body, key=ada, status=201)["run"]
        server.settled(run, dev)
        spans = collector.until(has_ended)
        read = server.get(f"/api/runs/{run}/spans", key=dev)
        assert server.call("GET", f"/api/runs/{run}/spans", key=ada).status == 404
    root = expect_one_tree(spans, run)
    assert read["trace"] == root.trace
    assert {span["id"] for span in read["spans"]} == {span.id for span in spans}
    assert root.resource["service.name"] == "weft"
    kinds = Counter(span.name.split()[0] for span in spans)
    assert {"invoke_workflow", "invoke_agent", "chat"} <= set(kinds)
    (chat, *_) = [span for span in spans if span.name.startswith("chat")]
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.conversation.id"] == run
    assert "gen_ai.usage.input_tokens" in chat.attributes
    assert "canary" not in repr(spans)


#: A flow whose one step is shown a value of a database and passages of a collection.
GUIDE = {
    "orchestrator": {"workflow_name": "Guide"},
    "agents": {
        "agents": [
            {"agent_name": "Writer", "prompt_sections": [{"id": "role", "content": "You write."}]}
        ]
    },
    "context_variables": {
        "context_variables": {
            "definitions": {
                "topic": {"type": "str", "source": {"type": "derived", "default": "flowers"}},
                "text": {"type": "str", "source": {"type": "derived", "default": ""}},
                "hours": {
                    "type": "str",
                    "source": {
                        "type": "database",
                        "collection": "Shops",
                        "query_template": {"shop": "one"},
                        "field": "hours",
                        "refresh_strategy": "on_demand",
                    },
                },
            },
            "agents": {"Writer": {"variables": ["hours"]}},
        }
    },
    "flow": {
        "steps": [
            {
                "kind": "step",
                "name": "write",
                "work": {
                    "kind": "agent",
                    "agent": "Writer",
                    "prompt": "Write about {topic}.",
                    "output": "text",
                },
                "context": {
                    "sources": [
                        {"kind": "variable", "name": "hours"},
                        {"kind": "retrieval", "collection": "Insects", "query_path": "topic"},
                    ]
                },
            }
        ]
    },
}


def make_guide(workspace):
    """Write the package, and the passages that it searches."""
    folder = workspace / "workflows" / "Guide"
    folder.mkdir(parents=True)
    for name, content in GUIDE.items():
        (folder / f"{name}.json").write_text(json.dumps(content))

    async def add():
        async with by_keywords(workspace) as collections:
            texts = {"bees": "canary: bees dance to flowers.", "ants": "Ants follow a trail."}
            await collections.add_texts("Insects", texts, app="local")

    asyncio.run(add())


def test_reads_of_providers_and_collections_are_spans_below_the_turn(tmp_path, collector):
    make_guide(tmp_path)
    with serving(tmp_path, given(collector, WEFT_EMBEDDINGS="none")) as server:
        dev = server.key("dev", "developer")
        server.send("PUT", "/api/documents/Shops/1", {"shop": "one", "hours": "canary-9"}, key=dev)
        run = server.post("/api/runs", {"workflow": "Guide"}, key=dev, status=201)["run"]
        assert server.settled(run, dev)["outcome"] == "completed"
        spans = collector.until(has_ended)
        read = server.get(f"/api/runs/{run}/spans", key=dev)
    root = expect_one_tree(spans, run)
    (turn,) = [span for span in spans if span.name == "invoke_agent Writer"]
    assert turn.parent == root.id
    below = {span.name: span for span in spans if span.parent == turn.id}
    assert set(below) == {"provide_context hours", "retrieval Insects", "chat sample"}
    provider, retrieval = below["provide_context hours"], below["retrieval Insects"]
    assert provider.attributes["gen_ai.operation.name"] == "provide_context"
    assert provider.attributes["weft.provider.name"] == "hours"
    assert retrieval.attributes["gen_ai.operation.name"] == "retrieval"
    assert retrieval.attributes["gen_ai.data_source.id"] == "Insects"
    assert retrieval.attributes["weft.items"] == 1
    assert "canary" not in repr(spans)
    assert {span["id"] for span in read["spans"]} == {span.id for span in spans}


def replies():
    """The model of two calls and a last word: a person who answers at once."""
    lines = iter(
        [
            ModelReply("", (ToolRequest("1", "look_up", {"name": "canary-argument"}),)),
            ModelReply("", (ToolRequest("2", "look_up", {"name": "nobody"}),)),
            ModelReply("", (ToolRequest("3", "approve", {"what": "canary-asked"}),)),
            ModelReply("BYE"),
        ]
    )

    async def reply(_request):
        return next(lines)

    return reply


async def begin(desk, environment, person):
    """Start a run in a process of its own, which ends while a tool asks a person."""
    async with await open_host(desk, environment=environment, person=person) as host:
        run = await host.start("Desk", scope=ADA, message="canary-message")
        await host.settled(run, scope=ADA)
        return run


async def complete(desk, environment, person, run):
    """Answer in another process."""
    async with await open_host(desk, environment=environment, person=person) as host:
        (request,) = await host.requests(scope=ADA, run=run)
        await host.deliver(run, Answer(request.id, {"approved": True}), scope=ADA)
        await host.settled(run, scope=ADA)


def test_content_is_sent_only_when_allowed(desk, collector):
    with serving(desk, given(collector, **{CONTENT: "true"})) as server:
        ada = server.key("ada", "end_user")
        body = {"workflow": "HelloWorld", "message": "canary-message"}
        server.post("/api/runs", body, key=ada, status=201)
        spans = collector.until(has_ended)
    chat = next(span for span in spans if span.name.startswith("chat"))
    assert "canary-message" in chat.attributes["gen_ai.input.messages"]
    assert "assistant" in chat.attributes["gen_ai.output.messages"]


def test_a_run_that_another_process_continues_is_one_trace(desk, collector):
    environment = given(collector, WEFT_MODEL="you")
    person = replies()
    run = asyncio.run(begin(desk, environment, person))
    early = collector.until(lambda spans: len(spans) >= 4)
    assert not has_ended(early)
    asyncio.run(complete(desk, environment, person, run))
    spans = collector.until(has_ended)
    expect_one_tree(spans, run)
    names = Counter(span.name for span in spans)
    assert names["execute_tool look_up"] == 2
    assert names["execute_tool approve"] == names["invoke_agent Clerk"] == 1
    assert sum(times for name, times in names.items() if name.startswith("chat")) == 4
    refused = next(span for span in spans if span.status == 2)
    assert refused.attributes["error.type"] == "refused"
    approve = next(span for span in spans if span.name == "execute_tool approve")
    assert "weft.waited_ms" in approve.attributes
    assert "canary" not in repr(spans)
    assert "nobody" not in repr(spans)


def test_a_fork_is_a_trace_of_its_own(desk, collector):
    environment = given(collector, WEFT_MODEL="you")

    async def play():
        person = replies()
        async with await open_host(desk, environment=environment, person=person) as host:
            run = await host.start("Desk", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            child = await host.fork(run, scope=ADA, turn=1, model="sample")
            await host.settled(child, scope=ADA)
            for each in (child, run):
                if (await host.run(each, scope=ADA)).status != "ended":
                    await host.deliver(each, Stop("now"), scope=ADA)
                    await host.settled(each, scope=ADA)
            return run, child

    run, child = asyncio.run(play())
    both = {trace_id("local", each): each for each in (run, child)}
    spans = collector.until(lambda spans: sum(not span.parent for span in spans) == 2)
    for trace, each in both.items():
        expect_one_tree([span for span in spans if span.trace == trace], each)
    root = next(
        span for span in spans if not span.parent and span.trace == trace_id("local", child)
    )
    assert root.attributes["weft.parent_run"] == run


def test_a_collector_that_does_not_answer_delays_no_run(desk, collector, caplog):
    collector.hold.clear()
    environment = given(collector)
    times = []

    async def play():
        async with await open_host(desk, environment=environment) as host:
            for _ in range(20):
                begun = monotonic()
                run = await host.start("HelloWorld", scope=ADA, message="hi")
                await host.settled(run, scope=ADA)
                times.append(monotonic() - begun)
            collector.hold.set()

    asyncio.run(play())
    assert max(times) < 2
    collector.until(lambda spans: sum(not span.parent for span in spans) == 20)


def test_a_collector_that_refuses_is_one_warning(desk, collector, caplog):
    collector.status = 400

    async def play():
        async with await open_host(desk, environment=given(collector)) as host:
            for _ in range(3):
                run = await host.start("HelloWorld", scope=ADA, message="hi")
                await host.settled(run, scope=ADA)
                sent = len(collector.headers)
                while len(collector.headers) == sent:  # noqa: ASYNC110 - another thread
                    await asyncio.sleep(0.02)
            collector.status = 200
            run = await host.start("HelloWorld", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)

    with caplog.at_level(logging.WARNING, "weft.tracing"):
        asyncio.run(play())
    told = [record.getMessage() for record in caplog.records if record.name == "weft.tracing"]
    assert len(told) == 2
    assert told[0].startswith("spans cannot be sent, and are lost: ")
    assert "400" in told[0]
    assert told[1].startswith("spans are sent again; ")
    assert has_ended(collector.spans)


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        ({"OTEL_TRACES_EXPORTER": "console"}, "OTEL_TRACES_EXPORTER is otlp or none, not console"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "is http/protobuf, not grpc"),
        ({"OTEL_TRACES_EXPORTER": "none"}, None),
        ({"OTEL_SDK_DISABLED": "true"}, None),
    ],
)
def test_settings_that_send_no_spans(desk, collector, caplog, settings, warning):
    async def play():
        async with await open_host(desk, environment=given(collector, **settings)) as host:
            run = await host.start("HelloWorld", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)

    with caplog.at_level(logging.WARNING, "weft.tracing"):
        asyncio.run(play())
    told = [record.getMessage() for record in caplog.records if record.name == "weft.tracing"]
    assert [warning in text for text in told] == ([] if warning is None else [True])
    assert collector.headers == []


def test_standard_variables_are_used(desk, collector, monkeypatch):
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=s3cret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")

    async def play():
        async with await open_host(desk, environment=given(collector)) as host:
            run = await host.start("HelloWorld", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)

    asyncio.run(play())
    (root,) = [span for span in collector.spans if not span.parent]
    assert root.resource["service.name"] == "shop"
    assert root.resource["deployment.environment.name"] == "test"
    assert collector.headers[0]["x-api-key"] == "s3cret"
    assert collector.headers[0]["content-encoding"] == "gzip"
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    sent = len(collector.headers)
    asyncio.run(play())
    assert len(collector.headers) == sent


def test_a_killed_worker_loses_only_what_it_had_not_sent(desk, collector):
    """What the next worker continues is sent by that one, and nothing twice."""
    (desk / "workflows/HelloWorld/tools/greet.py").write_text(SLOW_GREET)
    (desk / "s").write_text("60")
    environment = given(collector, HOME=str(desk), OTEL_BSP_SCHEDULE_DELAY="20")

    async def start():
        async with await open_host(desk, environment=environment, works=False) as host:
            return await host.start("HelloWorld", scope=ADA, message="hi")

    run = asyncio.run(start())
    with working(desk, environment):
        collector.until(lambda spans: any(span.name.startswith("chat") for span in spans))
    (desk / "s").write_text("0")
    with working(desk, environment):
        spans = collector.until(has_ended)
    expect_one_tree(spans, run)
    assert sum(span.name.startswith("execute_tool") for span in spans) == 1


@contextmanager
def working(desk, environment):
    """A worker in a process of its own; it is killed at the end."""
    command = [sys.executable, "-m", "weft", "worker", "--workspace", str(desk)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment, cwd=desk) as process:
        try:
            yield
        finally:
            process.kill()
