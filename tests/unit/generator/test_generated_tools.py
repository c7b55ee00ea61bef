"""The code of tools as it is generated: it imports, checks clean and does its work in a run."""

import ast
import subprocess
import sys

import pytest

from support.service_play import Service
from support.source_play import declared, derived, play, variable
from weft.check.run import check
from weft.check.subject import Subject
from weft.engine.events import ToolReturned
from weft.generator.code.requirements import requirements_text
from weft.generator.code.tools import tool_files
from weft.generator.enrich.python_code import python_faults
from weft.generator.shapes import FieldShape, ToolShape
from weft.testing.models import ScriptedModel, call

HOSTILE = (
    'Ends here"""\nimport os\\ \\N{BULLET} {name} \'x\' `y` ${z} \u202e\x00\ud800 <b> # '
    + "z" * 900
)


def shape(kind, name="work", **rest) -> ToolShape:
    return ToolShape(name, "A", kind, rest.pop("purpose", "Does it."), **rest)


def agent_tool(one: ToolShape) -> dict:
    return {
        "tool_type": "Agent_Tool",
        "agent": one.agent,
        "file": one.file,
        "function": one.name,
        "description": "Does it.",
    }


def spec_for(*shapes, variables=None, **rest):
    return declared(variables or {}, tools=[agent_tool(shape) for shape in shapes], **rest)


def as_bytes(files):
    return {path: text.encode() for path, text in files.items()}


def returned(told):
    return [item.value for item in told.of(ToolReturned)]


def run(one, spec, *lines, **around):
    code = as_bytes(tool_files([one], spec if not callable(spec) else spec(None)))
    return play(spec, ScriptedModel([*lines, "Done."]), code=code, **around)


def codes(spec, files):
    return {item.code for item in check(Subject(spec, "W", files)) if item.severity != "note"}


def test_a_decision_gives_back_what_was_decided():
    one = shape(
        "decision",
        parameters=(
            FieldShape("route", 'literal["tech", "sales"]', "Where to."),
            FieldShape("note", "optional[str]"),
            FieldShape("score", "int"),
        ),
        result=(FieldShape("result", "str"),),
    )
    spec = spec_for(one)
    told = run(one, spec, call("work", route="tech", score=3))
    (result,) = returned(told)
    assert result == {"route": "tech", "note": None, "score": 3, "result": "Recorded: tech"}


def test_arguments_are_described_to_the_model():
    one = shape("decision", parameters=(FieldShape("route", "str", "Where to go."),))
    spec = spec_for(one)
    model = ScriptedModel(["Done."])
    play(spec, model, code=as_bytes(tool_files([one], spec)))
    (tool,) = model.requests[0].tools
    assert tool.parameters["properties"]["route"]["description"] == "Where to go."


def test_ask_lets_the_model_work_it_out():
    one = shape(
        "ask",
        purpose="Sums a text up.",
        parameters=(FieldShape("text", "str"),),
        result=(
            FieldShape("summary", "str", "Two sentences."),
            FieldShape("schema", "list[Point]"),
        ),
        variables=("tone", "key"),
    )
    variables = {
        "tone": derived("str", "dry"),
        "key": {**variable("str", "environment", env_var="K"), "secret": True},
    }
    models = [{"name": "Point", "fields": {"title": {"type": "str"}, "at": {"type": "int"}}}]
    spec = spec_for(one, variables=variables, models=models)
    answer = {"summary": "Short.", "schema": [{"title": "T", "at": 1}]}
    model = ScriptedModel([call("work", text="Long."), answer, "Done."])
    told = play(spec, model, code=as_bytes(tool_files([one], spec)), environment={"K": "hush"})
    assert returned(told) == [answer]
    asked = str(model.requests[1].messages)
    assert "Sums a text up." in asked
    assert "Long." in asked
    assert "dry" in asked
    assert "hush" not in asked


def test_ask_without_a_result_gives_an_answer():
    one = shape("ask")
    spec = spec_for(one)
    told = run(one, spec, call("work"), {"answer": "42"})
    assert returned(told) == [{"answer": "42"}]


def test_access_reads_by_the_kind_of_source(tmp_path):
    variables = {
        "limit": variable("int", "static", value=5),
        "region": variable("str", "environment", env_var="REGION"),
        "plan": variable("str", "database", collection="plans", search_by="user_id", field="plan"),
        "double": variable("bool", "computed", computation="limit > 3", inputs=["limit"]),
        "stage": derived("str", "new"),
    }
    one = shape("access", variables=tuple(variables))
    told = run(
        one,
        spec_for(one, variables=variables),
        call("work"),
        environment={"REGION": "north"},
        documents=tmp_path / "d.sqlite",
        having={"plans": {"user_id": "ada", "plan": "gold"}},
    )
    assert returned(told) == [
        {"limit": 5, "region": "north", "plan": "gold", "double": True, "stage": "new"}
    ]


