"""VAR022, VAR025 and VAR026: whether a value can be fetched, and in time."""

from dataclasses import replace

import pytest

from unit.check.builders_code import static, subject
from weft.check.rules.sources import needed_is_there, routed_on_in_time, value_can_be_fetched

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


def test_found_by_an_object():
    variables = {"plan": static("dict"), "x": {"type": "any", "source": {"type": "database"}}}
    variables["x"]["source"] |= {"collection": "Users", "search_by": "plan"}
    (hit,) = value_can_be_fetched.check(subject(variables=variables))
    assert hit.path == (*SOURCE, "search_by")
    assert hit.message == "x is found by plan, an object, which no field equals"


def test_found_by_what_no_run_has():
    (hit,) = database(search_by="email")
    assert hit.path == (*SOURCE, "search_by")
    assert '"email", which is no variable of the run' in hit.message
    (hit,) = database(search_by="userId")
    assert 'mean "user_id"?' in hit.hint[0]
    assert hit.fix is not None


def test_query_puts_in_a_variable():
    assert database(query_template={"a": ["{plan}", {"b": "{user_id}{{plan}}${user_id}"}]}) == []
    (hit,) = database(query_template={"a": ["{plan}", {"b": "x {nope}"}]})
    assert hit.path == (*SOURCE, "query_template", "a", 1, "b")
    assert (hit.offset, hit.length) == (3, 4)
    assert hit.hint == ("declare it in context_variables.json",)


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


def entity(search_by, *fields, type_="dict"):
    schema = {name: {"type": "str"} for name in fields}
    source = {"type": "entity", "collection": "C", "search_by": search_by, "schema": schema}
    checked = subject(variables={"plan": static(), "x": {"type": type_, "source": source}})
    return list(value_can_be_fetched.check(checked))


def test_entity_is_found_by_a_variable():
    assert entity("plan") == entity("user_id", "email") == entity("plan", "plan") == []
    (hit,) = entity("email", "email")
    assert hit.path == (*SOURCE, "search_by")
    assert 'x is found by "email", which is no variable of the run' in hit.message
    assert len(entity("email")) == 1
    assert entity("mail", "email") == []  # VAR019 speaks of it


@pytest.mark.parametrize(
    ("query", "fact", "hint"),
    [
        ({"a": {"$exist": 1}}, "a query has no $exist", "did you mean $exists?"),
        ({"$not": []}, "a query has no $not", "available: $and, $or"),
        ({"a": {"$in": "{plan}"}}, "$in compares with a list", "write"),
        ({"a": {"$exists": "{plan}"}}, "$exists is true or false", "correct the query"),
        ({"a": {"$gt": "{tags}"}}, "$gt compares with a number or a text", "correct the query"),
        ({"$or": [{"a": "{record}"}]}, "record is an object", "put in one of its fields"),
    ],
)
def test_query_that_no_store_can_be_asked(query, fact, hint):
    (hit,) = found_by(query)
    assert hit.path == (*SOURCE, "query_template")
    assert f"the query of x cannot be asked: {fact}" in hit.message
    assert hint in hit.hint[0]


def found_by(query):
    variables = {
        "plan": static(),
        "tags": static("list[str]"),
        "vip": static("bool"),
        "limit": static("optional[int]"),
        "record": static("dict"),
        "x": {
            "type": "any",
            "source": {"type": "database", "collection": "Users", "query_template": query},
        },
    }
    return list(value_can_be_fetched.check(subject(variables=variables)))


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"a.b": {"$in": "{tags}", "$exists": "{vip}"}, "c": {"$lte": "{limit}"}},
        {"$or": [{"a": "{plan}"}, {"$and": [{"b": {"$in": ["x", "{user_id}"]}}, {"c": 5}]}]},
        {"app_id": "{app_id}", "b": "for {record}"},
        {"enterprise_id": "{app_id}", "tags": ["{plan}", {"app_id": "x"}]},
    ],
)
def test_query_that_can_be_asked(query):
    assert found_by(query) == []


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ({"app_id": "other"}, ("app_id",)),
        ({"enterprise_id": "{plan}"}, ("enterprise_id",)),
        ({"app_id": {"$ne": "{app_id}"}}, ("app_id",)),
        ({"$or": [{"a": 1}, {"app_id": "{app_id}"}]}, ("$or", 1, "app_id")),
    ],
)
def test_query_that_names_a_tenant(query, place):
    (hit,) = found_by(query)
    assert hit.path == (*SOURCE, "query_template", *place)
    assert f"names a tenant by {place[-1]}" in hit.message


