"""Services over HTTP: what is asked, what is tried again, and what is kept."""

import asyncio
import gzip
import socket
import subprocess
import sys
import threading
from base64 import b64decode
from collections.abc import Awaitable
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from support.cases import read_cases
from support.model_play import StillClock, run
from support.service_play import (
    ADA,
    SECRET,
    TOO_LONG,
    Service,
    ask,
    asking,
    broken_off,
    counting,
    failed,
    get,
    said,
    value,
    with_headers,
)
from weft.adapters.services import connections, http_services
from weft.adapters.services.http_services import AnswerCache, HttpServices
from weft.app.settings import allowed_hosts
from weft.errors import PortError, UsageError
from weft.ports.external import ServiceAnswer, ServiceLogin
from weft.ports.scope import Scope
from weft.testing import ManualClock

CASES = read_cases(__file__)

# What is asked and answered


def test_the_json_of_a_service_is_its_answer():
    answer, service, _ = get({"total": 3, "rows": [1, None]})
    assert answer == ServiceAnswer({"total": 3, "rows": [1, None]})
    (request,) = service.seen
    assert (request.method, request.path_qs) == ("GET", "/orders?key=in-the-query")
    assert "Authorization" not in request.headers


@pytest.mark.parametrize(
    ("login", "header", "sent"),
    [
        (ServiceLogin("bearer", SECRET), "Authorization", f"Bearer {SECRET}"),
        (ServiceLogin("header", SECRET, "X-Api-Key"), "X-Api-Key", SECRET),
    ],
)
def test_a_login_is_sent(login: ServiceLogin, header: str, sent: str):
    _, service, _ = get(1, login=login)
    assert service.seen[0].headers[header] == sent


def test_a_name_and_a_password_are_sent_as_such():
    _, service, _ = get(1, login=ServiceLogin("basic", "ada:pässword"))
    kind, _, text = service.seen[0].headers["Authorization"].partition(" ")
    assert (kind, b64decode(text).decode()) == ("Basic", "ada:pässword")


@pytest.mark.parametrize(
    ("login", "what"),
    [
        (ServiceLogin("basic", "no-colon-" + SECRET), "USER:PASSWORD"),
        (ServiceLogin("bearer", SECRET + "\r\nX-Evil: 1"), "characters that no header may have"),
        (ServiceLogin("header", SECRET + "\udc80", "X-Key"), "characters that no header may have"),
        (ServiceLogin("bearer", ""), "is empty"),
        (ServiceLogin("header", SECRET, "X Key"), "'X Key' is not a valid header name"),
    ],
)
def test_a_login_no_header_can_hold_is_refused(login: ServiceLogin, what: str):
    outcome, service, _ = get(1, login=login, attempts=3)
    assert what in str(outcome)
    assert SECRET not in str(outcome)
    assert service.seen == []


def test_json_is_detected_by_content_not_by_name():
    assert value(said(b'{"a": 1}', content_type="text/html")) == {"a": 1}


@pytest.mark.parametrize(
    "body", [b"<html>", b"", b"NaN", b"[" * 300 + b"]" * 300, b'{"a": 1} x', b"\xff\xfe"]
)
def test_invalid_json_is_refused_under_any_name(body: bytes):
    fault = failed(said(body, content_type="application/json"), attempts=3)
    assert "the answer is not JSON" in str(fault)
    assert not fault.retryable
    assert fault.attempts == 1


def test_a_compressed_answer_is_read():
    body = said(gzip.compress(b"[1]"), headers={"Content-Encoding": "gzip"})
    assert value(body) == [1]


# Limits


@pytest.mark.parametrize(
    ("status", "what"),
    [(200, "more than 100000 bytes"), (404, "it answered 404"), (302, "redirects more than 5")],
)
def test_an_endless_body_is_cut_off_and_its_connection_dropped(status: int, what: str):
    ended = 0
    sent = 0

    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal ended, sent
        response = web.StreamResponse(status=status, headers={"Location": "/again"})
        await response.prepare(request)
        try:
            while True:
                await response.write(b"[" * 10_000)
                sent += 10_000
        finally:
            ended += 1

    async def play() -> None:
        async with asking(endless) as (service, services):
            with pytest.raises(PortError, match=what) as caught:
                await services.ask(ADA, ask(service.url(), max_bytes=100_000, attempts=3))
            assert not caught.value.retryable
            async with asyncio.timeout(5):  # what asked is still open
                while ended < len(service.seen):  # noqa: ASYNC110 - the service tells nobody
                    await asyncio.sleep(0.01)

    run(play())
    assert sent < 50_000_000  # buffers of the system, not all memory


