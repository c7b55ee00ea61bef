"""Who calls: keys, sessions, tokens of an identity provider, and what each role may reach."""

import asyncio
import base64
import hmac
import json
import time
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Event, Thread

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from support.server_play import PATIENCE, serving, session_header
from support.socket_play import Socket
from weft.app.folders import LOCAL
from weft.errors import SetupError
from weft.server.auth.sessions import LIFETIME, TOKEN_LIFETIME
from weft.server.auth.tokens import TokenVerifier
from weft.server.identity import ROLES, Principal
from weft.server.routing import ROLES_KEY, Routes
from weft.server.serve import LOCAL_PRINCIPAL
from weft.server.settings import Limits, Oidc, ServerSettings, server_settings
from weft.testing.clock import ManualClock


def admin(server):
    return server.key("root", "administrator")


def test_route_without_roles_is_refused():
    with pytest.raises(TypeError, match="does not declare its roles"):
        Routes("test").router.add_api_route("/x", lambda: None)


def test_every_route_declares_its_roles(server):
    for path, methods in server.document["paths"].items():
        for method, operation in methods.items():
            assert operation[ROLES_KEY], f"{method} {path}"


def test_key_is_shown_once_and_used_until_it_is_deleted(server):
    made = server.post(
        "/api/keys",
        {"app": "local", "user": "ada", "roles": ["developer", "nurse"], "name": "laptop"},
        key=admin(server),
        status=201,
    )
    me = server.get("/api/me", key=made["key"])
    assert (me["user"], me["roles"]) == ("ada", ["developer", "nurse"])
    listed = server.get("/api/keys", key=admin(server))["items"]
    (info,) = [each for each in listed if each["id"] == made["id"]]
    assert info["name"] == "laptop"
    assert info["last_used_at"] >= info["created_at"]
    assert made["key"] not in json.dumps(listed)
    server.send("DELETE", f"/api/keys/{made['id']}", key=admin(server))
    server.get("/api/me", key=made["key"], status=401)
    server.send("DELETE", f"/api/keys/{made['id']}", key=admin(server), status=404)


def test_rotated_key_has_two_secrets_for_a_while(server):
    keys = server.opened.context.authenticator.keys
    made = server.run(keys.create("local", "bob", ["end_user"]))
    rotated = server.post(f"/api/keys/{made.id}/rotate", key=admin(server))
    for text in (made.text, rotated["key"]):
        assert server.get("/api/me", key=text)["user"] == "bob"
    again = server.run(keys.rotate("local", made.id, grace=0))
    server.get("/api/me", key=rotated["key"], status=401)
    assert server.get("/api/me", key=again.text)["user"] == "bob"


def test_expired_and_invalid_keys_are_refused(server):
    keys = server.opened.context.authenticator.keys
    expired = server.run(keys.create("local", "eve", ["developer"], expires_at=1))
    for text in (expired.text, "weft_x_y", "weft_", "other", "weft_000000000000_" + "a" * 43):
        reply = server.call("GET", "/api/me", key=text)
        assert (reply.status, reply.data["code"]) == (401, "HTTP401")
        assert reply.headers["www-authenticate"] == "Bearer"


def test_stored_key_is_a_hash(server):
    made = server.run(server.opened.context.authenticator.keys.create("local", "x", ["operator"]))
    record = server.run(server.opened.context.records.record("", "key", made.id))
    assert made.text.rpartition("_")[2] not in json.dumps(record.value)


@pytest.mark.parametrize("roles", [[], ["nurse"], [""]])
def test_key_needs_a_role_of_the_server(server, roles):
    body = {"app": "local", "user": "ada", "roles": roles}
    server.post("/api/keys", body, key=admin(server), status=422)


@pytest.mark.parametrize("role", sorted({*ROLES} - {"administrator"}))
def test_administration_does_not_exist_for_others(server, role):
    key = server.key("somebody", role)
    nothing = server.call("GET", "/api/nothing", key=key)
    for path in ("/api/keys", "/api/users", "/api/apps"):
        reply = server.call("GET", path, key=key)
        assert (reply.status, reply.content) == (404, nothing.content)


