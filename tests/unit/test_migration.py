"""Rewriting a package: everything in the present spelling, nothing lost, nothing else touched."""

import json

import pytest

import seed_examples as seed
from weft.errors import PackageError
from weft.packages.migration import plan_migration
from weft.packages.reader import read_package
from weft.packages.staging import replace_files


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


def test_only_files_with_older_spellings_are_rewritten(folder):
    migration = plan_migration(folder)
    assert set(migration.texts) == {"orchestrator.json", "context_variables.json"}
    assert migration.changes["orchestrator.json"] == (
        'line 6: "Context-Aware Routing" is now "ContextAwareRouting"',
    )
    assert (
        "line 2: ContextVariablesPlan is now context_variables"
        in migration.changes["context_variables.json"]
    )


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
    assert text.startswith("# yaml-language-server: $schema=../../schemas/handoffs.schema.json\n")
    assert "target_agent: terminate" in text


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
    )


def test_what_cannot_be_read_is_not_rewritten(folder):
    (folder / "agents.json").write_text('{"agents": [], "x": 1}')
    with pytest.raises(PackageError) as caught:
        plan_migration(folder)
    assert [finding.code for finding in caught.value.findings] == ["SCHEMA008"]