def test_a_small_answer_that_unpacks_to_a_large_one_is_cut_off():
    bomb = said(gzip.compress(b" " * 50_000_000), headers={"Content-Encoding": "gzip"})
    assert "more than 1000 bytes" in str(failed(bomb, max_bytes=1000))


def test_as_many_bytes_as_allowed_are_read():
    assert value(said(b"[1, 2]"), max_bytes=6) == [1, 2]
    assert "more than 5 bytes" in str(failed(said(b"[1, 2]"), max_bytes=5))


def test_a_slow_service_is_given_up():
    async def slow(_: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.json_response(1)

    outcome, service, clock = get(slow, timeout=0.5, attempts=2, backoff=3.0)
    assert isinstance(outcome, PortError)
    assert "no answer within 0.5 s" in str(outcome)
    assert outcome.retryable
    assert (len(service.seen), clock.waits) == (2, [3.0])


def test_a_body_that_drips_is_given_up():
    async def dripping(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.05)

    assert "no answer within 0.3 s" in str(failed(dripping, timeout=0.3))


# Trying again


def test_a_busy_service_is_asked_again():
    answer, service, clock = get(429, 503, 500, {"a": 1}, attempts=5, backoff=0.5)
    assert answer == ServiceAnswer({"a": 1}, attempts=4)
    assert len(service.seen) == 4
    assert clock.waits == [0.5, 1.0, 2.0]


def test_a_service_that_always_fails_is_given_up():
    outcome, service, _ = get(500, attempts=3)
    assert isinstance(outcome, PortError)
    assert "it answered 500" in str(outcome)
    assert (outcome.retryable, outcome.attempts, len(service.seen)) == (True, 3, 3)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 418, 204, 300, 304])
def test_constant_value_is_not_requested_again(status: int):
    outcome, service, _ = get(status, attempts=3)
    assert isinstance(outcome, PortError)
    assert len(service.seen) == 1
    assert not outcome.retryable
    assert status == 204 or f"it answered {status}. Check " in str(outcome)


@pytest.mark.parametrize(
    ("headers", "waits"), CASES["test_a_service_is_asked_no_sooner_than_it_wants_within_limits"]
)
def test_a_service_is_asked_no_sooner_than_it_wants_within_limits(
    headers: dict[str, str], waits: list[float]
):
    _, _, clock = get(with_headers(429, **headers), 1, attempts=2)
    assert clock.waits == waits


@pytest.mark.parametrize(("asked", "told"), [("7", 7.0), ("86400", 86400.0), ("-5", 0.0)])
def test_an_error_says_how_long_a_service_wants_to_be_left_alone(asked: str, told: float):
    assert failed(with_headers(503, Retry_After=asked)).after_seconds == told


async def test_refused_connection_is_retried():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    services = HttpServices(StillClock(), frozenset({place}))
    with pytest.raises(PortError) as caught:
        await services.ask(ADA, ask(f"http://{place}/", attempts=2))
    await services.close()
    fault = caught.value
    assert f"no connection to {place}: " in str(fault)
    assert (fault.retryable, fault.attempts) == (True, 2)


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[1",
        TOO_LONG,
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n[1] ",
    ],
)
def test_a_connection_that_breaks_off_may_be_tried_again(reply: bytes):
    fault = broken_off(reply, attempts=2)
    assert (fault.retryable, fault.attempts) == (True, 2)


# Answers that are kept


def asked_often(service: Service, services: HttpServices, *requests: Any) -> Awaitable[list[Any]]:
    """Ask one after the other; return the values and whether they were kept."""

    async def play() -> list[Any]:
        found: list[Any] = []
        for scope, rest in requests:
            answer = await services.ask(scope, ask(service.url(), **rest))
            found.append((answer.value, answer.cached))
        return found

    return play()


