"""weft emit assemblers: what steps are shown, as code."""

import pytest

VARIABLES = {
    "topic": {
        "type": "str",
        "description": "What it is about.",
        "source": {"type": "derived", "default": "bees"},
    }
}

FLOW = {
    "steps": [
        {
            "kind": "step",
            "name": "write",
            "work": {"kind": "agent", "agent": "Helper", "prompt": "Write.", "output": "topic"},
            "context": {
                "sources": [
                    {"kind": "state", "path": "topic"},
                    {"kind": "retrieval", "collection": "Library", "query_path": "topic"},
                ]
            },
        }
    ]
}


@pytest.fixture
def flow(support, write):
    """The package as a flow."""
    write(support, "orchestrator.json", {"workflow_name": "Support"})
    write(support, "flow.json", FLOW)
    write(support, "context_variables.json", {"context_variables": {"definitions": VARIABLES}})
    return support


def test_the_classes_are_printed_or_written(weft, workspace, flow):
    printed = weft("emit", "assemblers", "Support")
    assert printed.code == 0, printed.err
    assert "class WriteContextAssembler:" in printed.out
    result = weft("emit", "assemblers", "Support", "-o", "contexts.py")
    assert result.out == "wrote contexts.py\n"
    assert (workspace / "contexts.py").read_text() == printed.out


def test_programs_get_it_as_a_document(weft, workspace, flow):
    data = weft("emit", "assemblers", "Support", "--json").data
    assert data["name"] == "Support"
    assert data["file"] is None
    assert "class WriteContextAssembler:" in data["text"]
    assert weft("emit", "assemblers", "Support", "--json", "-o", "f.py").data["file"] == "f.py"


def test_package_that_is_not_a_flow_is_refused(weft, workspace):
    result = weft("emit", "assemblers", "Support")
    assert result.code != 0
    assert "no step of Support declares a context" in result.err


def test_a_package_with_errors_is_refused(weft, workspace, flow, write):
    broken = {**FLOW["steps"][0], "work": {**FLOW["steps"][0]["work"], "agent": "Nobody"}}
    write(flow, "flow.json", {"steps": [broken]})
    result = weft("emit", "assemblers", "Support")
    assert result.code != 0
    assert "Nobody" in result.err
