"""The checks of generated packages as a whole: what they find, and that no code is executed."""

import json
import sys
from pathlib import Path
from tempfile import gettempdir

import pytest

from weft.app.simulation import simulate
from weft.errors import UsageError
from weft.generator.judge.guarantee import verify
from weft.generator.judge.simulation import SimulatedRun, Simulation
from weft.packages.reader import read_package
from weft.packages.workspace import shipped_folder

NAME = "Escalation"


def files_of(name):
    folder = shipped_folder() / name
    paths = (
        item for item in folder.rglob("*") if item.is_file() and "__pycache__" not in item.parts
    )
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def judged(simulated=simulate, pack=None, **changed):
    """Verify a shipped package with some of its files changed; the dots of names are `__`."""
    files = files_of(NAME) | changed.pop("files", {})
    return verify({NAME: files}, simulated, pack)


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
    assert verify({NAME: files_of(NAME)}, simulate) == verdict


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("agents.json", "{"),
        ("tools.json", '{"tools": 1}'),
        ("handoffs.json", '{"handoff_rules": [{"source_agent": "A"}]}'),
        ("hooks.json", "{}"),
        ("tools/broken.py", "def (:"),
    ],
)
def test_file_that_cannot_be_used_is_an_error_at_its_place(file, text):
    """G12: errors are not assigned to one agent; one repair sees all of them."""
    verdict = judged(never, files={file: text})
    assert not verdict.ok
    assert f"{NAME}/{file}" in {found.place.file for found in verdict.errors}
    told = json.dumps(verdict.as_json())
    assert gettempdir() not in told
    assert '"agent"' not in told


def test_code_that_a_model_wrote_is_never_executed(tmp_path):
    left = tmp_path / "left"
    canary = f"open({str(left)!r}, 'w').close()\n"
    files = {
        path: canary + text if path.endswith(".py") else text
        for path, text in files_of(NAME).items()
    }
    modules = set(sys.modules)
    verdict = verify({NAME: files}, simulate)
    assert verdict.ok, verdict.as_json()
    assert not left.exists()
    imported = [sys.modules[item] for item in set(sys.modules) - modules]
    assert not [item for item in imported if canary in _source(item)]


def _source(module):
    file = getattr(module, "__file__", None)
    return Path(file).read_text(errors="replace") if file and Path(file).is_file() else ""


def test_simulation_gets_the_spec_and_the_code_that_were_read():
    seen = []

    def watched(spec, code):
        seen.append((spec, code))
        return simulate(spec, code)

    assert judged(watched).ok
    package = read_package(shipped_folder() / NAME)
    assert seen == [(package.spec, package.code)]


def test_simulated_runs_that_fail_or_miss_something_are_findings():
    verdict = judged(ended("A -> B when x", problems=("a run failed: no", "a run came to no end")))
    assert not verdict.ok
    (package,) = verdict.packages
    assert [(finding.code, finding.place.file) for finding in package.findings] == [
        ("GEN001", f"{NAME}/handoffs.json"),
        ("GEN001", f"{NAME}/handoffs.json"),
        ("GEN002", f"{NAME}/handoffs.json"),
    ]
    assert package.findings[2].message == "no simulated run took A -> B when x"
    assert verdict.errors == package.findings


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
    assert "GEN004" in {item.code for item in verdict.errors}


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
    verdict = verify(files, simulate, json.dumps(pack))
    assert [package.ok for package in verdict.packages] == [True, True], verdict.as_json()
    assert verdict.ok is ok
    if not ok:
        assert {item.code for item in verdict.together} == {"PACK003"}
        assert verdict.together[0].place.file == "packs/pack.json"
        assert {item.code for item in verdict.errors} == {"PACK003"}


def test_a_requirement_that_may_be_elsewhere_is_a_warning():
    verdict = verify({"Pipeline": with_requirement("Pipeline", "Gone")}, simulate)
    assert {finding.code for finding in verdict.packages[0].findings} == {"PACK001"}
    assert verdict.ok


@pytest.mark.parametrize("name", ["../outside.py", "/outside.py", "tools/../../../outside.py"])
def test_nothing_is_written_outside(name):
    with pytest.raises(UsageError, match="not the name of a file in a package"):
        judged(never, files={name: ""})
