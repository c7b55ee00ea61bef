import secrets as chance

import pytest

from support.cases import read_cases
from weft.check.run import check
from weft.check.secrets import is_secret_file, names_a_key, secret_in
from weft.check.subject import Subject
from weft.check.values import without_secrets
from weft.spec.workflow import WorkflowSpec

CASES = read_cases(__file__)

RANDOM = "aB3xK9mQ2pL7vR4tY8wZ1cF6hJ5nD0gS"


@pytest.mark.parametrize(
    ("name", "says"),
    [("CRM_KEY", True), ("apiKey", True), ("DB_PASS", True), ("MONKEY", False), ("TOKENS", False)],
)
def test_names_that_say_what_they_are(name, says):
    assert names_a_key(name) is says


def test_a_value_without_its_secrets():
    value = {"api_key": "9f2c81d07be4", "at": [{"db_password": "hunter2"}, 3, "free"], "no": None}
    assert without_secrets("x", value, "?") == {
        "api_key": "?",
        "at": [{"db_password": "?"}, 3, "free"],
        "no": None,
    }
    assert without_secrets("password", ["hunter2"], "?") == ["?"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x", "sk-proj-" + "a1B2" * 6),
        ("x", "use " + "AKIA" + "ABCDEFGH12345678" + " here"),
        ("x", "gh" + "p_" + "a1" * 18),
        ("x", "-----BEGIN RSA PRIVATE KEY-----\nMII"),
        ("x", "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + "abcdefghijkl"),
        ("x", "postgres://admin:hunter2@db/main"),
        ("x", RANDOM),
        ("x", f"the key is {RANDOM}, keep it"),
        ("password", "hunter2"),
        ("db_password", "hunter2"),
        ("dbPassword", "hunter2"),
        ("api_key", "9f2c81d07be4"),
        ("ApiKey", "9f2c81d07be4"),
        ("access_token", "9f2c81d07be4"),
        ("client-secret", "9f2c"),
    ],
)
def test_texts_that_look_like_secrets(name, text):
    kind = secret_in(name, text)
    assert kind
    assert text not in kind


@pytest.mark.parametrize(("name", "text"), CASES["test_texts_that_do_not"])
def test_texts_that_do_not(name, text):
    assert secret_in(name, text) is None


def test_random_texts_are_found_nearly_always():
    drawn = [chance.token_urlsafe(40) for _ in range(200)]
    assert sum(secret_in("x", text) is not None for text in drawn) > 190


@pytest.mark.parametrize(
    "path",
    [".env", "a/.env.local", "server.pem", "a/b/id_rsa", "CREDENTIALS", "secrets/a.md"],
)
def test_files_that_hold_secrets(path):
    assert is_secret_file(path)


@pytest.mark.parametrize(
    "path", ["env.md", "my.env.py", "my_id_rsa.md", "pem", "a/keys/list.json", ".envrc2"]
)
def test_files_that_do_not(path):
    assert not is_secret_file(path)


KEY = "sk-" + "a1B2" * 8
STEPS = [{"from": "a", "to": KEY}, {"from": KEY, "to": "b"}, {"from": KEY, "to": "b"}]
TIMER = {"type": "timer_expired", "after_seconds": 5, "value": KEY}


def derived(type_="str", **source):
    return {"type": type_, "source": {"type": "derived", **source}}


VARIABLES = {
    "a": derived(default=KEY, transitions=[{"from": "a", "to": "b"}]),
    "b": derived(default="a", transitions=[{"from": "a", "to": "b"}], triggers=[TIMER]),
    "c": derived(default="b", transitions=STEPS),
    "d": derived(default="a", transitions=STEPS[:1]),
    "e": derived("bool", default=False, triggers=[TIMER]),
    "f": {**derived(default="b", transitions=STEPS), "secret": True},
    "g": derived("bool", default=False),
}
CODE = f"""def look(context_variables):
    context_variables.set("d", "{KEY}2")
    context_variables.set("e", "{KEY}")
"""


def test_no_finding_repeats_a_secret():
    agents = ("A", "B")
    spec = {
        "orchestrator": {"workflow_name": "Demo", "initial_agent": "A"},
        "agents": [{"agent_name": name} for name in agents],
        "variables": VARIABLES,
        "exposure": {"A": list(VARIABLES)},
        "handoffs": [
            {"source_agent": "A", "target_agent": "B", "condition": f"{name} == '{KEY}'"}
            for name in VARIABLES
        ],
        "tools": [{"tool_type": "Agent_Tool", "agent": "A", "file": "look.py", "function": "look"}],
    }
    found = check(Subject(WorkflowSpec.model_validate(spec), code={"tools/look.py": CODE}))
    states = {f"STATE00{number}" for number in (1, 2, 3, 4)}
    assert {finding.code for finding in found} > {"VAR002", "VAR020", "VAR021", "COND003", *states}
    assert [finding for finding in found if KEY[:12] in str(finding)] == []