def test_access_changes_a_document_and_a_state(tmp_path):
    variables = {
        "order": variable(
            "dict",
            "entity",
            collection="orders",
            search_by="user_id",
            schema={"status": {"type": "str"}, "note": {"type": "str"}},
            default={"status": "new"},
        ),
        "stage": derived("str", "new"),
    }
    one = shape(
        "access",
        variables=("order", "stage"),
        parameters=(
            FieldShape("status", "str"),
            FieldShape("note", "optional[str]"),
            FieldShape("stage", "optional[str]"),
        ),
    )
    told = run(
        one,
        spec_for(one, variables=variables),
        call("work", status="paid"),
        call("work", status="sent", stage="over", note="by post"),
        documents=tmp_path / "d.sqlite",
    )
    assert told.values("order")[1:] == [
        {"status": "paid"},
        {"status": "sent", "note": "by post"},
    ]
    assert told.values("stage") == ["over"]
    assert returned(told)[-1] == {"order": {"status": "sent", "note": "by post"}, "stage": "over"}


def test_access_that_is_given_nothing_only_reads(tmp_path):
    source = {"collection": "orders", "search_by": "user_id", "default": None}
    variables = {"order": variable("Order", "entity", **source)}
    models = [{"name": "Order", "fields": {"status": {"type": "str"}}}]
    one = shape(
        "access", variables=("order",), parameters=(FieldShape("order", "optional[Order]"),)
    )
    spec = spec_for(one, variables=variables, models=models)
    told = run(
        one,
        spec,
        call("work"),
        call("work", order={"status": "x"}),
        documents=tmp_path / "d.sqlite",
    )
    assert returned(told) == [{"order": None}, {"order": {"status": "x"}}]


def test_access_tells_of_a_secret_only_whether_it_is_there():
    variables = {"key": {**variable("str", "environment", env_var="K"), "secret": True}}
    one = shape("access", variables=("key",))
    told = run(one, spec_for(one, variables=variables), call("work"), environment={"K": "hush"})
    assert returned(told) == [{"key": True}]


def test_generated_tool_sets_only_its_variables():
    variables = {"stage": derived("str", "new", writers=["other"])}
    one = shape("access", variables=("stage",), parameters=(FieldShape("stage", "str"),))
    assert "set(" not in tool_files([one], spec_for(one, variables=variables))["tools/work.py"]


@pytest.mark.parametrize("order", [("weather", "weather_query"), ("weather_query", "weather")])
def test_an_integration_is_asked_with_the_query(order):
    variables = {
        "weather": {},
        "weather_query": derived("str", ""),
    }
    one = shape(
        "external",
        parameters=(FieldShape("city", "str"), FieldShape("day", "optional[str]")),
        variables=order,
        integration="Weather",
        result=(FieldShape("found", "bool"), FieldShape("forecast", "any")),
    )

    def spec(service):
        address = f"http://{service.place}" if service else "http://here.example"
        variables["weather"] = variable(
            "any",
            "external",
            service="Weather",
            operation="forecast",
            url=f"{address}/forecast?q={{weather_query}}",
            refresh_strategy="on_demand",
            default=None,
        )
        return spec_for(one, variables=variables)

    service = Service({"rain": True})
    told = run(one, spec, call("work", city="Oslo", day="Monday"), service=service)
    assert told.values("weather_query")[-1] == "Oslo Monday"
    assert returned(told) == [{"found": True, "forecast": {"rain": True}}]
    assert service.seen[-1].query["q"] == "Oslo Monday"


KINDS = ("decision", "ask", "access", "external")


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_text_stays_text(kind, tmp_path):
    one = shape(
        kind,
        purpose=HOSTILE,
        parameters=(FieldShape("stage", "str", HOSTILE), FieldShape("flag", "bool", HOSTILE)),
        result=(FieldShape("answer", f'literal["a", {3}]', HOSTILE),),
        variables=("stage",),
    )
    spec = spec_for(one, variables={"stage": derived("str", "new")})
    files = tool_files([one], spec)
    (text,) = files.values()
    tree = ast.parse(text)
    functions = [
        item for item in tree.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [function.name for function in functions if not function.name.startswith("_")] == [
        "work"
    ]
    imported = {item.module for item in ast.walk(tree) if isinstance(item, ast.ImportFrom)}
    assert imported <= {"typing", "pydantic", "weft"}
    assert not {code for code in codes(spec, files) if code.startswith(("TOOL", "VAR021", "BIND"))}
    assert files == tool_files([one], spec)


def test_every_kind_is_clean_by_ruff(tmp_path):
    variables = {
        "stage": derived("str", "new"),
        "plan": variable("any", "database", collection="plans", search_by="user_id"),
        "order": variable("dict", "entity", collection="orders", search_by="user_id"),
    }
    fields = tuple(
        FieldShape(f"field_number_{item}", "list[any] | null", HOSTILE) for item in range(9)
    )
    shapes = [
        shape(kind, f"{kind}_{number}", purpose=HOSTILE, parameters=chosen, variables=names)
        for kind in KINDS
        for number, (chosen, names) in enumerate(
            [(fields, tuple(variables)), ((), ("order",)), (fields[:1], ())]
        )
    ]
    spec = spec_for(*shapes, variables=variables)
    for path, text in tool_files(shapes, spec).items():
        file = tmp_path / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        compile(text, path, "exec")
        assert python_faults(text, text) == []
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", str(tmp_path)]
    done = subprocess.run(ruff, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_requirements_are_listed_once():
    assert requirements_text(["httpx", " httpx", "Arrow", ""]) == "Arrow\nhttpx\n"
    assert requirements_text([]) == ""
