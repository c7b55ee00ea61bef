"""Tenants have packages, files, secrets and model keys of their own; none uses another's."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.mock_server import Answer, MockServer

from weft.adapters.files import WorkspaceFiles
from weft.app.hosts import open_host
from weft.app.models import open_tenant_registries
from weft.app.tenants import TenantSettings
from weft.errors import PortError, UsageError
from weft.ports.scope import Scope
from weft.testing import ManualClock

SHOP, BANK = Scope("shop", "ada"), Scope("bank", "ada")


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def write_package(folder: Path, words: str, definitions: dict[str, Any] | None = None) -> None:
    name = folder.name
    write(folder / "orchestrator.json", {"workflow_name": name, "initial_agent": "A"})
    section = {"id": "role", "heading": "[ROLE]", "content": words}
    write(folder / "agents.json", {"agents": [{"agent_name": "A", "prompt_sections": [section]}]})
    write(
        folder / "handoffs.json",
        {"handoff_rules": [{"source_agent": "A", "target_agent": "terminate"}]},
    )
    if definitions:
        variables = {"definitions": definitions, "agents": {"A": {"variables": [*definitions]}}}
        write(folder / "context_variables.json", {"context_variables": variables})


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    write_package(tmp_path / "workflows" / "Desk", "shared")
    return tmp_path


def play(scenario, *arguments):
    return asyncio.run(asyncio.wait_for(scenario(*arguments), 30))


async def digest(host, scope: Scope, workflow: str = "Desk") -> str:
    run = await host.start(workflow, scope=scope, message="hi", model="sample")
    await host.settled(run, scope=scope)
    return (await host.run(run, scope=scope)).digest


def opened(workspace: Path, **environment: str):
    return open_host(workspace, journal=":memory:", environment=environment)


def test_own_package_of_a_tenant_is_used_by_that_tenant_only(workspace):
    write_package(workspace / "apps/shop/workflows/Desk", "of the shop")
    write_package(workspace / "apps/shop/workflows/Till", "only the shop has it")

    async def scenario():
        async with await opened(workspace) as host:
            assert await digest(host, SHOP) != await digest(host, BANK)
            assert await digest(host, BANK) == await digest(host, Scope("local", "me"))
            await digest(host, SHOP, "Till")
            with pytest.raises(UsageError) as caught:
                await host.start("Till", scope=BANK, message="hi")
            assert "there is no package Till" in str(caught.value)
            assert caught.value.hint == "available: Desk"
            with pytest.raises(UsageError) as caught:
                await host.start("Tilll", scope=SHOP, message="hi")
            assert caught.value.hint == "did you mean Till?"

    play(scenario)


def test_own_package_counts_from_when_it_is_there(workspace):
    async def scenario():
        async with await opened(workspace) as host:
            before = await digest(host, SHOP)
            write_package(workspace / "apps/shop/workflows/Desk", "of the shop")
            own = await digest(host, SHOP)
            assert own != before
            assert await digest(host, BANK) == before

    play(scenario)


@pytest.mark.parametrize("name", ["../../shop/workflows/Till", "../../shop/workflows/Till/."])
@pytest.mark.parametrize("app", ["bank", "../apps/shop", "shop/../shop", "SHOP", "."])
def test_no_name_leads_to_the_package_of_another_tenant(workspace, app, name):
    write_package(workspace / "apps/shop/workflows/Till", "only the shop has it")
    (workspace / "apps/bank/workflows").mkdir(parents=True)

    async def scenario():
        async with await opened(workspace) as host:
            for asked in (name, "Till"):
                with pytest.raises(UsageError, match="there is no package"):
                    await host.start(asked, scope=Scope(app, "ada"), message="hi")

    play(scenario)


def read(workspace: Path, app: str, path: str) -> str:
    return asyncio.run(WorkspaceFiles(workspace).read(app, "Desk", path))


def test_file_of_a_tenant_is_read_by_that_tenant_only(workspace):
    write(workspace / "terms.md", "of all")
    write(workspace / "apps/shop/terms.md", "of the shop")
    write(workspace / "apps/shop/prices.md", "secret prices")
    (workspace / "link.md").symlink_to(workspace / "apps/shop/prices.md")
    assert read(workspace, "shop", "terms.md") == "of the shop"
    assert read(workspace, "bank", "terms.md") == "of all"
    for path in ("prices.md", "apps/shop/prices.md", "Apps/shop/prices.md", "link.md"):
        with pytest.raises(PortError):
            read(workspace, "bank", path)
    for app in ("..", "shop/", "Shop", "bank/../shop"):
        with pytest.raises(PortError):
            read(workspace, app, "prices.md")


def test_own_package_reads_its_own_files(workspace):
    write(workspace / "workflows/Desk/terms.md", "of the shared package")
    write_package(workspace / "apps/shop/workflows/Desk", "of the shop")
    write(workspace / "apps/shop/workflows/Desk/terms.md", "of the own package")
    assert read(workspace, "shop", "terms.md") == "of the own package"
    assert read(workspace, "bank", "terms.md") == "of the shared package"


def settings_of(workspace: Path | None, clock=None, **environment: str) -> TenantSettings:
    return TenantSettings(workspace, environment, clock or ManualClock())


def test_own_secrets_replace_those_of_all_tenants(workspace):
    write(workspace / "apps/shop/secrets.json", {"TOKEN": "shop-token"})
    variable = json.dumps({"TOKEN": "bank-token"})
    settings = settings_of(workspace, TOKEN="shared", OTHER="x", WEFT_SECRETS_MY_BANK=variable)
    assert settings("shop") == {"TOKEN": "shop-token", "OTHER": "x"}
    assert settings("my-bank") == {"TOKEN": "bank-token", "OTHER": "x"}
    assert settings("local") is settings.shared
    assert settings.shared == {"TOKEN": "shared", "OTHER": "x"}, "no tenant sees WEFT_SECRETS_..."
    for other in ("my_bank", "MY-BANK", "My-Bank", "../shop", "Shop"):
        assert settings(other) is settings.shared


def test_variable_replaces_the_file_of_a_tenant(workspace):
    write(workspace / "apps/shop/secrets.json", {"A": "file", "B": "file"})
    settings = settings_of(workspace, WEFT_SECRETS_SHOP='{"A": "variable"}')
    assert settings("shop") == {"A": "variable"}
    assert settings_of(None, WEFT_SECRETS_SHOP='{"A": "variable"}')("shop") == {"A": "variable"}


def test_secrets_are_read_again_when_their_file_changes(workspace):
    clock = ManualClock()
    settings = settings_of(workspace, clock)
    assert settings("shop") is settings.shared
    file = write(workspace / "apps/shop/secrets.json", {"TOKEN": "one"})
    asyncio.run(clock.advance(2))
    first = settings("shop")
    assert first == {"TOKEN": "one"}
    asyncio.run(clock.advance(2))
    assert settings("shop") is first
    write(file, {"TOKEN": "another"})
    asyncio.run(clock.advance(2))
    assert settings("shop") == {"TOKEN": "another"}
    file.unlink()
    asyncio.run(clock.advance(2))
    assert settings("shop") is settings.shared


@pytest.mark.parametrize("text", ["{", "[]", '{"TOKEN": 7}', '"canary"'])
def test_unreadable_secrets_are_refused_without_quoting_them(workspace, text):
    write(workspace / "apps/shop/secrets.json", text)
    with pytest.raises(UsageError) as caught:
        settings_of(workspace)("shop")
    assert "secrets.json are not a JSON object of texts" in str(caught.value)
    assert "canary" not in f"{caught.value} {caught.value.hint}"
    with pytest.raises(UsageError, match="WEFT_SECRETS_SHOP are not a JSON object"):
        settings_of(None, WEFT_SECRETS_SHOP=text)("shop")


def test_variables_of_a_run_come_from_the_environment_of_its_tenant(workspace):
    source = {"type": "environment", "env_var": "REGION", "default": ""}
    stolen = {"type": "environment", "env_var": "WEFT_SECRETS_SHOP", "default": ""}
    described = {"type": "str", "description": "A value."}
    definitions = {
        "region": {**described, "source": source},
        "stolen": {**described, "source": stolen},
    }
    write_package(workspace / "workflows" / "Desk", "In {region}.", definitions)

    async def scenario():
        host = await opened(workspace, REGION="all", WEFT_SECRETS_SHOP='{"REGION": "shop"}')
        async with host:
            found = {}
            for scope in (SHOP, BANK):
                run = await host.start("Desk", scope=scope, message="hi", model="sample")
                await host.settled(run, scope=scope)
                found[scope.app] = (await host.state(run, scope=scope)).variables
            return found

    found = play(scenario)
    assert found["shop"] == {"region": "shop", "stolen": ""}
    assert found["bank"] == {"region": "all", "stolen": ""}


def test_models_are_asked_with_the_key_of_the_tenant(workspace):
    write(workspace / "apps/shop/secrets.json", {"OPENAI_API_KEY": "key-of-the-shop"})

    async def scenario():
        async with MockServer([Answer("hello")] * 3) as server:
            environment = {"OPENAI_API_KEY": "key-of-all", "OPENAI_BASE_URL": server.base_url}
            async with await opened(workspace, **environment) as host:
                for scope in (SHOP, BANK, SHOP):
                    run = await host.start("Desk", scope=scope, message="hi", model="openai:mock")
                    await host.settled(run, scope=scope)
            return [request.headers["Authorization"] for request in server.seen]

    keys = play(scenario)
    assert keys == ["Bearer key-of-the-shop", "Bearer key-of-all", "Bearer key-of-the-shop"]


def test_models_of_a_tenant_are_made_anew_when_its_key_changes(workspace):
    file = write(workspace / "apps/shop/secrets.json", {"OPENAI_API_KEY": "one"})
    clock = ManualClock()

    async def scenario():
        registries = open_tenant_registries(settings_of(workspace, clock), clock)
        first = registries("shop")
        assert registries("shop") is first
        assert registries("bank") is None
        write(file, {"OPENAI_API_KEY": "another"})
        await clock.advance(2)
        assert registries("shop") is not first
        await registries.close()

    play(scenario)
