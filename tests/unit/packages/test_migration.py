"""Rewriting a package: everything in the present spelling, nothing lost, nothing else touched."""

import json

import pytest

from support import seed_examples as seed
from weft.errors import PackageError
from weft.findings import SetValue
from weft.packages.archive.staging import replace_files
from weft.packages.edit.migration import plan_migration, respelling_edits, write_migrations
from weft.packages.reader import open_document, read_package
from weft.packages.text.documents import dump, read_text


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "CustomerSupportRouter"
    folder.mkdir()
    files = {
        "orchestrator": {**seed.ORCHESTRATOR, "orchestration_pattern": "Context-Aware Routing"},
        "agents": seed.AGENTS,
        "context_variables": seed.SIX_KINDS,
        "handoffs": seed.HANDOFFS,
    }
    for stem, data in files.items():
        (folder / f"{stem}.json").write_text(json.dumps(data, indent=2))
    return folder


def pointer(stem):
    """Return the line with which a YAML file names its schema."""
    return f"# yaml-language-server: $schema=../../schemas/{stem}.schema.json\n"


NAMED = "it now names its schema, for editors"


def test_only_files_with_older_spellings_are_rewritten(folder):
    migration = plan_migration(folder)
    assert set(migration.texts) == {"orchestrator.json", "context_variables.json"}
    assert migration.changes["orchestrator.json"] == (
        'line 6: "Context-Aware Routing" is now "ContextAwareRouting"',
        NAMED,
    )
    assert (
        "line 2: ContextVariablesPlan is now context_variables"
        in migration.changes["context_variables.json"]
    )


@pytest.mark.parametrize("number", [6, "6"])
def test_a_pattern_may_be_given_by_its_number(folder, number):
    asked = {**seed.ORCHESTRATOR, "orchestration_pattern": number}
    (folder / "orchestrator.json").write_text(json.dumps(asked))
    assert read_package(folder).spec.orchestrator.orchestration_pattern == "Pipeline"
    migration = plan_migration(folder)
    assert 'line 1: "6" is now "Pipeline"' in migration.changes["orchestrator.json"]
    assert json.loads(migration.texts["orchestrator.json"])["orchestration_pattern"] == "Pipeline"


@pytest.mark.parametrize("number", [0, 10, True, "10"])
def test_a_number_of_no_pattern_is_refused(folder, number):
    asked = {**seed.ORCHESTRATOR, "orchestration_pattern": number}
    (folder / "orchestrator.json").write_text(json.dumps(asked))
    refused = [
        finding
        for finding in read_package(folder).findings
        if "orchestration_pattern" in finding.message
    ]
    assert [finding.code for finding in refused] == ["SCHEMA007"]


def test_empty_lists_by_kind_are_read_and_rewritten(folder):
    lists = {"environment_variables": [], "derived_variables": []}
    (folder / "context_variables.json").write_text(json.dumps(lists))
    assert read_package(folder).spec.variables == {}
    write_migrations([plan_migration(folder)])
    written = json.loads((folder / "context_variables.json").read_text())
    assert written["context_variables"] == {"definitions": {}}


def test_planning_touches_nothing(folder):
    before = (folder / "context_variables.json").read_text()
    plan_migration(folder)
    assert (folder / "context_variables.json").read_text() == before


def test_rewritten_package_means_the_same_and_is_not_rewritten_again(folder):
    before = read_package(folder)
    migration = plan_migration(folder)
    replace_files(folder, {name: text.encode() for name, text in migration.texts.items()})
    after = read_package(folder)
    assert after.spec == before.spec
    assert after.findings == ()
    assert plan_migration(folder).texts == {}


def test_yaml_stays_yaml(folder):
    (folder / "handoffs.json").unlink()
    rule = "source_agent: RouterAgent, target_agent: TERMINATE"
    (folder / "handoffs.yaml").write_text(f"handoffs: [{{{rule}}}]\n")
    text = plan_migration(folder).texts["handoffs.yaml"]
    rules = 'handoff_rules: [{source_agent: RouterAgent, target_agent: "terminate"}]\n'
    assert text == pointer("handoffs") + rules


YAML = """\
# who starts
workflow_name: CustomerSupportRouter   # the name
human_in_loop: false   # nobody

max_turns: 20
orchestration_pattern: "Context-Aware Routing"
trigger: chat  # from the window
initial_agent: RouterAgent
"""


