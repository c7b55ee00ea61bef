# ruff: noqa: E501 - a table
"""The assembly: whole outputs become drafts, and what is wrong is a finding at its path."""

import ast
import json
import re
from copy import deepcopy

import pytest

from generator_mutations import planted
from support.form_play import CLINIC, form
from support.generator_plans import agent, plan, tool, variable
from weft.errors import UsageError
from weft.generator.assemble import assemble, form_findings
from weft.generator.compile.compiler import compile_drafts
from weft.generator.forms.form import form_plan
from weft.generator.output_models import FORMS
from weft.generator.outputs import joined_output, output_of
from weft.spec.patterns import PATTERN_BY_ID

TEAM = [
    agent("Clerk", human_interaction="context", agent_tools=[tool("look_up", integration="Shop")]),
    agent("Boss", agent_tools=[tool("decide")], outcomes=["yes", "no"]),
]
DATA = [variable("case_record", "data_entity"), variable("state_of_it", "state")]


def outputs(made):
    drafts = compile_drafts(made)
    return {name: joined_output(name, drafts) for name in FORMS}


def messages(found):
    return [f"{each.place.file} {each.code} {each.message}" for each in found]


@pytest.mark.parametrize("pattern", sorted(PATTERN_BY_ID))
def test_assembly_gives_the_draft_that_the_outputs_were_made_of(pattern):
    made = plan((pattern, TEAM), global_context_variables=DATA)
    (draft,) = compile_drafts(made)
    assembled = assemble(made, outputs(made))
    assert (assembled.findings, assembled.left_out) == ((), ())
    (again,) = assembled.drafts
    assert (again.spec, again.code, again.tests) == (draft.spec, draft.code, draft.tests)


@pytest.mark.parametrize(("name", "variant"), planted.GOOD)
def test_output_of_is_the_inverse_of_the_assembly(name, variant):
    made, written = planted.good(name, variant)
    first = assemble(made, written)
    again = assemble(made, {name: output_of(name, first.drafts[0]) for name in FORMS})
    assert again == first


def test_every_fact_of_a_form_survives():
    made = form_plan(form(CLINIC))
    (again,) = assemble(made, outputs(made)).drafts
    (draft,) = compile_drafts(made)
    assert again.spec == draft.spec
    assert {each.for_ for each in again.spec.tools if hasattr(each, "for_")} >= {"role:nurse"}


def two_workflows():
    workflow = {"description": "One.", "pattern_id": 6, "pattern_name": "Pipeline"}
    return plan(
        (6, [agent("Clerk")]),
        (6, [agent("Boss")]),
        owners=["First", "Second"],
        workflows=[
            {"name": "First", "role": "primary", **workflow},
            {"name": "Second", "role": "dependent", **workflow},
        ],
    )


def test_outputs_of_several_workflows_are_under_more():
    made = two_workflows()
    given = outputs(made)
    assert [*given["AgentsAgent"]["more"]] == ["Second"]
    assembled = assemble(made, given)
    assert [draft.spec for draft in assembled.drafts] == [d.spec for d in compile_drafts(made)]
    assert assembled.drafts[1].spec.orchestrator.workflow_dependencies.required_workflows == (
        "First",
    )
    del given["HandoffsAgent"]["more"]
    found = messages(assemble(made, given).findings)
    assert found == ["Second/HandoffsAgent GEN005 HandoffsAgent has no output for Second"]


def test_nothing_is_put_in_place_of_a_missing_output():
    """G10: there is no piecewise fallback; what is missing is a finding."""
    made, written = planted.good("clinic")
    for name in FORMS:
        kept = {other: part for other, part in written.items() if other != name}
        assembled = assemble(made, kept)
        assert [each.code for each in assembled.findings][:1] == ["GEN005"]
        compiled = compile_drafts(made)[0].code.values()
        assert not set(assembled.drafts[0].code.values()) & set(compiled)


