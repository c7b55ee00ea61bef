"""The guarantee: what is found in generated packages, by whom it is mended, and what never runs."""

import json
import sys
from pathlib import Path
from tempfile import gettempdir

import pytest

from weft.app.simulation import simulate
from weft.errors import UsageError
from weft.findings import Finding, Place
from weft.generator.guarantee import PackageVerdict, verify
from weft.generator.simulation import SimulatedRun, Simulation
from weft.packages.reader import read_package
from weft.packages.workspace import shipped_folder

NAME = "Escalation"


def files_of(name):
    folder = shipped_folder() / name
    paths = (
        item for item in folder.rglob("*") if item.is_file() and "__pycache__" not in item.parts
    )
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def plain_of(name):
    return read_package(shipped_folder() / name).code


def judged(simulated=simulate, pack=None, **changed):
    """Verify a shipped package with some of its files changed; the dots of names are `__`."""
    files = files_of(NAME) | changed.pop("files", {})
    return verify({NAME: files}, {NAME: plain_of(NAME)}, simulated, pack)


def never(spec, code):
    raise AssertionError("what has errors is not simulated")


def ended(*missed, **told):
    run = SimulatedRun(0, "completed", 1)
    return lambda spec, code: Simulation((run,), unvisited_rules=missed, **told)


def test_a_sound_package_is_offered_with_its_digest_and_its_runs():
    verdict = judged()
    assert verdict.ok
    (package,) = verdict.packages
    assert package.findings == ()
    assert package.digest == read_package(shipped_folder() / NAME).digest
    assert package.simulation.runs
    told = json.dumps(verdict.as_json())
    assert '"ok": true' in told
    assert gettempdir() not in told
    assert verify({NAME: files_of(NAME)}, {NAME: plain_of(NAME)}, simulate) == verdict


@pytest.mark.parametrize(
    ("file", "text", "agent"),
    [
        ("agents.json", "{", "AgentsAgent"),
        ("tools.json", '{"tools": 1}', "ToolsManagerAgent"),
        ("context_variables.json", "[]", "ContextVariablesAgent"),
        ("handoffs.json", '{"handoff_rules": [{"source_agent": "A"}]}', "HandoffsAgent"),
        ("structured_outputs.json", "{]", "StructuredOutputsAgent"),
        ("orchestrator.json", "{}", "OrchestratorAgent"),
        ("hooks.json", "{}", "HookAgent"),
        ("tools/broken.py", "def (:", "AgentToolsFileGenerator"),
    ],
)
def test_a_file_that_cannot_be_used_goes_back_to_who_made_it(file, text, agent):
    verdict = judged(never, files={file: text})
    assert not verdict.ok
    found = verdict.responsible[agent]
    assert found[0].place.file == f"{NAME}/{file}"
    assert found[0].severity == "error"
    assert gettempdir() not in json.dumps(verdict.as_json())


@pytest.mark.parametrize(
    ("file", "agent"),
    [
        ("tools/approve.py", "UIFileGenerator"),
        ("tools/Approve.jsx", "UIFileGenerator"),
        ("tools/other.py", "AgentToolsFileGenerator"),
        ("hooks/mask.py", "HookAgent"),
        ("requirements.txt", "AgentToolsFileGenerator"),
        ("api.py", "OrchestratorAgent"),
    ],
)
def test_every_file_has_its_maker(file, agent):
    verdict = PackageVerdict("W", "", (), Simulation(), frozenset({"tools/approve.py"}))
    assert verdict.maker_of(Finding("X", "error", "", Place(f"W/{file}"))) == agent


def test_code_that_a_model_wrote_is_never_executed(tmp_path):
    left = tmp_path / "left"
    canary = f"open({str(left)!r}, 'w').close()\n"
    files = {
        path: canary + text if path.endswith(".py") else text
        for path, text in files_of(NAME).items()
    }
    modules = set(sys.modules)
    verdict = verify({NAME: files}, {NAME: plain_of(NAME)}, simulate)
    assert verdict.ok, verdict.as_json()
    assert not left.exists()
    imported = [sys.modules[item] for item in set(sys.modules) - modules]
    assert not [item for item in imported if canary in _source(item)]


