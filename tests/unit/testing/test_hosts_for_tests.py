"""The host of the test kit: documents given as a dict, scripts that must fit the workflow."""

import asyncio
import re

import pytest

from weft.errors import UsageError
from weft.ports.documents import Collection
from weft.ports.scope import Scope
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import GivenDocuments, host_for
from weft.testing.models import ScriptedModel, call

ADA = Scope("shop", "ada")
CODE = {
    "tools/shop.py": b'''
def record_expense(amount: int, context_variables) -> str:
    """Record an expense."""
    print("token", context_variables.get("token"), 7)
    return str(amount / 0)
'''
}


def shop(**variables) -> WorkflowSpec:
    tool = {"tool_type": "Agent_Tool", "agent": "Clerk", "file": "shop.py"}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Shop", "initial_agent": "Clerk"},
            "agents": [{"agent_name": "Clerk"}],
            "variables": variables,
            "exposure": {"Clerk": [variable for variable in variables if variable != "token"]},
            "tools": [{**tool, "function": "record_expense"}],
        }
    )


def played(spec, script, **options):
    async def scenario():
        async with host_for(spec, ScriptedModel(script), code=CODE, **options) as host:
            run = await host.start("Shop", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            return await host.state(run, scope=ADA)

    return asyncio.run(scenario())


@pytest.mark.parametrize("database", [None, "sales"])
def test_database_variables_read_the_given_documents(database):
    source = {"type": "database", "collection": "Customers", "search_by": "user_id"}
    limit = {"type": "int", "source": {**source, "field": "limit", "database": database}}
    customers = [{"user_id": "bob", "limit": 3}, {"user_id": "ada", "limit": 50}]
    state = played(shop(limit=limit), ["Done."], documents={"Customers": customers})
    assert state.variables["limit"] == 50


def test_given_documents_are_a_store_for_every_tenant():
    async def scenario():
        store = GivenDocuments({"Orders": [{"_id": "a", "n": 1}, {"n": 2}]})
        orders, other = Collection("Orders"), Scope.operator("other")
        assert [entry["n"] for entry in await store.page(ADA, orders)] == [2, 1]
        assert await store.put(ADA, orders, {"_id": "a"}, {"n": 3}) == "a"
        assert await store.delete(ADA, orders, "2")
        assert await store.collections(ADA, database="x") == [(Collection("Orders", "x"), 1)]
        assert (await store.find(other, orders, {"_id": "a"})) == {"_id": "a", "n": 1}
        changes = store.watch(ADA, orders)
        waiting = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0.05)
        await store.put(ADA, orders, {"_id": "b"}, {"n": 4})
        assert (await waiting).key == "b"
        await changes.aclose()
        await store.close()

    asyncio.run(scenario())
    asyncio.run(GivenDocuments({}).close())


@pytest.mark.parametrize(
    ("script", "message", "hint"),
    [
        ({"Clark": ["hi"]}, "the agent Clark, which does not exist", "did you mean Clerk?"),
        (
            {"Clerk": [call("record_expnse")]},
            "the tool record_expnse of Clerk, which does not exist",
            "did you mean record_expense?",
        ),
        ([[call("nothing")]], "the tool nothing, which does not exist", "available: record_"),
        ([call("record_expense", amount="x")], "record_expense with wrong arguments", ""),
    ],
)
def test_script_that_does_not_fit_the_workflow_is_refused(script, message, hint):
    with pytest.raises(UsageError, match=message) as refused:
        host_for(shop(), ScriptedModel(script), code=CODE)
    assert (refused.value.hint or "").startswith(hint)
    host_for(shop(), ScriptedModel(script, strict=False), code=CODE)


def test_traceback_names_the_file_by_its_workflow(caplog):
    caplog.set_level("DEBUG", "weft.tools")
    state = played(shop(), [call("record_expense", amount=1), "Done."])
    (failed,) = [message.text for message in state.messages if message.role == "tool"]
    assert "ZeroDivisionError at tools/shop.py:5" in failed
    assert re.search(r'File "Shop(@\d+)?/tools/shop.py", line 5', caplog.text)


def test_printed_secrets_are_masked(capsys):
    source = {"type": "environment", "env_var": "TOKEN"}
    token = {"type": "str", "secret": True, "source": source}
    played(
        shop(token=token),
        [call("record_expense", amount=1), "Done."],
        environment={"TOKEN": "s3cret-token"},
    )
    assert capsys.readouterr().err == "token (secret) 7\n"
