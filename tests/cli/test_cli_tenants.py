"""--app and --user: a command acts for one user of one tenant; an operator lists all runs."""

import asyncio
import json
import shutil

import pytest

from support.cases import scenario_tests
from weft.app.hosts import open_host
from weft.ports.scope import Scope

SHOP = ("--app", "shop", "--user", "ada")


@pytest.fixture
def runs(weft, desk, typed, prepared):
    """A run of a program for another tenant, and one of the local user."""

    def run_two():
        async def program():
            async with await open_host() as host:
                scope = Scope("shop", "ada")
                run = await host.start("Desk", scope=scope, message="from code", model="sample")
                await host.settled(run, scope=scope)
                return run

        program_run = asyncio.run(program())
        typed("What else?")
        weft("run", "Desk", "local words", "--model", "you", "--quiet")
        typed()
        [mine] = weft("runs", "list", "--json").data["runs"]
        return program_run, mine["run"]

    return prepared("two tenants", run_two)


def listed(weft, *options):
    return [row["run"] for row in weft("runs", "list", "--json", *options).data["runs"]]


def test_runs_of_a_program_are_listed_inspected_and_resumed(weft, runs):
    """S13: the command line reaches runs of other tenants and users."""
    theirs, mine = runs
    assert listed(weft) == [mine]
    assert listed(weft, *SHOP) == [theirs]
    assert listed(weft, "--app", "shop") == listed(weft, "--user", "ada") == []
    for command in (("runs", "show"), ("inspect",), ("runs", "tail"), ("replay",)):
        assert weft(*command, theirs).code == 6
        assert weft(*command, theirs, *SHOP).code in (0, 4), command
    assert weft("runs", "resume", theirs).code == 6
    assert weft("runs", "resume", theirs, *SHOP).code in (0, 4)


def test_run_belongs_to_the_tenant_and_user_of_the_command(weft, runs, typed):
    typed("Good day")
    weft("run", "Desk", "hello", "--model", "you", *SHOP)
    assert len(listed(weft, *SHOP)) == 2
    assert listed(weft) == [runs[1]]


def test_operator_lists_the_runs_of_all_tenants(weft, runs):
    theirs, mine = runs
    assert listed(weft, "--all-apps") == [mine, theirs]
    assert listed(weft, "--all-apps", "--limit", "1") == [mine]
    assert listed(weft, "--all-apps", "--workflow", "Nothing") == []
    table = weft("runs", "list", "--all-apps").out
    assert "Desk (shop/ada)" in table
    assert "Desk (local/me)" in table


def test_commands_in_hints_keep_the_scope(weft, runs):
    shown = weft("runs", "show", runs[0], *SHOP)
    assert "--app shop --user ada" in shown.out + shown.err


def test_own_package_of_a_tenant_runs_by_name(weft, desk, typed):
    shutil.copytree(desk / "workflows/Desk", desk / "apps/shop/workflows/Counter")
    orchestrator = desk / "apps/shop/workflows/Counter/orchestrator.json"
    data = json.loads(orchestrator.read_text())
    orchestrator.write_text(json.dumps({**data, "workflow_name": "Counter"}))
    typed("Good day")
    assert weft("run", "Counter", "hello", "--model", "you", *SHOP).code in (0, 4)
    typed("Good day")
    refused = weft("run", "Counter", "hello", "--model", "you")
    assert refused.code == 6
    assert 'there is no package "Counter"' in refused.err


test_scenarios = scenario_tests(__file__)
