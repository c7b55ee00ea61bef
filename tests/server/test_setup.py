"""Models and the doctor over HTTP: what is configured, and what is missing."""

import json
from urllib.parse import quote

import pytest
from benchmarks.mock_server import Answer, MockServer, error

from support.package_play import BROKEN, GREETER, write
from support.server_play import serving
from weft.app.settings import SETTINGS
from weft.app.settings_file import read_settings
from weft.server.settings import ServerSettings, settings_in_force

SECRET = "sk-secret-of-the-shop"


def with_model(name):
    orchestrator = {**json.loads(GREETER["orchestrator.json"]), "model": name}
    return {**GREETER, "orchestrator.json": json.dumps(orchestrator)}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workspace")
    write(folder / "workflows" / "Greeter", GREETER)
    write(folder / "apps" / "shop" / "workflows" / "Greeter", with_model("openai:mock"))
    return folder


@pytest.fixture(scope="module")
def server(workspace):
    """A server of two tenants; the one has a model provider, which is in this process."""
    settings = {"WEFT_FALLBACK_MODEL": "anthropic:other", "WEFT_EMBEDDINGS": "none"}
    with serving(workspace, settings) as server:
        for app in ("shop", "clinic"):
            server.post("/api/apps", {"app": app}, key=server.key("root", "administrator"))
        provider = MockServer([Answer("OK"), error(401, "the key is not valid")])
        server.run(provider.__aenter__())
        secrets = {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": provider.base_url}
        (workspace / "apps" / "shop" / "secrets.json").write_text(json.dumps(secrets))
        yield server
        server.run(provider.__aexit__(None, None, None))


def key(server, app="shop", *roles):
    return server.key("olga", *(roles or ("operator",)), app=app)


def test_models_are_listed_with_what_is_missing(server):
    found = {each["name"]: each for each in server.get("/api/models", key=key(server))["items"]}
    assert found["openai:mock"] == {
        "name": "openai:mock",
        "is_default": False,
        "is_fallback": False,
        "workflows": ["Greeter"],
        "problem": None,
    }
    assert found["sample"]["is_default"]
    assert found["anthropic:other"]["is_fallback"]
    assert "ANTHROPIC_API_KEY" in found["anthropic:other"]["problem"]
    assert SECRET not in json.dumps(found)


def test_model_is_called_once_with_the_keys_of_the_tenant(server):
    path = f"/api/models/{quote('openai:mock', safe='')}/test"
    done = server.post(path, key=key(server))
    assert (done["name"], done["text"], done["output_tokens"]) == ("openai:mock", "OK", 1)
    assert done["milliseconds"] >= 0
    refused = server.post(path, key=key(server), status=503)
    assert "the key is not valid" in refused["message"]
    assert SECRET not in json.dumps(refused)


def test_only_configured_models_are_called(server):
    for name in ("openai:other", "http://127.0.0.1:1/v1#x"):
        path = f"/api/models/{quote(name, safe='')}/test"
        said = server.post(path, key=key(server), status=404)
        assert said["hint"] == ["GET /api/models lists them"]
    server.post("/api/models/openai:mock/test", key=key(server, "clinic"), status=404)
    assert (
        "no provider"
        in server.post("/api/models/sample/test", key=key(server), status=422)["message"]
    )


def test_doctor_checks_what_runs_need(server, workspace):
    def subjects(found):
        return {each["subject"]: each for each in found["checks"]}

    found = server.get("/api/doctor", key=key(server))
    checks = subjects(found)
    assert set(checks) == {"weft", "runs", "models", "documents", "packages"}
    assert checks["packages"]["state"] == "ok"
    assert checks["models"]["state"] == "fail", "the fallback has no key"
    assert not found["ok"]
    machine = subjects(server.get("/api/doctor", key=key(server, "local")))
    assert {"python", "disk", "embeddings"} <= set(machine)
    write(workspace / "apps" / "shop" / "workflows" / "Greeter", BROKEN)
    checks = subjects(server.get("/api/doctor", key=key(server)))
    assert checks["packages"]["state"] == "warn"
    assert "Greeter" in checks["packages"]["fact"]
    assert (
        subjects(server.get("/api/doctor", key=key(server, "local")))["packages"]["state"] == "ok"
    )


def test_doctor_says_that_secrets_cannot_be_read(server, workspace):
    folder = workspace / "apps" / "clinic"
    folder.mkdir(exist_ok=True)
    (folder / "secrets.json").write_text("{")

    def has_failed(found):
        return any(each["subject"] == "settings" for each in found["checks"])

    found = server.until("/api/doctor", key(server, "clinic"), is_so=has_failed)
    [check] = [each for each in found["checks"] if each["subject"] == "settings"]
    assert check["state"] == "fail"
    assert "apps/clinic/secrets.json" in check["fact"]


def test_codes_are_explained(server):
    found = server.get("/api/codes/HTTP404", key=key(server, "shop", "end_user"))
    assert found["title"] == "Not found"
    assert server.get("/api/codes/TOOL004", key=key(server))["fix"]
    server.get("/api/codes/TOOL999", key=key(server), status=404)


@pytest.mark.parametrize("role", ["end_user"])
def test_setup_is_for_staff(server, role):
    person = key(server, "shop", role)
    for method, path in (
        ("GET", "/api/models"), ("POST", "/api/models/sample/test"), ("GET", "/api/doctor"),
    ):  # fmt: skip
        assert server.send(method, path, key=person, status=404)["message"] == "not found"
    server.get("/api/doctor", key=key(server, "shop", "developer"), status=404)


def test_settings_are_shown_with_their_origin_and_without_secrets(tmp_path, monkeypatch):
    (tmp_path / "weft.toml").write_text('hosts = "weft.example"\norigins = "https://file.example"')
    monkeypatch.setenv("WEFT_ORIGINS", "https://page.example")
    monkeypatch.setenv("WEFT_VAULT_KEY", "ab" * 32)
    with serving(tmp_path, read_settings(tmp_path), works=False) as server:
        found = server.get("/api/doctor", key=key(server, "local"))["checks"]
        others = server.get("/api/doctor", key=key(server, "shop"))["checks"]
    facts = {each["subject"]: each["fact"] for each in found}
    assert {name: facts[name] for name in (
        "WEFT_HOST", "WEFT_PORT", "WEFT_HOSTS", "WEFT_ORIGINS", "WEFT_VAULT_KEY", "--no-work",
    )} == {
        "WEFT_HOST": "127.0.0.1 (default)",
        "WEFT_PORT": "0 (flag)",
        "WEFT_HOSTS": "weft.example (weft.toml)",
        "WEFT_ORIGINS": "https://page.example (environment)",
        "WEFT_VAULT_KEY": "*** (environment)",
        "--no-work": "yes (flag)",
    }  # fmt: skip
    assert facts.keys() >= SETTINGS.keys() - {"WEFT_SERVER", "WEFT_SERVER_KEY"}
    assert "WEFT_PORT" not in {each["subject"] for each in others}


def test_addresses_are_shown_without_credentials(tmp_path):
    settings = {
        "WEFT_DOCUMENTS": "mongodb://ada:hidden@db/shop",
        "WEFT_SIGNAL": "nats://hidden@one:1,nats://hidden@two:1",
        "WEFT_MODEL_KEYS": "one:1=hidden",
    }
    journal = "postgresql://ada:hidden@db/weft?password=hidden"
    found = settings_in_force(tmp_path, settings, ServerSettings(), journal=journal, works=True)
    facts = {each.subject: each.fact for each in found}
    assert facts["WEFT_STORE"] == "postgresql://***@db/weft (flag)"
    assert facts["WEFT_DOCUMENTS"] == "mongodb://***@db/shop (environment)"
    assert "hidden" not in json.dumps(facts)
