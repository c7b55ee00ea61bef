"""Services over HTTP: which addresses are refused, where redirects end, what errors hide."""

import asyncio
import socket
import traceback
from collections.abc import Awaitable
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from support.model_play import StillClock, run
from support.service_play import (
    ADA,
    SECRET,
    TOO_LONG,
    Service,
    ask,
    asking,
    broken_off,
    failed,
    get,
    said,
    to,
    value,
    with_headers,
)
from weft.adapters.services import connections
from weft.adapters.services.connections import is_public
from weft.adapters.services.http_services import HttpServices
from weft.errors import PortError
from weft.ports.external import ServiceAnswer, ServiceLogin

# Addresses that are not public


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("0.0.0.0", "100.64.0.1", "224.0.0.251", "239.1.1.1", "240.0.0.1", "255.255.255.255"),
        *("192.0.0.192", "192.88.99.1", "198.18.0.1", "203.0.113.5", "168.63.129.16"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808"),
        *("2002:7f00:1::", "2002:808:808::1", "2001:0:808:808::1", "2001:db8::1", "100::1"),
        *("5f00::1", "localhost", "127.1", "0177.0.0.1", "2130706433", "", "1.2.3.4.5"),
    ],
)
def test_an_address_that_is_not_public(address: str):
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_an_address_that_is_public(address: str):
    assert is_public(address)


def refused(url: str, allow: frozenset[str] = frozenset()) -> str:
    async def play() -> PortError:
        services = HttpServices(StillClock(), allow)
        with pytest.raises(PortError) as caught:
            await services.ask(ADA, ask(url, attempts=3))
        await services.close()
        return caught.value

    fault = run(play())
    assert not fault.retryable
    assert fault.attempts == 1
    return str(fault)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::ffff:127.0.0.1]"])
async def test_this_machine_is_not_asked_unless_allowed(host: str):
    async with Service(1) as service:
        services = HttpServices(StillClock(), frozenset({"127.0.0.1:1", "other"}))
        with pytest.raises(PortError) as caught:
            await services.ask(ADA, ask(f"http://{host}:{service.port}/", attempts=3))
        await services.close()
        assert service.seen == []
        assert not caught.value.retryable
        assert f"{host.lower()}:{service.port}" in str(caught.value) or "ffff" in host
        assert "WEFT_ALLOW_HOSTS" in str(caught.value)


@pytest.mark.parametrize("allow", ["127.0.0.1", "127.0.0.1:PORT"])
def test_a_host_is_allowed_with_or_without_its_port(allow: str):
    async def play() -> ServiceAnswer:
        async with Service(1) as service:
            allowed = frozenset({allow.replace("PORT", str(service.port))})
            services = HttpServices(StillClock(), allowed)
            try:
                return await services.ask(ADA, ask(service.url()))
            finally:
                await services.close()

    assert run(play()).value == 1


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "10.0.0.1", "[fd00:ec2::254]", "[::1]", "0.0.0.0", "[64:ff9b::7f00:1]"],
)
def test_no_private_literal_is_connected_to(host: str, monkeypatch: pytest.MonkeyPatch):
    opened: list[object] = []
    real = socket.socket.connect
    monkeypatch.setattr(
        socket.socket, "connect", lambda *arguments: (opened.append(arguments), real(*arguments))
    )
    assert "has a private address" in refused(f"http://{host}/latest")
    assert opened == []


@pytest.mark.parametrize("host", ["2130706433", "127.1", "0177.0.0.1"])
def test_odd_spellings_of_a_host_lead_nowhere(host: str):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        refused(f"http://{host}:{listener.getsockname()[1]}/")
        with pytest.raises(BlockingIOError):
            listener.accept()


def name_leads_to(monkeypatch: pytest.MonkeyPatch, *found: str) -> None:
    """Let every name lead to these addresses."""

    def look_up(_: str, port: int, *__: Any, **___: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (item, port)) for item in found]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


def test_a_name_that_looks_public_and_leads_here_is_not_asked(monkeypatch: pytest.MonkeyPatch):
    name_leads_to(monkeypatch, "127.0.0.1", "10.0.0.1")
    assert "rebind.example:80 has a private address" in refused("http://rebind.example/")


def test_a_number_that_the_system_takes_for_an_address_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
):
    name_leads_to(monkeypatch, "127.0.0.1")
    assert "0x7f000001:80 has a private address" in refused("http://0x7f000001/")


def test_a_name_that_cannot_be_looked_up_is_not_asked(monkeypatch: pytest.MonkeyPatch):
    def look_up(host: str, *_: Any, **__: Any) -> None:
        host.encode("idna")  # as the real one does before it asks anybody

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert "a..b:80 is not a valid host" in refused("http://a..b/")


def test_a_public_address_is_connected_to(monkeypatch: pytest.MonkeyPatch):
    """No test may leave this machine, so one of its addresses passes for public here."""
    monkeypatch.setattr(connections, "is_public", lambda item: item == "127.0.0.1")
    name_leads_to(monkeypatch, "127.0.0.2", "127.0.0.1")

    async def play() -> ServiceAnswer:
        async with Service("hello") as service:
            services = HttpServices(StillClock())
            try:
                return await services.ask(ADA, ask(f"http://public.example:{service.port}/"))
            finally:
                await services.close()

    assert run(play()).value == "hello"


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/passwd", "ftp://example.org/", "//example.org/", "orders", "", "http://"),
        *("gopher://127.0.0.1:70/", "http://h:99999/", "unix:///run/docker.sock", "ws://a/"),
    ],
)
def test_only_http_is_spoken(url: str):
    assert "its url is invalid" in refused(url)