# What is wrong is said with its path -------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("HandoffsAgent", {"handoff_rules": 7}, "handoffs.json SCHEMA007 handoff_rules: expected a list"),
        ("HandoffsAgent", {"handof_rules": []}, 'handoffs.json SCHEMA008 unknown key "handof_rules"'),
        ("AgentsAgent", {"agents": [{"agent_nam": "A"}]}, 'SCHEMA008 agents[0]: unknown key "agent_nam"'),
        ("ToolsManagerAgent", {"tools": [{"agent": "A"}]}, "SCHEMA009 tools[0]: "),
        ("UIFileGenerator", {"tools": {}}, "SCHEMA007 tools must be a list of files"),
        ("UIFileGenerator", {"tools": [{"filename": "tools/../x.py", "content": ""}]}, "tools[0].filename"),
        ("HookAgent", {"hook_files": [{"filename": "hooks/a.py"}]}, "SCHEMA009 hook_files[0]"),
        ("ToolsManagerAgent", {"tools": [], "mcp_servers": [{"name": "x", "command": ["sh"]}]}, "GEN004"),
        ("OrchestratorAgent", {"workflow_name": "W", "description": "a\u202eb"}, "GEN006 a text of"),
        ("AgentsAgent", [], "agents.json SCHEMA009"),
    ],
)  # fmt: skip
def test_wrong_output_is_a_finding_with_its_path(name, change, message):
    assert message in "\n".join(messages(form_findings(name, change)))
    made, written = planted.good("clinic")
    assert message.split(" ", 1)[-1] in "\n".join(
        messages(assemble(made, {**written, name: change}).findings)
    )


def test_null_keys_and_older_spellings_are_read():
    """Many models write null for what they do not need; the design calls sources otherwise."""
    made, written = planted.good("clinic")
    for each in written["ToolsManagerAgent"]["tools"]:
        each |= {"payload_schema": None, "for": each.get("for"), "on_error": None, "tell": None}
    (draft,) = assemble(made, written).drafts
    assert {each.for_ for each in draft.spec.tools if hasattr(each, "for_")} == {
        "role:nurse",
        "role:duty_doctor",
    }
    assert {variable.source.type for variable in draft.spec.variables.values()} == {
        "derived",
        "entity",
        "database",
    }


def test_plan_decides_the_name_and_the_requirements():
    made, written = planted.good("clinic")
    written["OrchestratorAgent"] |= {
        "workflow_name": "../../Other",
        "workflow_dependencies": {"required_workflows": ["Other"]},
    }
    (draft,) = assemble(made, written).drafts
    assert draft.name == "ClinicIntake"
    assert draft.spec.orchestrator.workflow_dependencies.required_workflows == ()


# Code that fails ---------------------------------------------------------------------------------


def entry(written, path):
    lists = (part.get(key, []) for part in written.values() for key in ("tools", "hook_files"))
    return next(file for files in lists for file in files if file.get("filename") == path)


def test_failing_component_is_left_out():
    made, written = planted.good("clinic")
    entry(written, "tools/NurseHandover.jsx")["content"] = "export default 1"
    assembled = assemble(made, written)
    assert assembled.findings == ()
    assert "tools/NurseHandover.jsx" not in assembled.drafts[0].code
    (piece,) = assembled.left_out
    assert piece.file == "tools/NurseHandover.jsx"
    assert "default export is not NurseHandover" in piece.reason


def test_failing_tool_refuses_with_its_signature():
    made, written = planted.good("clinic")
    entry(written, "tools/intake.py")["content"] += "\nopen('x')\n"
    assembled = assemble(made, written)
    assert assembled.findings == ()
    code = assembled.drafts[0].code["tools/intake.py"]
    assert (
        "raise Refuse('not written yet: Finds a medication in the list of the clinic by a part"
        in code
    )
    assert "outcome: Literal['complete', 'more'], symptoms: str, medication: str" in code
    assert str(assembled.left_out[0]).startswith(
        "tools/intake.py: the code of look_up_medication, record_intake: line"
    )


def test_tool_without_readable_code_takes_the_fields_of_the_reply():
    made, written = planted.good("clinic")
    entry(written, "tools/red_flags.py")["content"] = "def ("
    code = assemble(made, written).drafts[0].code["tools/red_flags.py"]
    assert "flag: Literal['present', 'none', 'unclear'], reason: str" in code