def test_an_answer_is_kept_for_its_time_for_one_tenant_and_login():
    async def play() -> list[Any]:
        clock = ManualClock()
        kept = {"cache": 60.0}
        async with asking(counting(), clock=clock) as (service, services):
            found = await asked_often(
                service,
                services,
                (ADA, kept),
                (Scope("shop", "bob"), kept),
                (Scope("other", "ada"), kept),
                (ADA, {**kept, "login": ServiceLogin("bearer", "a")}),
                (ADA, {**kept, "login": ServiceLogin("bearer", "b")}),
                (ADA, {**kept, "login": ServiceLogin("header", "a", "X-Key")}),
                (ADA, {}),
            )
            await clock.advance(59)
            found += await asked_often(service, services, (ADA, kept), (ADA, {"cache": 10.0}))
            await clock.advance(60)
            found += await asked_often(service, services, (ADA, kept))
        return found

    values = [(item[0], cached) for item, cached in run(play())]
    assert values == [
        *((1, False), (1, True), (2, False), (3, False), (4, False), (5, False), (6, False)),
        *((1, True), (7, False)),
        (8, False),
    ]


async def test_changing_a_value_changes_no_copy():
    async with asking({"rows": [1]}) as (service, services):
        request = ask(service.url(), cache=60.0)
        answers = await asyncio.gather(*(services.ask(ADA, request) for _ in range(2)))
        answers[0].value["rows"].append(2)
        answers.append(await services.ask(ADA, request))
        answers[2].value["rows"].append(3)
        answers.append(await services.ask(ADA, request))
        assert ([answers[1].value, answers[3].value]) == [{"rows": [1]}, {"rows": [1]}]


async def test_an_error_is_not_kept():
    async with asking(said(b"oops"), 404, 7) as (service, services):
        request = ask(service.url(), cache=60.0)
        for _ in range(2):
            with pytest.raises(PortError):
                await services.ask(ADA, request)
        assert await services.ask(ADA, request) == ServiceAnswer(7)


async def test_those_who_ask_the_same_at_once_share_one_call():
    async with asking(503, counting()) as (service, services):
        request = ask(service.url(), cache=60.0, attempts=2)
        answers = await asyncio.gather(*(services.ask(ADA, request) for _ in range(20)))
        calls = len(service.seen)
    assert calls == 2
    assert answers == [ServiceAnswer([1], attempts=2)] * 20


async def test_two_tenants_share_no_call():
    async with asking(counting()) as (service, services):
        request = ask(service.url(), cache=60.0)
        answers = await asyncio.gather(
            *(services.ask(Scope.operator(app), request) for app in ("shop", "other"))
        )
        assert sorted(answer.value[0] for answer in answers) == [1, 2]


async def test_a_kept_answer_may_be_too_large_for_another():
    async with asking([1, 2, 3]) as (service, services):
        await services.ask(ADA, ask(service.url(), cache=60.0))
        with pytest.raises(PortError, match="more than 5 bytes"):
            await services.ask(ADA, ask(service.url(), cache=60.0, max_bytes=5))


async def test_uncached_value_is_requested_by_every_caller():
    async with asking(counting()) as (service, services):
        answers = await asyncio.gather(*(services.ask(ADA, ask(service.url())) for _ in range(3)))
        assert sorted(answer.value[0] for answer in answers) == [1, 2, 3]


async def test_cancelled_waiter_stops_no_other():
    asked, go = asyncio.Event(), asyncio.Event()

    async def wait(_: web.BaseRequest) -> web.StreamResponse:
        asked.set()
        await go.wait()
        return web.json_response("done")

    async with asking(wait) as (service, services):
        request = ask(service.url(), cache=60.0)
        first, second = (asyncio.ensure_future(services.ask(ADA, request)) for _ in "ab")
        await asked.wait()
        first.cancel()
        await asyncio.wait([first])
        go.set()
        assert (await second).value == "done"
        assert len(service.seen) == 1


async def test_abandoned_call_ends():
    clock = ManualClock()
    async with asking(503, "done", clock=clock) as (service, services):
        request = ask(service.url(), cache=60.0, attempts=2)
        alone = asyncio.ensure_future(services.ask(ADA, request))
        while not clock.sleepers:  # noqa: ASYNC110 - the clock tells nobody
            await asyncio.sleep(0.01)
        alone.cancel()
        await asyncio.wait([alone])
        await asyncio.sleep(0)
        assert clock.sleepers == 0
        assert (await services.ask(ADA, request)).attempts == 1