def test_administrator_of_a_tenant_manages_only_that_tenant(server):
    root = admin(server)
    server.post("/api/apps", {"app": "bakery"}, key=root)
    server.post("/api/apps", {"app": "clinic"}, key=root)
    body = {"app": "bakery", "user": "boss", "roles": ["administrator"]}
    boss = server.post("/api/keys", body, key=root, status=201)["key"]
    other = {"app": "clinic", "user": "x", "roles": ["developer"]}
    server.post("/api/keys", other, key=boss, status=404)
    server.post("/api/users", {"app": "clinic", "user": "x"}, key=boss, status=404)
    server.get("/api/keys?app=clinic", key=boss, status=404)
    server.post("/api/apps", {"app": "mine"}, key=boss, status=404)
    assert server.get("/api/apps", key=boss)["items"] == [{"app": "bakery"}]
    assert {"app": "clinic"} in server.get("/api/apps", key=root)["items"]
    unknown = {"app": "nowhere", "user": "x", "roles": ["developer"]}
    assert "no tenant" in server.post("/api/keys", unknown, key=root, status=422)["message"]
    server.send("DELETE", "/api/apps/bakery", key=root)
    server.get("/api/me", key=boss, status=401)


def test_roles_of_a_user_come_besides_those_of_the_key(server):
    root = admin(server)
    body = {"app": "local", "user": "doc", "roles": ["duty_doctor"], "labels": ["ward-1"]}
    server.post("/api/users", body, key=root)
    key = server.run(
        server.opened.context.authenticator.keys.create("local", "doc", ["end_user"])
    ).text
    me = server.get("/api/me", key=key)
    assert (me["roles"], me["labels"]) == (["duty_doctor", "end_user"], ["ward-1"])
    assert "doc" in [user["user"] for user in server.get("/api/users", key=root)["items"]]
    server.send("DELETE", "/api/users/doc", key=root)
    server.get("/api/me", key=key, status=401)


def test_user_of_whom_nothing_is_written_loses_keys_and_sessions(server):
    root, authenticator = admin(server), server.opened.context.authenticator
    for path in ("/api/users/guest", "/api/users/guest?app=nowhere"):
        server.send("DELETE", path, key=root, status=404)
    key = server.run(authenticator.keys.create("local", "guest", ["end_user"])).text
    server.send("DELETE", "/api/users/guest", key=root)
    server.get("/api/me", key=key, status=401)
    principal = Principal("local", "guest", frozenset({"end_user"}))
    cookie = server.run(authenticator.sessions.begin(principal))
    server.send("DELETE", "/api/users/guest", key=root)
    assert server.run(authenticator.sessions.find(cookie)) is None
    server.send("DELETE", "/api/users/guest", key=root, status=404)


def test_visibility_by_principal():
    person = Principal("shop", "ada", frozenset({"end_user", "nurse"}), ("night",))
    assert person.scope == person.person
    assert person.scope.addresses == ("user:ada", "role:nurse", "group:night")
    for role in ("developer", "operator", "administrator"):
        assert Principal("shop", "ada", frozenset({role})).scope.user is None
    assert not Principal("shop", "ada", frozenset({"operator"})).sees_all


# -- sessions


def session(server, token=None):
    token = token or server.opened.page.partition("#token=")[2]
    return server.call("POST", "/api/session", {"token": token})


def test_token_is_exchanged_once_for_a_session_that_survives_a_restart(workspace):
    with serving(workspace) as first:
        reply = session(first)
        cookie = reply.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
        assert session(first).status == 401
        name, _, value = cookie.partition(";")[0].partition("=")
        assert name == f"weft_session_{port(first)}"
        headers = {"cookie": f"{name}={value}"}
        assert first.call("GET", "/api/me", headers=headers).data["app"] == LOCAL.app
    with serving(workspace) as second:
        headers = {"cookie": f"weft_session_{port(second)}={value}"}
        me = second.call("GET", "/api/me", headers=headers)
        assert set(me.data["roles"]) == LOCAL_PRINCIPAL.roles
        second.call("DELETE", "/api/session", headers=headers)
        assert second.call("GET", "/api/me", headers=headers).status == 401
        name = f"weft_session_{port(second)}"
        for cookie in (f"{name}=", f"{name}=x; {name}=y", f'{name}="'):
            assert second.call("GET", "/api/me", headers={"cookie": cookie}).status == 401