def _source(module):
    file = getattr(module, "__file__", None)
    return Path(file).read_text(errors="replace") if file and Path(file).is_file() else ""


def test_simulated_runs_use_plain_code_and_the_spec_that_was_read():
    seen = []

    def watched(spec, code):
        seen.append((spec, code))
        return simulate(spec, code)

    assert judged(watched).ok
    assert seen == [(read_package(shipped_folder() / NAME).spec, plain_of(NAME))]


def test_simulated_runs_that_fail_or_miss_something_are_findings():
    verdict = judged(ended("A -> B when x", problems=("a run failed: no", "a run came to no end")))
    assert not verdict.ok
    (package,) = verdict.packages
    assert [(finding.code, finding.place.file) for finding in package.findings] == [
        ("GEN001", f"{NAME}/tools.json"),
        ("GEN001", f"{NAME}/handoffs.json"),
        ("GEN002", f"{NAME}/handoffs.json"),
    ]
    assert package.findings[2].message == "no simulated run took A -> B when x"
    assert verdict.responsible["HandoffsAgent"] == package.findings[1:]


def test_incomplete_simulation_is_a_warning():
    verdict = judged(ended("A -> B when x", limited=True))
    assert verdict.ok
    (found,) = verdict.packages[0].findings
    assert (found.code, found.severity) == ("GEN002", "warning")
    assert found.message.endswith("A -> B when x: 1 of them were not enough to try it")
    assert "A -> B when x" in verdict.packages[0].in_words()
    verdict = judged(ended("A -> B when x", limited=True, problems=("a run failed: no",)))
    assert [finding.severity for finding in verdict.packages[0].findings] == ["error", "error"]


def test_a_library_that_is_missing_is_a_warning():
    lines = "# what it needs\n\npydantic>=2\nno-such-library==1.0\n--no-index\n"
    verdict = judged(ended(), files={"requirements.txt": lines})
    assert verdict.ok
    (found,) = verdict.packages[0].findings
    assert (found.code, found.severity) == ("GEN003", "warning")
    assert (found.place.line, found.message) == (4, "no-such-library is not installed here")


def test_a_tool_whose_code_is_installed_is_refused():
    tools = json.loads(files_of(NAME)["tools.json"])
    tools["tools"][0] |= {"file": "python:shutil"}
    verdict = judged(never, files={"tools.json": json.dumps(tools)})
    assert "GEN004" in {item.code for item in verdict.responsible["ToolsManagerAgent"]}


def with_requirement(name, required):
    files = files_of(name)
    orchestrator = json.loads(files["orchestrator.json"])
    orchestrator["workflow_dependencies"] = {"required_workflows": [required]}
    return files | {"orchestrator.json": json.dumps(orchestrator)}


@pytest.mark.parametrize(("second", "ok"), [("Pipeline", True), ("Pipelin", False)])
def test_packages_are_judged_together_with_their_pack(second, ok):
    pack = {
        "pack_name": "Both",
        "workflows": [{"name": NAME, "role": "primary"}, {"name": second, "role": "dependent"}],
    }
    files = {NAME: files_of(NAME), "Pipeline": with_requirement("Pipeline", NAME)}
    plain = {name: plain_of(name) for name in files}
    verdict = verify(files, plain, simulate, json.dumps(pack))
    assert [package.ok for package in verdict.packages] == [True, True], verdict.as_json()
    assert verdict.ok is ok
    if not ok:
        assert {item.code for item in verdict.together} == {"PACK003"}
        assert verdict.together[0].place.file == "packs/pack.json"
        assert "OrchestratorAgent" in verdict.responsible


def test_a_requirement_that_may_be_elsewhere_is_a_warning():
    verdict = verify(
        {"Pipeline": with_requirement("Pipeline", "Gone")},
        {"Pipeline": plain_of("Pipeline")},
        simulate,
    )
    assert {finding.code for finding in verdict.packages[0].findings} == {"PACK001"}
    assert verdict.ok


@pytest.mark.parametrize("name", ["../outside.py", "/outside.py", "tools/../../../outside.py"])
def test_nothing_is_written_outside(name):
    with pytest.raises(UsageError, match="not the name of a file in a package"):
        judged(never, files={name: ""})