def test_a_login_does_not_stand_in_a_url():
    text = refused(f"http://ada:{SECRET}@127.0.0.1:9/", frozenset({"127.0.0.1:9"}))
    assert "Put that under auth" in text
    assert SECRET not in text


async def test_server_without_https_is_not_asked_again():
    async with asking(1) as (service, services):
        with pytest.raises(PortError) as caught:
            await services.ask(ADA, ask(f"https://{service.place}/", attempts=3))
        fault = caught.value
    assert "no secure connection" in str(fault)
    assert fault.attempts == 1


# Redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed(status: int):
    _, service, _ = get(to("/there?page=2", status), {"a": 1}, login=ServiceLogin("bearer", SECRET))
    assert [item.path_qs for item in service.seen] == ["/orders?key=in-the-query", "/there?page=2"]
    assert service.seen[1].headers["Authorization"] == f"Bearer {SECRET}"
    assert value(to("/there", status), {"a": 1}) == {"a": 1}


def test_endless_redirects_are_limited():
    outcome, service, _ = get(to("/again"), attempts=3)
    assert "redirects more than 5 times" in str(outcome)
    assert len(service.seen) == 6
    assert value(*[to("/again")] * 5, "at last") == "at last"


@pytest.mark.parametrize("scheme", ["http://", "//"])
async def test_a_redirect_to_a_private_address_is_not_followed(scheme: str):
    async with Service("inside") as inside:
        away = to(f"{scheme}{inside.place}/latest?token={SECRET}")
        async with asking(away) as (service, services):
            with pytest.raises(PortError) as caught:
                await services.ask(ADA, ask(service.url(), attempts=3))
        assert inside.seen == []
        assert f"{inside.place} has a private address" in str(caught.value)
        fault = caught.value
    assert not fault.retryable
    assert SECRET not in str(fault)


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "gopher://127.0.0.1/", "http://h:99999/", "data:,1"]
)
def test_a_redirect_to_something_else_is_not_followed(location: str):
    assert "an address that is not http or https" in str(failed(to(location)))


def test_a_redirect_from_https_to_http_is_not_followed():
    with pytest.raises(PortError, match=r"from https to http: http://b\.example"):
        connections._redirect_target(URL("https://a.example/"), f"http://b.example/x?t={SECRET}")
    target = connections._redirect_target(URL("http://a.example/"), "https://u:p@b.example/x")
    assert str(target) == "https://b.example/x"


@pytest.mark.parametrize(
    "login", [ServiceLogin("bearer", SECRET), ServiceLogin("header", SECRET, "X-Api-Key")]
)
async def test_a_login_is_sent_to_no_other_origin_and_not_again_after_it(login: ServiceLogin):
    async with Service(1) as home, Service(to("replaced")) as other:
        home.answers = [to(other.url("/away")), {"a": 1}]
        other.answers = [to(home.url("/back"))]
        services = HttpServices(StillClock(), frozenset({"127.0.0.1"}))
        answer = await services.ask(ADA, ask(home.url(), login=login))
        await services.close()
        assert answer.value == {"a": 1}
        assert SECRET in str(home.seen[0].headers)
        assert SECRET not in str([item.headers for item in (*other.seen, *home.seen[1:])])
        assert [len(home.seen), len(other.seen)] == [2, 1]


async def test_cookies_are_not_kept():
    async with Service(with_headers(302, Location="/next", Set_Cookie="a=1"), 1) as service:
        host = f"localhost:{service.port}"  # cookies of bare addresses are never kept
        services = HttpServices(StillClock(), frozenset({host}))
        await services.ask(ADA, ask(f"http://{host}/"))
        await services.close()
        assert ["Cookie" in item.headers for item in service.seen] == [False, False]


# Secrets


def not_json(_: web.BaseRequest) -> Awaitable[web.StreamResponse]:
    return said(SECRET.encode())(_)


@pytest.mark.parametrize(
    "answer",
    [500, 401, not_json, to(f"http://10.0.0.1/?k={SECRET}"), to(f"ftp://h/{SECRET}"), "slow"],
)
def test_no_error_holds_a_secret(answer: Any):
    async def slow(_: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.json_response(1)

    fault = failed(
        slow if answer == "slow" else answer,
        path=f"/orders?api_key={SECRET}#{SECRET}",
        login=ServiceLogin("bearer", SECRET),
        timeout=0.5,
    )
    shown = "".join(traceback.format_exception(fault)) + repr(fault)
    assert SECRET not in shown
    assert "orders, find (http://127.0.0.1:" in str(fault)
    assert "/orders): " in str(fault)


def test_library_messages_are_not_passed_on():
    fault = broken_off(TOO_LONG, f"http://PLACE/?key={SECRET}")
    assert SECRET not in "".join(traceback.format_exception(fault))


def test_nothing_that_is_kept_shows_a_secret():
    services = HttpServices(StillClock(), frozenset())
    login = ServiceLogin("bearer", SECRET)
    assert SECRET not in repr(login) + repr(vars(services)) + repr(ask("http://a/", login=login))
