"""Packages that runs have kept are read, whichever version has written them."""

from pydantic_core import from_json, to_json

from weft.runtime.workflow import pack, unpack
from weft.spec.workflow import WorkflowSpec

SPEC = WorkflowSpec.model_validate(
    {
        "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
        "agents": [{"agent_name": "A"}],
    }
)


def test_packed_package_can_be_unpacked():
    assert unpack(pack(SPEC, {"tools/t.py": b"x = 1\n"})) == (SPEC, {"tools/t.py": b"x = 1\n"})


def test_an_agent_of_which_is_kept_that_it_makes_text_is_read():
    data = from_json(pack(SPEC, {}))
    data["spec"]["agents"][0]["generation_mode"] = "text"
    assert unpack(to_json(data)) == (SPEC, {})
