"""VAR022: whether a value can be fetched."""

from dataclasses import replace

import pytest

from unit.check.builders_code import static, subject
from weft.check.rules.sources import value_can_be_fetched

SOURCE = ("variables", "x", "source")


def hits(**source):
    variables = {"plan": static(), "x": {"type": "any", "source": source}}
    return list(value_can_be_fetched.check(subject(variables=variables)))


def database(**fields):
    return hits(type="database", collection="Users", **fields)


def external(url="https://api.example/{plan}", **fields):
    return hits(type="external", service="s", operation="o", url=url, **fields)


def auth(kind, secret="CRM_KEY", **fields):
    return external(auth={"type": kind, "secret_env": secret, **fields})


@pytest.mark.parametrize("field", ["user_id", "plan"])
def test_found_by_what_a_run_has(field):
    assert database(search_by=field) == []


def test_found_by_what_no_run_has():
    (hit,) = database(search_by="email")
    assert hit.path == (*SOURCE, "search_by")
    assert '"email", which is no variable of the run' in hit.message
    (hit,) = database(search_by="userId")
    assert 'mean "user_id"?' in hit.hint[0]
    assert hit.fix is not None


def test_query_puts_in_a_variable():
    assert database(query_template={"a": ["{plan}", {"b": "{user_id}{{nope}}"}]}) == []
    (hit,) = database(query_template={"a": ["{plan}", {"b": "x {nope}"}]})
    assert hit.path == (*SOURCE, "query_template", "a", 1, "b")
    assert (hit.offset, hit.length) == (3, 4)
    assert "{{nope}}" in hit.hint[0]


@pytest.mark.parametrize("url", ["https://a.example", "HTTP://a", "{plan}/x", "http://{plan}"])
def test_usable_address(url):
    assert external(url) == []


@pytest.mark.parametrize("url", ["ftp://a", "a.example/x", "https:/a", "https:///x", "file:///x"])
def test_address_that_is_none(url):
    (hit,) = external(url)
    assert hit.path == (*SOURCE, "url")
    assert "https://" in hit.message


def test_address_puts_in_a_variable():
    (hit,) = external("https://api.example/{pln}")
    assert 'the url of x puts in "pln"' in hit.message
    assert 'mean "plan"?' in hit.hint[0]


@pytest.mark.parametrize(
    "secret", ["sk-3fT9vL2mQ8xWz41k", "crm key", "7up", "AKIA3FT9VL2MQ8XWZ41K"]
)
def test_secret_in_place_of_a_name(secret):
    (hit,) = auth("bearer", secret)
    assert hit.path == (*SOURCE, "auth", "secret_env")
    assert secret not in hit.message + str(hit.hint)


def test_header_that_is_not_used():
    assert auth("header", header="X-Key") == []
    assert auth("basic") == []
    (hit,) = auth("basic", header="X-Key")
    assert hit.path == (*SOURCE, "auth", "header")
    assert "by basic" in hit.message


def test_other_sources_are_passed_over():
    assert hits(type="static", value="{nope}") == []


@pytest.mark.parametrize("name", ["SHOP_REGION", "region", "npm.config-x"])
def test_environment_variable_that_may_be_there(name):
    assert hits(type="environment", env_var=name) == []


@pytest.mark.parametrize("name", ["bad name", "REGION=eu", " ", "A\0", "sk-" + "a1B2" * 6])
def test_environment_variable_that_cannot_be_there(name):
    (hit,) = hits(type="environment", env_var=name)
    assert hit.path == (*SOURCE, "env_var")
    assert hit.message == "the env_var of x is not the name of an environment variable"


def opened(files, path="data/prices.json", **source):
    fields = {"type": "file", "path": path, **source}
    checked = subject(variables={"x": {"type": "any", "source": fields}})
    return list(value_can_be_fetched.check(replace(checked, files=files)))


def test_file_that_is_not_there():
    (hit,) = opened(frozenset({"prices.json"}))
    assert hit.path == (*SOURCE, "path")
    assert hit.message == "x is read from data/prices.json, which does not exist"
    assert hit.severity == "warning"


def test_file_that_is_there_or_need_not_be():
    assert opened(frozenset({"data/prices.json"})) == []
    assert opened(None) == []
    assert opened(frozenset(), default="none") == []
    assert opened(frozenset(), path="../prices.json") == []  # VAR018 speaks of it