def test_comments_order_defaults_and_layout_stay(folder):
    (folder / "orchestrator.json").unlink()
    (folder / "orchestrator.yaml").write_text(YAML)
    migration = plan_migration(folder)
    assert migration.changes["orchestrator.yaml"] == (
        "line 3: human_in_loop is now human_in_the_loop",
        'line 7: trigger is now {"type": "chat"}',
        'line 6: "Context-Aware Routing" is now "ContextAwareRouting"',
        NAMED,
    )
    assert migration.texts["orchestrator.yaml"] == pointer("orchestrator") + YAML.replace(
        "human_in_loop", "human_in_the_loop"
    ).replace('"Context-Aware Routing"', "ContextAwareRouting").replace(
        "trigger: chat  # from the window", "trigger:\n  type: chat  # from the window"
    )


def test_lost_comments_are_reported(folder):
    (folder / "agents.json").unlink()
    (folder / "agents.yaml").write_text("agents:\n  # the router\n  RouterAgent: {}\n")
    migration = plan_migration(folder)
    rewritten = pointer("agents") + "agents:\n  - agent_name: RouterAgent\n"
    assert migration.texts["agents.yaml"] == rewritten
    assert migration.changes["agents.yaml"][-1] == (
        "comments inside the rewritten parts are not kept"
    )


def test_a_file_that_must_be_rewritten_is_reported(folder):
    (folder / "orchestrator.json").unlink()
    (folder / "orchestrator.yaml").write_text(
        "? human_in_loop\n: true\nworkflow_name: CustomerSupportRouter\n"
        "trigger: &t chat\ninitial_agent: RouterAgent\n"
        "initial_message: *t\n"
    )
    changes = plan_migration(folder).changes["orchestrator.yaml"]
    assert changes[-1] == "rewritten whole: comments and layout are not kept"


BARE = """\
# variables

definitions:
  v:
    # first
    type: str
    source: {type: state, initial: x}
    description: |
      One.

      Two.
"""


def bare(folder, name, text):
    """Write the variables without the wrapper, and return what they are rewritten to."""
    (folder / "context_variables.json").unlink()
    (folder / name).write_bytes(text.encode())
    assert "SCHEMA010" in {finding.code for finding in read_package(folder).findings}
    before = read_package(folder).spec
    migration = plan_migration(folder)
    write_migrations([migration])
    after = read_package(folder)
    assert (after.spec, after.findings) == (before, ())
    assert plan_migration(folder).texts == {}
    return migration.texts[name], migration.changes[name]


def test_a_wrapper_is_put_around_a_file_that_has_none(folder):
    text, said = bare(folder, "context_variables.yaml", BARE)
    inner = BARE.removeprefix("# variables\n\n").replace("state, initial", '"derived", "default"')
    moved = "".join(f"  {line}" if line.strip() else line for line in inner.splitlines(True))
    head = pointer("context_variables") + "# variables\n\ncontext_variables:\n"
    assert text == head + moved
    assert said[0] == "line 3: everything is now under context_variables"
    assert "not kept" not in " ".join(said)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", [None, 0, 4])
@pytest.mark.parametrize("given", [{}, {"$schema": "mine.json"}])
def test_a_wrapper_around_json(folder, newline, indent, given):
    content = json.dumps({**given, **seed.DERIVED_LIST}, indent=indent).replace("\n", newline)
    text, said = bare(folder, "context_variables.json", content)
    assert text.startswith("{" if indent is None else "{" + newline)
    assert text.count("\n") == text.count(newline)
    held = json.loads(text)
    assert list(held) == ["$schema", "context_variables"]
    schema = "../../schemas/context_variables.schema.json"
    assert held["$schema"] == given.get("$schema", schema)
    assert (NAMED in said) is not bool(given)


def test_a_wrapper_in_one_line(folder):
    text, _ = bare(folder, "context_variables.json", '{"definitions": {}}')
    schema = '"$schema": "../../schemas/context_variables.schema.json"'
    assert text == f'{{{schema}, "context_variables": {{"definitions": {{}}}}}}\n'


def test_a_file_that_cannot_be_wrapped_by_an_edit_is_rewritten(folder):
    text, said = bare(
        folder, "context_variables.yaml", "---\nstatic_variables: [{name: v, value: 1}]\n"
    )
    assert text.startswith(pointer("context_variables") + "context_variables:\n  definitions:\n")
    assert said[-1] == "rewritten whole: comments and layout are not kept"


def test_a_yaml_file_that_names_its_schema(folder):
    named = "# yaml-language-server: $schema=mine.json\n"
    variables = "static_variables: [{name: v, value: 1}]\n"
    text, said = bare(folder, "context_variables.yaml", named + variables)
    assert text.startswith(named + "context_variables:\n")
    assert NAMED not in said


def test_an_empty_file_is_not_an_older_spelling(folder):
    (folder / "context_variables.json").write_text("{}")
    assert read_package(folder).findings == ()
    assert "context_variables.json" not in plan_migration(folder).texts


