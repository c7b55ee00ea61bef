"""Servers whose tools agents may use: NAME011, TOOL013, TOOL014, and whom they are for."""

import pytest

from unit.check.builders_code import codes, hits, only, subject

PROGRAM = {"name": "files", "command": ["files-server"]}
ADDRESS = {"name": "crm", "url": "https://crm.example/mcp"}


def serving(*servers, **fields):
    return subject(mcp_servers=[{**it, **fields} for it in servers])


def test_servers_that_can_be_used():
    env = {"REGION": "eu", "TOKEN": {"secret_env": "FILES_TOKEN"}}
    auth = {"type": "bearer", "secret_env": "CRM_KEY"}
    checked = serving(
        {**PROGRAM, "env": env, "agents": ["RouterAgent"], "allow": ["read"]},
        {**ADDRESS, "auth": auth, "approval": "always"},
    )
    assert codes(checked) == []


@pytest.mark.parametrize("name", ["my files", "1st", "_a", "a" * 32, "dörte", "a.b"])
def test_NAME011_a_name_that_tools_cannot_begin_with(name):
    hit = only("NAME011", serving(PROGRAM, name=name))
    assert hit.path == ("mcp_servers", 0, "name")
    assert f'"{name}" cannot be the name of a tool server' in hit.message


def test_NAME011_two_servers_of_one_name():
    hit = only("NAME011", serving(PROGRAM, ADDRESS, PROGRAM))
    assert hit.path == ("mcp_servers", 2, "name")
    assert hit.message == 'two tool servers are named "files"'
    assert "number 1" in hit.cause[0]


@pytest.mark.parametrize("name", ["f", "Files_2", "my-files", "a" * 31])
def test_NAME011_names(name):
    assert hits("NAME011", serving(PROGRAM, name=name)) == []


@pytest.mark.parametrize(
    ("server", "place", "fact"),
    [
        ({"name": "a"}, (), "neither a command that starts it nor a url"),
        ({**PROGRAM, "url": "https://a.b"}, ("url",), "a command that starts it and a url as well"),
        (
            {**PROGRAM, "auth": {"type": "basic", "secret_env": "KEY"}},
            ("auth",),
            "is a program, to which nobody signs in",
        ),
        ({**ADDRESS, "env": {"A": "b"}}, ("env",), "runs already, elsewhere: its env is not used"),
        ({**ADDRESS, "url": "crm.example"}, ("url",), "does not begin with https://"),
        ({**ADDRESS, "url": "{host}/mcp"}, ("url",), "begins with {host}, which is no open"),
        (
            {**ADDRESS, "auth": {"type": "bearer", "secret_env": "my key"}},
            ("auth", "secret_env"),
            "is not the name of an environment variable",
        ),
        (
            {**ADDRESS, "auth": {"type": "bearer", "secret_env": "KEY", "header": "X-Key"}},
            ("auth", "header"),
            "is not used",
        ),
        (
            {**PROGRAM, "env": {"A": {"secret_env": "a b"}}},
            ("env", "A", "secret_env"),
            "is not the name of an environment variable",
        ),
    ],
)
def test_TOOL013_a_server_that_cannot_be_reached(server, place, fact):
    hit = only("TOOL013", serving(server))
    assert hit.path == ("mcp_servers", 0, *place)
    assert fact in hit.message


@pytest.mark.parametrize(
    ("secret", "type_", "found"),
    [(False, "environment", 0), (True, "environment", 1), (False, "derived", 1)],
)
def test_TOOL013_a_url_may_begin_with_an_environment_variable(secret, type_, found):
    source = {"type": type_, **({"env_var": "CRM"} if type_ == "environment" else {})}
    host = {"type": "str", "source": source, "secret": secret}
    servers = [{**ADDRESS, "url": "{host}/mcp"}]
    assert len(hits("TOOL013", subject(mcp_servers=servers, variables={"host": host}))) == found


@pytest.mark.parametrize("url", ["http://crm.example/mcp", "HTTP://10.0.0.7:8080", "http://[::2"])
def test_TOOL014_in_the_open(url):
    hit = only("TOOL014", serving(ADDRESS, url=url))
    assert hit.path == ("mcp_servers", 0, "url")
    assert "can be read on its way" in hit.message


@pytest.mark.parametrize(
    "url", ["https://crm.example", "http://localhost:80/a", "http://127.0.0.1", "http://[::1]:80"]
)
def test_TOOL014_in_private(url):
    assert hits("TOOL014", serving(PROGRAM)) == hits("TOOL014", serving(ADDRESS, url=url)) == []


def test_BIND001_a_server_for_nobody():
    hit = only("BIND001", serving(PROGRAM, agents=["RouterAgent", "Clerk"]))
    assert hit.path == ("mcp_servers", 0, "agents", 1)
    assert hit.message == 'the tool server files is for "Clerk", which is no agent'
