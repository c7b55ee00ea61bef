"""The web page: static files for everyone, with the policy of a page; and a server without it."""

import gzip
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from support.server_play import PATIENCE, Reply, serving
from weft.server.page import SCREENS, BuiltPage, content_policy

INDEX = b"<!doctype html><title>Weft</title>"
SCRIPT = b"export const text = 'a text that repeats itself';\n" * 20


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A built page of a few small files."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "assets").mkdir()
    (folder / ".vite").mkdir()
    (folder / "index.html").write_bytes(INDEX)
    (folder / "theme.js").write_bytes(b"document.documentElement.dataset.theme = 'dark';")
    (folder / "icon.svg").write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "assets" / "index-B3x_-9.js").write_bytes(SCRIPT)
    (folder / "assets" / "geist-1.woff2").write_bytes(b"wOF2" * 100)
    (folder / "assets" / "notes.txt").write_bytes(b"not a file of the page")
    (folder / ".vite" / "manifest.json").write_bytes(b"{}")
    return folder


@pytest.fixture(scope="module")
def server(workspace, page):
    with serving(workspace) as server:
        server.opened.context.page = BuiltPage(page)
        yield server


def ask(server, path, method="GET", **headers):
    """Send a request as a browser does, without a key."""
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=named)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(answer.status, found, answer.read())
    finally:
        connection.close()


ADDRESSES = ["/", *(f"/{screen}" for screen in SCREENS), "/runs/r1?at=7", "/workflows/A b/files"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_address_of_a_screen_shows_the_page(server, address):
    reply = ask(server, address.replace(" ", "%20"))
    assert (reply.status, reply.content) == (200, INDEX)
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.headers["cache-control"] == "no-cache"


def test_page_has_a_strict_policy_and_may_not_be_framed(server):
    host = urlsplit(server.url).netloc
    for path in ("/theme.js", "/icon.svg", "/assets/index-B3x_-9.js", "/assets/geist-1.woff2"):
        assert ask(server, path).headers["content-security-policy"] == content_policy(host)
    headers = ask(server, "/").headers
    assert headers["content-security-policy"] == content_policy(host)
    assert f"frame-src {host}/frame;" in headers["content-security-policy"]
    for directive in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"):
        assert directive in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["permissions-policy"] == "camera=(), microphone=(), geolocation=()"


@pytest.mark.parametrize(
    ("host", "frames"),
    [
        ("127.0.0.1:8765", "127.0.0.1:8765/frame"),
        ("Weft.example", "weft.example/frame"),
        ("localhost:1", "localhost:1/frame"),
        ("10.0.0.7:8765", "'self'"),
        ("[::1]:8765", "'self'"),
        ("localhost:1; script-src *", "'self'"),
        ("", "'self'"),
    ],
)
def test_policy_names_the_frame_where_a_policy_can(host, frames):
    assert f"frame-src {frames};" in content_policy(host)


def test_assets_are_kept_for_ever_and_compressed(server):
    path = "/assets/index-B3x_-9.js"
    plain, packed = ask(server, path), ask(server, path, accept_encoding="br, gzip")
    assert plain.content == SCRIPT == gzip.decompress(packed.content)
    assert plain.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == (
        "gzip",
        "accept-encoding",
    )
    assert packed.headers["content-type"] == "text/javascript; charset=utf-8"
    font = ask(server, "/assets/geist-1.woff2", accept_encoding="gzip")
    assert (font.headers["content-type"], "content-encoding" in font.headers) == (
        "font/woff2",
        False,
    )


@pytest.mark.parametrize("path", ["/", "/theme.js", "/icon.svg", "/assets/index-B3x_-9.js"])
def test_file_that_the_browser_has_is_not_sent_again(server, path):
    first = ask(server, path)
    again = ask(server, path, if_none_match=first.headers["etag"])
    assert (first.status, again.status, again.content) == (200, 304, b"")
    head = ask(server, path, "HEAD")
    assert (head.status, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(first.content))


@pytest.mark.parametrize(
    "path",
    [
        "/elsewhere", "/runs.html", "/index.html", "/assets", "/assets/", "/assets/gone.js",
        "/assets/notes.txt", "/assets/..", "/assets/../index.html", "/assets/..%2Findex.html",
        "/assets/%2e%2e%2findex.html", "/assets/..%5Cindex.html", "/assets/x%00.js",
        "/.vite/manifest.json", "/assets/.vite", "/frame/..", "//runs",
    ],
)  # fmt: skip
def test_nothing_else_is_served(server, path):
    reply = ask(server, path)
    assert (reply.status, reply.data["code"]) == (404, "HTTP404")


def test_page_only_reads(server):
    reply = ask(server, "/runs", "POST", origin=server.url)
    assert (reply.status, reply.data["code"]) == (405, "HTTP405")


def test_page_that_is_built_again_is_served_at_once(workspace, tmp_path):
    (tmp_path / "index.html").write_bytes(INDEX)
    with serving(workspace) as server:
        server.opened.context.page = BuiltPage(tmp_path)
        first = ask(server, "/")
        (tmp_path / "index.html").write_bytes(INDEX + b"<p>new")
        second = ask(server, "/", if_none_match=first.headers["etag"])
    assert (second.status, second.content) == (200, INDEX + b"<p>new")


def test_server_without_the_page_says_how_to_build_it(workspace, tmp_path):
    with serving(workspace) as server:
        server.opened.context.page = BuiltPage(tmp_path / "missing")
        reply = ask(server, "/runs/r1")
        assert (reply.status, reply.content) == (503, b"The page is not built; run make web\n")
        assert ask(server, "/theme.js").status == 404
        assert ask(server, "/healthz").status == 200


def test_requests_of_the_page_are_counted_by_route(server):
    ask(server, "/runs/some-run")
    metrics = ask(server, "/metrics").content.decode()
    assert 'route="/runs/{rest:path}"' in metrics
    assert "some-run" not in metrics