def test_schema_pointer_stays(folder):
    data = {"$schema": "x", **seed.ORCHESTRATOR, "trigger": "chat"}
    (folder / "orchestrator.json").write_text(json.dumps(data))
    text = plan_migration(folder).texts["orchestrator.json"]
    assert json.loads(text) == {**data, "trigger": {"type": "chat"}}


def test_lifecycle_tools_move_and_the_others_stay(folder):
    old = {"file": "a.py", "function": "a", "description": "x", "agent": "RouterAgent"}
    life = {
        "file": "b.py",
        "function": "b",
        "tool_type": "Lifecycle_Tool",
        "trigger": "before_chat",
    }
    first, last = {**old, "tool_type": "Agent_Tool"}, {**old, "function": "c", "ui": None}
    for before in ([], [{**life, "function": "d"}]):
        data = {"tools": [first, life, last], "lifecycle_tools": before}
        (folder / "tools.json").write_text(json.dumps(data))
        assert json.loads(plan_migration(folder).texts["tools.json"]) == {
            "$schema": "../../schemas/tools.schema.json",
            "tools": [first, {**old, "function": "c", "tool_type": "Agent_Tool"}],
            "lifecycle_tools": [*before, life],
        }


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize(
    ("stem", "data"),
    [
        ("context_variables", seed.FOUR_KINDS),
        ("context_variables", {"definitions": seed.MORE_DEFINITIONS}),
        ("context_variables", {"static_variables": seed.STATIC_LIST}),
        ("context_variables", seed.DERIVED_LIST),
        ("context_variables", seed.SIX_KINDS),
        ("tools", seed.TOOLS),
        ("handoffs", {"handoffs": seed.HANDOFFS}),
        ("handoffs", {"handoffs": seed.HANDOFFS["handoff_rules"]}),
        ("structured_outputs", seed.STRUCTURED_OUTPUTS),
        ("structured_outputs", {"structured_outputs": seed.STRUCTURED_OUTPUTS}),
    ],
)
def test_every_example_means_the_same_afterwards(folder, stem, data, form):
    (folder / f"{stem}.json").unlink(missing_ok=True)
    (folder / f"{stem}.{form}").write_text(dump(data, form))
    before = read_package(folder)
    write_migrations([plan_migration(folder)])
    after = read_package(folder)
    assert after.spec == before.spec
    assert "SCHEMA010" not in {finding.code for finding in after.findings}
    assert plan_migration(folder).texts == {}


def test_type_names_are_respelt_once(folder):
    data = {
        "context_variables": {
            "definitions": {"v": {"type": "string", "source": {"type": "state", "initial": "x"}}}
        }
    }
    (folder / "context_variables.json").write_text(json.dumps(data))
    assert plan_migration(folder).changes["context_variables.json"] == (
        'line 1: source "state" is now "derived"',
        "line 1: initial is now default",
        'line 1: "string" is now "str"',
        NAMED,
    )


def test_unreadable_file_is_not_rewritten(folder):
    (folder / "agents.json").write_text('{"agents": [], "x": 1}')
    with pytest.raises(PackageError) as caught:
        plan_migration(folder)
    assert [finding.code for finding in caught.value.findings] == ["SCHEMA008"]


def test_a_change_is_not_also_reported_as_a_respelling(folder):
    definition = {"type": {"type": "string"}, "source": {"type": "static", "value": "x"}}
    data = {"context_variables": {"definitions": {"v": definition}}}
    (folder / "context_variables.json").write_text(json.dumps(data))
    migration = plan_migration(folder)
    assert len(migration.changes["context_variables.json"]) == 2
    assert migration.changes["context_variables.json"][1] == NAMED
    assert '"type": "str"' in migration.texts["context_variables.json"]


def test_a_list_in_another_order_is_rewritten():
    document = read_text("a.json", '{"l": [{"a": 1}, {"b": 2}, {"c": 3}]}')
    declared = open_document("a.json", document, "a")
    listed = declared.rewrite.data["l"]
    declared.rewrite.data["l"] = [listed[1], listed[0]]
    assert respelling_edits(declared) == (SetValue(("l",), [{"b": 2}, {"a": 1}]),)
    declared.rewrite.data["l"] = [{"new": 0}, listed[0]]
    assert respelling_edits(declared) == (SetValue(("l",), [{"new": 0}, {"a": 1}]),)


def test_a_file_that_declares_nothing_is_left_alone(folder):
    (folder / "hooks.json").write_text('{"hooks": []}')
    assert "hooks.json" not in plan_migration(folder).texts