@pytest.mark.parametrize("fields", [{}, {"fields": ["name"]}])
def test_a_document_is_an_object(fields):
    def typed(type_, **more):
        source = {"type": "database", "collection": "C", "search_by": "user_id", **fields, **more}
        checked = subject(variables={"x": {"type": type_, "source": source}})
        return list(value_can_be_fetched.check(checked))

    (hit,) = typed("optional[str]")
    assert hit.path == ("variables", "x", "type")
    assert "x is a document, an object, which never fits optional[str]" in hit.message
    assert 'name the "field"' in hit.hint[0]
    assert typed("dict") == typed("any") == typed("Ticket") == typed("str", field="name") == []


def test_the_document_of_an_entity_is_an_object():
    (hit,) = entity("user_id", type_="str")
    assert hit.hint == ("set the type to dict or to a model",)


def read(strategy, **more):
    source = {"type": "database", "collection": "C", "refresh_strategy": strategy, **more}
    return {"type": "dict", "source": source}


def service(url, **more):
    return {"type": "external", "service": "s", "operation": "o", "url": url, **more}


def routed(strategy, routing):
    checked = subject(variables={"x": {**read(strategy, search_by="user_id"), "routing": routing}})
    return list(routed_on_in_time.check(checked))


def test_VAR025_routing_on_what_is_read_for_some_turns_only():
    (hit,) = routed("on_demand", routing=True)
    assert hit.path == ("variables", "x", "routing")
    assert routed("on_demand", routing=None) == routed("on_demand", routing=False) == []
    assert routed("once", routing=True) == routed("per_phase", routing=True) == []
    called = {"type": "any", "source": service("https://a.b", refresh_strategy="on_demand")}
    checked = subject(variables={"x": {**called, "routing": True}})
    assert len(list(routed_on_in_time.check(checked))) == 1


def late(source, **more):
    """What is not there yet when x is read; the others are there at different times."""
    variables = {
        "first": read("once", search_by="user_id"),
        "phase": read("per_phase", search_by="user_id"),
        "shown": read("on_demand", search_by="user_id"),
        "page": {"type": "str", "source": {"type": "file", "path": "a.txt"}},
        "region": {"type": "str", "source": {"type": "environment", "env_var": "REGION"}},
        "done": {"type": "bool", "source": {"type": "derived", "default": False}},
        "made": computed("tools.a:f", "done"),
        "asked": computed("done or region == user_id", "done", "region", "user_id"),
        "far": computed("asked and near", "asked", "near"),
        "near": computed("far or shown == null", "far", "shown"),
        "key": {"type": "str", "source": {"type": "environment", "env_var": "KEY"}, "secret": True},
        "x": {"type": "any", "source": source, **more},
    }
    return list(needed_is_there.check(subject(variables=variables)))


def computed(computation, *inputs):
    source = {"type": "computed", "computation": computation, "inputs": list(inputs)}
    return {"type": "bool", "source": source}


@pytest.mark.parametrize("name", ["first", "phase", "shown", "page", "made", "far", "x"])
def test_VAR026_what_is_read_once_is_read_at_the_same_time(name):
    (hit,) = late(service(f"https://a.b/{{{name}}}"))
    assert hit.path == (*SOURCE, "url")
    assert (hit.offset, hit.length) == (13, len(name))
    assert hit.message == (f"x is read when the run begins, by {name}, which is not there yet")
    entity = {"type": "entity", "collection": "C", "search_by": name}
    (hit,) = late(entity)
    assert (hit.path, hit.offset, hit.length) == ((*SOURCE, "search_by"), None, None)


@pytest.mark.parametrize("strategy", ["per_phase", "on_demand"])
def test_VAR026_what_is_read_for_a_turn(strategy):
    for name in ("phase", "shown", "far"):
        (hit,) = late(service(f"{{{name}}}", refresh_strategy=strategy))
        assert "x is read when a turn begins" in hit.message
    for name in ("first", "page", "made", "done"):
        assert late(service(f"{{{name}}}", refresh_strategy=strategy)) == []


@pytest.mark.parametrize("name", ["user_id", "region", "done", "asked", "nobody"])
def test_VAR026_what_is_there_from_the_start(name):
    query = {"a": [f"{{{name}}}"]}
    assert late({"type": "database", "collection": "C", "query_template": query}) == []


def test_VAR026_secrets():
    (hit,) = late(service("https://a.b/{key}", refresh_strategy="on_demand"))
    assert "by key, which is secret and has no value in a run" in hit.message
    # What is secret is read when a tool asks for it: then all else is there.
    assert late(service("https://a.b/{first}"), secret=True) == []
