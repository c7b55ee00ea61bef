"""What is written is what is read: for every spec, in JSON, in YAML, and in a mix of both."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from support.strategies import specs
from weft.packages.edit.migration import plan_migration, write_migrations
from weft.packages.layout import FILE_KINDS
from weft.packages.reader import read_package
from weft.packages.text.documents import dump
from weft.packages.writer import file_data, file_texts, write_package
from weft.spec.orchestrator import Orchestrator
from weft.spec.workflow import WorkflowSpec, digest, plain

FORMATS = st.fixed_dictionaries({stem: st.sampled_from(["json", "yaml"]) for stem in FILE_KINDS})
CODE = st.dictionaries(
    st.sampled_from(["tools/a.py", "tools/b.jsx", "hooks/c.py"]),
    st.text(st.characters(codec="utf-8"), max_size=20).map(str.encode),
)


def shuffled(value, keys):
    """Rebuild data with the keys of every object in another order."""
    if isinstance(value, dict):
        names = sorted(value, key=keys)
        return {name: shuffled(value[name], keys) for name in names}
    if isinstance(value, list):
        return [shuffled(item, keys) for item in value]
    return value


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
FEW = settings(max_examples=6 * TIMES, deadline=None, suppress_health_check=SLOW)
MANY = settings(max_examples=15 * TIMES, deadline=None, suppress_health_check=SLOW)


def written_and_read(spec, formats):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in file_texts(spec, formats=formats).items():
            (Path(folder) / name).write_text(text, encoding="utf-8", newline="")
        return read_package(Path(folder))


@MANY
@pytest.mark.parametrize("field", WorkflowSpec.model_fields)
@given(data=st.data())
def test_reader_of_writer_is_identity_for_every_field(field, data):
    spec, formats = data.draw(specs(field)), data.draw(FORMATS)
    package = written_and_read(spec, formats)
    assert package.findings == ()
    assert package.spec == spec
    assert package.broken == frozenset()


@FEW
@given(specs(), FORMATS)
def test_reader_of_writer_is_identity(spec, formats):
    package = written_and_read(spec, formats)
    assert package.findings == ()
    assert package.spec == spec


@MANY
@given(specs("agents", "tools"), CODE)
def test_digest_survives_writing(spec, code):
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "Package"
        write_package(folder, spec, code)
        package = read_package(folder)
    assert package.digest == digest(spec, code)


@MANY
@given(specs("variables", "handoffs"), st.integers(0, 2**16))
def test_digest_ignores_key_order(spec, salt):
    data = shuffled(json.loads(json.dumps(plain(spec))), lambda name: hash((salt, name)))
    again = WorkflowSpec.model_validate_json(json.dumps(data))
    assert digest(again, {}) == digest(spec, {})


def test_digest_ignores_file_order():
    spec = WorkflowSpec(orchestrator=Orchestrator(workflow_name="W", initial_agent="A"))
    one = digest(spec, {"tools/a.py": b"1", "tools/b.py": b"2"})
    assert one == digest(spec, {"tools/b.py": b"2", "tools/a.py": b"1"})
    assert one != digest(spec, {"tools/a.py": b"2", "tools/b.py": b"1"})


@pytest.mark.parametrize("field", WorkflowSpec.model_fields)
@MANY
@given(data=st.data())
def test_plain_data_validates_to_the_same_spec(field, data):
    spec = data.draw(specs(field))
    assert WorkflowSpec.model_validate_json(json.dumps(plain(spec)), strict=True) == spec


def older(files, flags):
    """Spell the files of a package as they were once spelt, each way if its flag is set."""
    files = json.loads(json.dumps(files))
    start, variables = files["orchestrator"], files["context_variables"]["context_variables"]
    if flags["start"]:
        files["orchestrator"] = {
            {"human_in_the_loop": "human_in_loop"}.get(key, key): value
            for key, value in start.items()
        }
    if flags["exposure"]:
        exposed = variables["agents"]
        variables["agents"] = {agent: entry["variables"] for agent, entry in exposed.items()}
    for definition in variables["definitions"].values() if flags["sources"] else ():
        source = definition["source"]
        source["type"] = {"environment": "config", "entity": "data_entity"}.get(
            source["type"], source["type"]
        )
        definition["source"] = {
            {"default": "default_value"}.get(key, key): value for key, value in source.items()
        }
        definition["type"] = {"str": "string", "bool": "boolean"}.get(
            definition["type"], definition["type"]
        )
    if flags["plan"]:
        files["context_variables"] = {"ContextVariablesPlan": variables}
    if flags["bare"]:
        files["context_variables"] = variables
    for rule in files["handoffs"]["handoff_rules"] if flags["targets"] else ():
        rule["target_agent"] = {"terminate": "END"}.get(rule["target_agent"], rule["target_agent"])
    if flags["handoffs"]:
        files["handoffs"] = {"handoffs": files["handoffs"]["handoff_rules"]}
    if flags["wrapped"]:
        files["handoffs"] = {"handoffs": {"handoff_rules": next(iter(files["handoffs"].values()))}}
        files["structured_outputs"] = {"structured_outputs": files["structured_outputs"]}
    if flags["agents"]:
        named = {agent["agent_name"]: agent for agent in files["agents"]["agents"]}
        if len(named) == len(files["agents"]["agents"]):
            files["agents"] = {"agents": named}
    return files


WAYS = ("start", "exposure", "sources", "plan", "bare", "targets", "handoffs", "wrapped", "agents")
FIELDS = ("orchestrator", "agents", "variables", "exposure", "handoffs", "models", "registry")


@pytest.mark.parametrize("field", FIELDS)
@MANY
@given(data=st.data())
def test_migration_keeps_the_meaning_of_older_spellings(field, data):
    spec, formats = data.draw(specs(field)), data.draw(FORMATS)
    flags = data.draw(st.fixed_dictionaries({way: st.booleans() for way in WAYS}))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for stem, content in older(file_data(spec), flags).items():
            text = dump(content, formats[stem])
            (folder / f"{stem}.{formats[stem]}").write_text(text, encoding="utf-8", newline="")
        assert read_package(folder).spec == spec
        write_migrations([plan_migration(folder)])
        after = read_package(folder)
        assert after.spec == spec
        assert after.findings == ()
        assert plan_migration(folder).texts == {}
