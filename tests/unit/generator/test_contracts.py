"""The six contracts of section 16.7 hold for shipped conversations, and see what breaks them."""

import json
import shutil
from pathlib import Path

import pytest

from support import contracts
from support.shipped import BOARDS, FLOWS
from weft.packages.workspace import shipped_folder

PACKAGES = sorted(item for item in shipped_folder().iterdir() if item.name not in (*BOARDS, *FLOWS))


@pytest.mark.parametrize("contract", contracts.CONTRACTS, ids=lambda it: it.__name__)
@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_a_contract_holds_for_a_shipped_conversation(folder, contract):
    contract(folder)


def copied(tmp_path: Path, name: str) -> Path:
    target = tmp_path / name
    shutil.copytree(shipped_folder() / name, target)
    (target / "hooks").mkdir(exist_ok=True)
    (target / "hooks" / "mask.py").write_text("async def mask(message):\n    return message\n")
    hook = {"hook_type": "before_chat", "file": "mask.py", "function": "mask"}
    (target / "hooks.json").write_text(json.dumps({"hooks": [hook]}))
    return target


def change(folder: Path, stem: str, edit) -> None:
    file = folder / f"{stem}.json"
    data = json.loads(file.read_text())
    edit(data)
    file.write_text(json.dumps(data))


def in_first(key: str, **fields):
    return lambda data: data[key][0].update(fields)


def unowned_server(data):
    data["mcp_servers"] = [{"name": "s", "agents": ["Nobody"]}]


def dead_end(data):
    source = data["handoff_rules"][0]["source_agent"]
    data["handoff_rules"] = [
        item for item in data["handoff_rules"] if item["source_agent"] != source
    ]


def no_end(data):
    data["handoff_rules"] = [
        item for item in data["handoff_rules"] if item["target_agent"] not in contracts.ENDS
    ]


def unshown(data):
    data["context_variables"]["agents"] = {}


def undeclared(data):
    data["context_variables"]["agents"]["RouterAgent"]["variables"].append("nothing")


def strange_reader(data):
    data["context_variables"]["agents"]["Nobody"] = {"variables": []}


def states(*changes):
    def edit(data):
        source = {
            "type": "derived",
            "default": "new",
            "transitions": [{"from": item, "to": to} for item, to in changes],
        }
        definition = {"type": 'literal["new", "open", "done"]', "source": source}
        data["context_variables"]["definitions"]["state"] = definition

    return edit


BROKEN = [
    (contracts.tools_are_registered, "tools", in_first("tools", file="gone.py"), "no file"),
    (contracts.tools_are_registered, "tools", in_first("tools", function="gone"), "not define"),
    (contracts.agents_own_tools, "tools", in_first("tools", agent="Nobody"), "no agent"),
    (
        contracts.agents_own_tools,
        "tools",
        lambda data: data.update(lifecycle_tools=[{"function": "f", "agent": "Nobody"}]),
        "no agent",
    ),
    (contracts.agents_own_tools, "tools", unowned_server, "no agents"),
    (contracts.handoffs_are_complete, "handoffs", dead_end, "nothing leads on"),
    (contracts.handoffs_are_complete, "handoffs", no_end, "no|nothing"),
    (
        contracts.handoffs_are_complete,
        "handoffs",
        in_first("handoff_rules", target_agent="Nobody"),
        "nobody",
    ),
    (
        contracts.handoffs_are_complete,
        "handoffs",
        in_first("handoff_rules", source_agent="Nobody"),
        "no agent",
    ),
    (
        contracts.handoffs_are_complete,
        "agents",
        lambda data: data["agents"].append({"agent_name": "Lost"}),
        "nothing leads on from Lost",
    ),
    (contracts.variables_are_exposed, "context_variables", unshown, "is not shown it"),
    (contracts.variables_are_exposed, "context_variables", undeclared, "are not declared"),
    (contracts.variables_are_exposed, "context_variables", strange_reader, "no agent"),
    (contracts.states_are_valid, "context_variables", states(("new", "open")), "never comes"),
    (
        contracts.states_are_valid,
        "context_variables",
        states(("new", "open"), ("open", "done"), ("done", "gone")),
        "none of its states",
    ),
    (contracts.hooks_are_bound, "hooks", in_first("hooks", file="gone.py"), "no file"),
    (contracts.hooks_are_bound, "hooks", in_first("hooks", function="gone"), "not define"),
    (contracts.hooks_are_bound, "hooks", in_first("hooks", agent="Nobody"), "no agent"),
]


@pytest.mark.parametrize(("contract", "stem", "edit", "fault"), BROKEN)
def test_a_contract_that_is_broken_is_seen(tmp_path, contract, stem, edit, fault):
    folder = copied(tmp_path, "CustomerSupportRouter")
    for item in contracts.CONTRACTS:
        item(folder)
    change(folder, stem, edit)
    with pytest.raises(AssertionError, match=fault):
        contract(folder)


def test_a_component_that_is_missing_is_seen(tmp_path):
    folder = copied(tmp_path, "CustomerSupportRouter")
    (folder / "tools" / "ClarificationRequest.jsx").unlink()
    with pytest.raises(AssertionError, match=r"no ClarificationRequest\.jsx"):
        contracts.tools_are_registered(folder)


def test_states_that_follow_each_other_are_valid(tmp_path):
    folder = copied(tmp_path, "CustomerSupportRouter")
    change(folder, "context_variables", states(("open", "done"), ("new", "open")))
    contracts.states_are_valid(folder)
