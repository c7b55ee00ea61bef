"""The package of a test is one that runs, or the test is told why it does not."""

import shutil
import traceback

import pytest

from weft.errors import CheckFailed, UsageError
from weft.packages.workspace import shipped_folder
from weft.ports.scope import Scope
from weft.testing import ScriptedModel, host_for, read_package

ADA = Scope("app", "ada")


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(shipped_folder() / "HelloWorld", tmp_path / "HelloWorld")


async def test_a_package_is_named_by_a_path_or_a_text(folder):
    package = read_package(str(folder))
    assert package.digest == read_package(folder).digest
    model = ScriptedModel("Hello.")
    async with host_for(package.spec, model, code=package.code) as host:
        run = await host.start("HelloWorld", scope=ADA, message="hi")
        outcome = await host.settled(run, scope=ADA)
    assert outcome.status == "waiting"


def test_a_folder_that_is_not_there_is_named(tmp_path):
    (tmp_path / "file").touch()
    for name in ("Nope", "file"):
        with pytest.raises(UsageError, match=f"there is no folder .*{name}") as caught:
            read_package(tmp_path / name)
        assert caught.value.hint == "name the folder of a package"


def test_import_error_of_a_package_is_shown_with_a_traceback(folder):
    (folder / "agents.json").unlink()
    with pytest.raises(CheckFailed, match="HelloWorld has 1 error and cannot run") as caught:
        read_package(folder)
    assert [finding.code for finding in caught.value.findings] == ["SCHEMA012"]
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.endswith("agents.json: SCHEMA012 agents.json is missing\n")


def test_refusals_of_rules_are_reported_too(folder):
    orchestrator = folder / "orchestrator.json"
    text = orchestrator.read_text(encoding="utf-8")
    orchestrator.write_text(text.replace('"GreeterAgent"', '"Nobody"'), encoding="utf-8")
    with pytest.raises(CheckFailed, match="cannot run") as caught:
        read_package(folder)
    assert any("Nobody" in finding.message for finding in caught.value.findings)