def port(server):
    return server.url.rpartition(":")[2]


def test_cookies_of_other_programs_do_not_end_the_session(server):
    own = session_header(server, LOCAL_PRINCIPAL)
    value = own.partition("=")[2]
    for other in (
        'prefs={"a": [1, 2]}',
        "a b=c",
        "x@y=1",
        "=",
        "weft_session=z",
        "weft_session_1=z",
    ):
        for cookies in (f"{other}; {own}", f"{own}; {other}"):
            reply = server.call("GET", "/api/me", headers={"cookie": cookies})
            assert reply.status == 200, cookies
    headers = {"cookie": f"weft_session_1={value}"}
    assert server.call("GET", "/api/me", headers=headers).status == 401


def test_expired_sessions_are_deleted_when_one_begins(workspace):
    clock = ManualClock(time.time_ns() // 1_000_000)
    with serving(workspace, clock=clock) as server:
        context = server.opened.context
        sessions = context.authenticator.sessions
        old = server.run(sessions.begin(LOCAL_PRINCIPAL))
        server.run(clock.advance(LIFETIME / 1000 - 1))
        young = server.run(sessions.begin(LOCAL_PRINCIPAL))
        assert server.run(sessions.find(old)) == LOCAL_PRINCIPAL
        server.run(clock.advance(1))
        server.run(sessions.begin(LOCAL_PRINCIPAL))
        kept = {record.key for record in server.run(context.records.records("", "session"))}
        hashes = [sha256(cookie.encode()).hexdigest() for cookie in (old, young)]
        assert [each in kept for each in hashes] == [False, True]
        assert server.run(sessions.find(young)) == LOCAL_PRINCIPAL


def test_token_of_the_page_expires(workspace):
    clock = ManualClock(time.time_ns() // 1_000_000)
    with serving(workspace, clock=clock) as server:
        server.run(clock.advance(TOKEN_LIFETIME / 1000))
        assert session(server).status == 401


def session_by_key(server, key):
    """Begin a session with a key, and return its Cookie header."""
    reply = session(server, key)
    assert reply.status == 200
    return {"cookie": reply.headers["set-cookie"].partition(";")[0]}


def status_of_session(server, headers):
    return server.call("GET", "/api/me", headers=headers).status


def test_key_begins_a_session_with_its_rights(server):
    key = server.key("zoe", "end_user", "nurse", groups=["night"])
    headers = session_by_key(server, key)
    me = server.call("GET", "/api/me", headers=headers).data
    assert (me["user"], me["roles"], me["groups"]) == ("zoe", ["end_user", "nurse"], ["night"])
    assert status_of_session(server, session_by_key(server, key)) == 200, (
        "a key is no one-time token"
    )
    server.call("DELETE", "/api/session", headers=headers)
    assert status_of_session(server, headers) == 401


def test_token_and_key_that_are_not_valid_are_refused_alike(server):
    keys = server.opened.context.authenticator.keys
    expired = server.run(keys.create("local", "eve", ["developer"], expires_at=1))
    texts = ["x", "weft_", "weft_000000000000_" + "a" * 43, "weft_process_x", expired.text]
    answers = {(session(server, text).status, session(server, text).content) for text in texts}
    ((status, content),) = answers
    assert (status, b"the token or key is not valid" in content) == (401, True)


def test_session_ends_when_its_key_is_deleted_or_rotated(server):
    keys = server.opened.context.authenticator.keys
    made = server.run(keys.create("local", "ida", ["developer"]))
    headers = session_by_key(server, made.text)
    server.run(keys.rotate("local", made.id))
    assert status_of_session(server, headers) == 200, "the old secret is valid for a while"
    newest = server.run(keys.rotate("local", made.id, grace=0))
    assert status_of_session(server, headers) == 401
    headers = session_by_key(server, newest.text)
    server.run(keys.delete("local", made.id))
    assert status_of_session(server, headers) == 401


def test_session_ends_when_its_key_expires(workspace):
    clock = ManualClock(time.time_ns() // 1_000_000)
    with serving(workspace, clock=clock) as server:
        keys = server.opened.context.authenticator.keys
        made = server.run(
            keys.create("local", "guest", ["end_user"], expires_at=clock.now() + 60_000)
        )
        headers = session_by_key(server, made.text)
        server.run(clock.advance(59))
        assert status_of_session(server, headers) == 200
        server.run(clock.advance(1))
        assert status_of_session(server, headers) == 401


def test_stored_session_holds_no_key(server):
    made = server.run(server.opened.context.authenticator.keys.create("local", "x", ["operator"]))
    session_by_key(server, made.text)
    records = server.run(server.opened.context.records.records("", "session"))
    secret = made.text.rpartition("_")[2]
    assert secret not in json.dumps([record.value for record in records])


def test_pages_of_other_origins_and_names_are_refused(server):
    key = server.key("ada", "developer")
    own = server.url.removeprefix("http://")
    for headers, status in (
        ({"Origin": f"http://{own}"}, 422),
        ({"Origin": "https://elsewhere.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Origin": "http://[x]"}, 403),
        ({"Host": "elsewhere.example"}, 421),
        ({"Host": "localhost:1"}, 422),
        ({"Host": ""}, 421),
    ):
        reply = server.call("POST", "/api/session", {}, key=key, headers=headers)
        assert reply.status == status, headers
    settings = ServerSettings(
        port=0, hosts=frozenset({"shop.example"}), origins=frozenset({"https://desk.example"})
    )
    with serving(server.opened.context.workspace, settings=settings) as named:
        headers = {"Host": "shop.example", "Origin": "https://desk.example"}
        reply = named.call("POST", "/api/session", {}, headers=headers)
        assert (reply.status, reply.headers["access-control-allow-origin"]) == (
            422, "https://desk.example",
        )  # fmt: skip


def test_server_that_others_can_reach_needs_known_callers(tmp_path):
    (tmp_path / "workflows").mkdir()
    with (
        pytest.raises(SetupError, match="knows no callers") as caught,
        serving(tmp_path, settings=ServerSettings(host="0.0.0.0", port=0)),
    ):
        pass
    assert "weft keys create" in caught.value.hint


# -- tokens of an identity provider


class Provider:
    """An identity provider on this machine: its keys, and tokens."""

    def __init__(self):
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.reads = 0
        self.with_ec = True
        self.is_down = False
        self.asked, self.answers = Event(), Event()
        self.answers.set()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                provider.reads += 1
                provider.asked.set()
                provider.answers.wait(PATIENCE)
                if provider.is_down:
                    self.send_error(503)
                    return
                content = json.dumps(provider.document(self.path)).encode()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def document(self, path):
        if path.startswith("/.well-known"):
            return {"jwks_uri": f"{self.issuer}/keys"}
        keys = [jwt.algorithms.RSAAlgorithm.to_jwk(self.rsa.public_key(), as_dict=True)]
        keys[0]["kid"] = "rsa"
        if self.with_ec:
            keys.append(jwt.algorithms.ECAlgorithm.to_jwk(self.ec.public_key(), as_dict=True))
            keys[1]["kid"] = "ec"
        return {"keys": keys}

    def token(self, kind="rsa", **changes):
        claims = {
            "iss": self.issuer, "aud": "weft", "sub": "ada", "app": "shop",
            "roles": ["developer"], "exp": int(time.time()) + 60, **changes,
        }  # fmt: skip
        claims = {name: value for name, value in claims.items() if value is not None}
        key, algorithm = (self.rsa, "RS256") if kind == "rsa" else (self.ec, "ES256")
        return jwt.encode(claims, key, algorithm, headers={"kid": kind})

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def provider():
    made = Provider()
    yield made
    made.close()


@pytest.fixture(scope="module")
def trusting(provider, workspace):
    settings = ServerSettings(port=0, oidc=Oidc(provider.issuer, "weft"))
    with serving(workspace, settings=settings) as server:
        yield server


@pytest.mark.parametrize("kind", ["rsa", "ec"])
def test_tokens_of_the_issuer_name_tenant_user_and_roles(trusting, provider, kind):
    me = trusting.get("/api/me", key=provider.token(kind, groups="night day"))
    assert (me["app"], me["user"], me["roles"]) == ("shop", "ada", ["developer"])
    assert me["groups"] == ["night", "day"]
    assert trusting.get("/api/me", key=provider.token(roles=None))["roles"] == ["end_user"]


def test_issuer_may_end_with_a_slash(provider, workspace):
    issuer = f"{provider.issuer}/"
    given = {"WEFT_OIDC_ISSUER": issuer, "WEFT_OIDC_AUDIENCE": "weft"}
    with serving(workspace, settings=server_settings(given, port=0)) as server:
        assert server.get("/api/me", key=provider.token(iss=issuer))["user"] == "ada"
        assert server.call("GET", "/api/me", key=provider.token()).status == 401


def test_tokens_of_a_deleted_tenant_are_refused(trusting, provider):
    root, token = admin(trusting), provider.token(app="mill")
    assert trusting.get("/api/me", key=token)["app"] == "mill", "it exists by use"
    trusting.send("DELETE", "/api/apps/mill", key=root, status=404)
    trusting.post("/api/apps", {"app": "mill"}, key=root)
    trusting.send("DELETE", "/api/apps/mill", key=root)
    trusting.get("/api/me", key=token, status=401)
    trusting.send("DELETE", "/api/apps/mill", key=root, status=404)
    trusting.post("/api/apps", {"app": "mill"}, key=root)
    assert trusting.get("/api/me", key=token)["app"] == "mill"


def test_other_tokens_are_refused(trusting, provider):
    unsigned = jwt.encode({"sub": "ada", "app": "shop"}, None, "none", headers={"kid": "rsa"})
    secret = jwt.encode({"sub": "ada"}, "x" * 40, "HS256", headers={"kid": "rsa"})
    head, claims, signature = provider.token().split(".")
    own = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    own_key = jwt.algorithms.RSAAlgorithm.to_jwk(own.public_key(), as_dict=True)
    valid = jwt.decode(provider.token(), options={"verify_signature": False})
    other_app = base64_of({**valid, "app": "clinic"})
    public = provider.rsa.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for token in (
        provider.token(exp=int(time.time()) - 1),
        provider.token(exp=None),
        provider.token(aud="other"),
        provider.token(iss="https://elsewhere.example"),
        provider.token(sub=None),
        provider.token(app=None),
        provider.token(app=""),
        provider.token()[:-3],
        provider.token(nbf=int(time.time()) + 3600),
        provider.token(aud=["other", "another"]),
        provider.token(sub=17),
        provider.token(exp="tomorrow"),
        f"{head}.{other_app}.{signature}",
        f"{head}.{claims}.",
        f"{head}.{claims}",
        f"{claims}.{head}.{signature}",
        unsigned,
        secret,
        # The public key of the provider, taken for the secret of a symmetric signature.
        signed_with_secret({"alg": "HS256", "kid": "rsa"}, valid, public),
        # Keys that the token brings itself, names of other keys, and no or another algorithm.
        jwt.encode(valid, own, "RS256", headers={"kid": "rsa"}),
        jwt.encode(valid, own, "RS256", headers={"kid": "rsa", "jwk": own_key}),
        jwt.encode(valid, own, "RS256", headers={"kid": "x", "jku": "http://127.0.0.1:1/keys"}),
        jwt.encode(valid, own, "RS256", headers={"kid": "../../dev/null"}),
        jwt.encode(valid, own, "PS256", headers={"kid": "rsa"}),
        jwt.encode(valid, provider.rsa, "RS256", headers={"kid": "ec"}),
        jwt.encode(valid, provider.rsa, "RS512", headers={"kid": "rsa"}),
        signed_with_secret({"alg": "nOnE", "kid": "rsa"}, valid, b"x"),
        signed_with_secret({"alg": ["RS256"], "kid": "rsa"}, valid, b"x"),
        signed_with_secret({"alg": "RS256", "kid": {"a": 1}}, valid, public),
        signed_with_secret({"kid": "rsa"}, valid, public),
        "..",
        "a.b.c",
        "weft_",
        "\xff",
        "a" * 20_000,
    ):
        assert trusting.call("GET", "/api/me", key=token).status == 401


def base64_of(value):
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def signed_with_secret(header, claims, secret):
    text = f"{base64_of(header)}.{base64_of(claims)}"
    return f"{text}.{base64_of(hmac.digest(secret, text.encode(), 'sha256'))}"


def test_socket_and_stream_end_when_the_token_does(provider, workspace):
    limits = Limits(heartbeat_seconds=0.3, identity_seconds=0.3)
    settings = ServerSettings(port=0, oidc=Oidc(provider.issuer, "weft"), limits=limits)
    with serving(workspace, settings=settings) as server:
        key = server.key("ada", "end_user", "developer", app="shop")
        body = {"workflow": "Desk", "message": "hello", "model": "sample"}
        run = server.post("/api/runs", body, key=key, status=201)["run"]
        server.settled(run, key)
        for_stream = provider.token(exp=int(time.time()) + 2)
        stream = server.call("GET", f"/api/runs/{run}/stream", key=for_stream)
        assert b"RunStarted" in stream.content
        token = provider.token(exp=int(time.time()) + 2)
        with Socket(server.url, token) as opened:
            assert opened.do("follow", run=run)["ok"]
            assert opened.closed() == 1008
        assert server.call("GET", "/api/me", key=token).status == 401


def test_keys_of_the_issuer_are_read_once(trusting, provider):
    trusting.get("/api/me", key=provider.token())
    before = provider.reads
    for number in range(5):
        trusting.get("/api/me", key=provider.token(jti=str(number)))
    unknown = jwt.encode({"sub": "ada"}, provider.rsa, "RS256", headers={"kid": "unknown"})
    for _ in range(3):
        assert trusting.call("GET", "/api/me", key=unknown).status == 401
    assert provider.reads == before


@pytest.fixture
def failing():
    """A provider that a test lets fail, a verifier of its tokens, and the verifier's clock."""
    made, clock = Provider(), ManualClock(time.time_ns() // 1_000_000)
    yield made, TokenVerifier(Oidc(made.issuer, "weft"), clock), clock
    made.answers.set()
    made.close()


async def test_known_keys_remain_while_the_issuer_is_down(failing):
    provider, verifier, clock = failing
    assert await verifier.verify(provider.token())
    provider.is_down = True
    await clock.advance(601)
    before = provider.reads
    for number in range(3):
        assert await verifier.verify(provider.token(jti=str(number)))
    assert provider.reads == before + 1


async def test_stranger_does_not_let_others_wait_for_the_issuer(failing):
    provider, verifier, clock = failing
    assert await verifier.verify(provider.token())
    await clock.advance(31)
    provider.asked.clear()
    provider.answers.clear()
    unknown = jwt.encode({"sub": "ada"}, provider.rsa, "RS256", headers={"kid": "unknown"})
    stranger = asyncio.create_task(verifier.verify(unknown))
    assert await asyncio.to_thread(provider.asked.wait, PATIENCE)
    async with asyncio.timeout(PATIENCE / 4):
        assert await verifier.verify(provider.token(jti="other"))
    assert not stranger.done()
    provider.answers.set()
    assert await stranger is None


async def test_issuer_that_is_down_from_the_start_is_not_asked_at_once_again(failing):
    provider, verifier, clock = failing
    provider.is_down = True
    for _ in range(3):
        with pytest.raises(SetupError, match="cannot be read: 503"):
            await verifier.verify(provider.token())
    assert provider.reads == 1
    provider.is_down = False
    await clock.advance(31)
    assert await verifier.verify(provider.token())