def test_failing_ui_tool_asks_with_its_arguments():
    made, written = planted.good("clinic")
    entry(written, "tools/ask_nurse.py")["content"] = "def ("
    assembled = assemble(made, written)
    code = assembled.drafts[0].code["tools/ask_nurse.py"]
    assert 'use_ui_tool("ask_nurse", {"summary": summary, "record": record})' in code
    assert assembled.left_out[0].piece == "the code of ask_nurse"


@pytest.mark.parametrize("path", ["hooks/privacy.py", "tools/booking.py"])
def test_failing_hook_or_lifecycle_function_is_an_error(path):
    made, written = planted.good("clinic" if path.startswith("hooks") else "invoice")
    entry(written, path)["content"] = "import os\n"
    assembled = assemble(made, written)
    assert [each.code for each in assembled.findings] == ["GEN006"]
    assert path not in assembled.drafts[0].code


def test_file_that_is_written_twice_is_an_error():
    made, written = planted.good("clinic")
    again = deepcopy(entry(written, "tools/summary.py")) | {"content": "X = 1"}
    written["UIFileGenerator"]["tools"].append(again)
    assert "tools/summary.py is written twice" in messages(assemble(made, written).findings)[0]


def test_library_is_required_if_it_is_listed_and_imported():
    made, written = planted.good("clinic")
    file = entry(written, "tools/summary.py")
    file["installRequirements"] = ["python-dateutil"]
    assert assemble(made, written).drafts[0].requirements == ()
    file["content"] = f"from dateutil.parser import isoparse\n{file['content']}"
    assert assemble(made, written).drafts[0].requirements == ("python-dateutil",)
    file["installRequirements"] = ["requests"]
    assert "the library requests is not allowed" in str(assemble(made, written).left_out[0])


@pytest.mark.parametrize("name", ["a: str = print(), b", "class", "b c"])
def test_payload_with_strange_names_is_assembled(name):
    """Names of a payload are parameters of a function that is not written yet."""
    made, written = planted.good("clinic")
    asking = next(t for t in written["ToolsManagerAgent"]["tools"] if t["function"] == "ask_nurse")
    asking["payload_schema"]["properties"][name] = True
    file = entry(written, "tools/ask_nurse.py")
    file["content"] = file["content"].replace("use_ui_tool", "other_tool")
    file["content"] = re.sub(r"def ask_nurse\(.*?\)", "def ask_nurse()", file["content"])
    code = assemble(made, written).drafts[0].code["tools/ask_nurse.py"]
    (function,) = [each for each in ast.parse(code).body if isinstance(each, ast.AsyncFunctionDef)]
    assert [each.arg for each in function.args.kwonlyargs] == [
        "summary",
        "record",
        "context_variables",
    ]


@pytest.mark.parametrize(
    ("hint", "copied"),
    [
        ("'open(1)'", "Any"),
        ("list['open(1)']", "Any"),
        ("9**9**9", "Any"),
        ("open(1)", "Any"),
        ("str.mro", "Any"),
        ("Other", "Any"),
        ("Literal[0x" + "f" * 9000 + "]", "Any"),
        ("|".join(["str"] * 900), "Any"),
        ("Optional[list[Literal['open(1)', -1]]]", "Optional[list[Literal['open(1)', -1]]]"),
        ("dict[str, Any] | None", "dict[str, Any] | None"),
    ],
)
def test_only_plain_hints_are_copied(hint, copied):
    made, written = planted.good("clinic")
    file = entry(written, "tools/intake.py")
    file["content"] = file["content"].replace("(name: str", f"(name: {hint}") + "\nopen('x')\n"
    code = assemble(made, written).drafts[0].code["tools/intake.py"]
    assert f"look_up_medication(*, name: {copied}, " in code


def test_only_agents_of_the_second_half_make_parts():
    made, written = planted.good("clinic")
    (draft,) = assemble(made, written).drafts
    with pytest.raises(UsageError, match="PatternAgent makes no part of a package"):
        output_of("PatternAgent", draft)
    assert "ready for download" in str(output_of("DownloadAgent", draft))


def test_outputs_are_json():
    made, written = planted.good("invoice")
    (draft,) = assemble(made, written).drafts
    for name in FORMS:
        json.dumps(output_of(name, draft))