def test_few_answers_are_kept_and_the_one_used_longest_ago_goes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http_services, "MOST_ANSWERS", 3)
    monkeypatch.setattr(http_services, "MOST_BYTES", 10)

    def there(kept: AnswerCache) -> str:
        return "".join(letter for letter in "abcde" if kept.get(letter, now=5, ttl=9) is not None)

    kept = AnswerCache()
    for key in "abc":
        kept.put(key, b"xx", now=1)
    assert kept.get("a", now=2, ttl=9) == b"xx"
    kept.put("d", b"xx", now=3)
    assert there(kept) == "acd"
    kept.put("d", b"xxxxxx", now=4)
    assert there(kept) == "acd"
    kept.put("e", b"xxx", now=4)
    assert there(kept) == "de"
    kept.put("a", b"x" * 11, now=4)
    assert there(kept) == ""
    kept.put("b", b"x" * 10, now=4)
    assert there(kept) == "b"
    assert kept.get("b", now=3, ttl=9) is None  # the clock was set back


# The adapter itself


async def test_after_it_is_closed_nothing_is_asked():
    services = HttpServices(StillClock())
    await services.close()
    with pytest.raises(PortError, match="orders is not asked any more"):
        await services.ask(ADA, ask("http://a.example/"))


def test_without_the_library_it_says_what_to_install():
    program = """
import asyncio, sys
sys.modules["aiohttp"] = None
from weft.adapters.services.http_services import HttpServices
from weft.adapters.system_clock import SystemClock
from weft.errors import SetupError
from weft.ports.clock import Clock
from weft.ports.scope import Scope
from weft.ports.external import ServiceRequest
try:
    asyncio.run(HttpServices(SystemClock()).ask(Scope.operator("a"), ServiceRequest("s", "o", "http://a/")))
except SetupError as error:
    print(error, error.hint, sep="|")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    said, _, hint = done.stdout.partition("|")
    assert said == "s needs a library that is not installed: aiohttp"
    assert hint == 'install it: pip install "weft-agents[models]"\n'


def test_the_library_is_loaded_when_it_is_needed():
    program = "import sys, weft.adapters.services.http_services; print('aiohttp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"False"


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("", set()),
        ("localhost", {"localhost"}),
        (" LocalHost:080 ,10.0.0.1", {"localhost:80", "10.0.0.1"}),
        ("[0:0::1]:8080,[FD00::2]", {"[::1]:8080", "[fd00::2]"}),
    ],
)
def test_the_operator_names_hosts(text: str, hosts: set[str]):
    assert allowed_hosts({"WEFT_ALLOW_HOSTS": text}) == hosts
    assert allowed_hosts({}) == set()


@pytest.mark.parametrize(
    "text",
    [
        *("http://localhost", "a/b", "*", "a b", "a,,b", "a:", "a:99999", "::1", "[::zz]", "[::1"),
        *("user@host", "a:b", "10.0.0.0/8", "[127.0.0.1]", "a:1:2"),
    ],
)
def test_object_that_is_not_a_host_is_refused(text: str):
    with pytest.raises(UsageError, match="WEFT_ALLOW_HOSTS has an invalid host") as caught:
        allowed_hosts({"WEFT_ALLOW_HOSTS": text})
    assert caught.value.hint is not None
    assert "HOST:PORT" in caught.value.hint


@pytest.mark.parametrize(("url", "allowed"), [("http://[::1]:9/", True), ("http://[::1]/", False)])
async def test_an_ipv6_host_is_allowed_however_it_is_written(url: str, allowed: bool):
    pools = connections.Connections(allowed_hosts({"WEFT_ALLOW_HOSTS": "[0:0::1]:9"}))
    pools._pool(URL(url))
    opened = list(pools._pools)
    await pools.close()
    assert opened == [allowed]


async def test_other_reads_continue_while_a_library_loads(monkeypatch):
    read = threading.Event()

    def load(_service: str) -> type[connections.Connections]:
        assert read.wait(5), "nothing else could be done meanwhile"
        return connections.Connections

    monkeypatch.setattr(http_services, "load_connections", load)
    async with asking(1, 2) as (service, services):
        request = ask(service.url())
        asked = [asyncio.create_task(services.ask(ADA, request)) for _ in range(2)]
        await asyncio.sleep(0.05)
        read.set()
        assert sorted(entry.value for entry in (await asyncio.gather(*asked))) == [1, 2]
