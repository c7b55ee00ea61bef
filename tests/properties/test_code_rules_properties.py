"""The rules about names, tools, bindings, hooks, outputs and UI, on arbitrary workflows."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.strategies import JSON, TEXT, specs
from unit.check.builders_code import RULES, codes, derived, subject, ui_tool
from weft.catalogue import CATALOGUE
from weft.check.subject import Subject
from weft.findings import AppendItem, Path, SetValue
from weft.spec.workflow import plain

CODE = st.dictionaries(
    st.sampled_from(["tools/a.py", "tools/b.py", "hooks/a.py", "tools/Card.jsx", "c.py"]),
    st.one_of(
        TEXT,
        st.sampled_from(
            [
                "def f(a, context, *b, c=1, **d): g()\ndef g(): context.set('x', 1)",
                "from .b import *\nfrom . import a\nfrom ...x import y\nimport tools.b",
                "export default A; 'export default' `",
            ]
        ),
    ),
)
SCHEMAS = st.dictionaries(
    st.sampled_from(["type", "properties", "required", "enum", "$ref", "items", "anyOf", "$defs"]),
    st.one_of(
        JSON,
        st.sampled_from(["string", "object", "#", "#/$defs/a", ["string", 3], ["a"]]),
        st.dictionaries(
            st.sampled_from("ab"), st.sampled_from([{"type": "string"}, {"$ref": "#"}])
        ),
    ),
)


def holds(data: object, path: Path) -> bool:
    """Tell whether a path leads somewhere in the plain data of a spec."""
    for step in path:
        if (isinstance(data, dict) and step in data) or (
            isinstance(data, list) and isinstance(step, int) and step < len(data)
        ):
            data = data[step]
        else:
            return False
    return True


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(specs(), CODE)
def test_no_rule_ever_fails_and_every_place_exists(spec, code):
    checked, data = Subject(spec, code=code, folder="Support"), plain(spec)
    for rule in RULES:
        for hit in rule.check(checked):
            assert hit.message
            assert len(hit.hint) <= 2
            whole_part = len(hit.path) == 1
            assert hit.place or whole_part or holds(data, hit.path), (rule.code, hit.path)
            assert hit.place is None or hit.place.file in code
            assert rule.reads >= ({"code"} if hit.place else {str(hit.path[0])})
            for edit in hit.fix.edits if hit.fix else ():
                inside = edit.path[:-1] if isinstance(edit, SetValue | AppendItem) else edit.path
                assert holds(data, inside)


@settings(deadline=None)
@given(SCHEMAS, st.sampled_from(["a", "a.b", "a.0", "", "a..b"]), st.sampled_from(["str", "bool"]))
def test_any_schema_can_be_judged(schema, key, type_):
    trigger = {"type": "ui_response", "tool": "ask", "response_key": key or "a"}
    tools = [ui_tool("ask", response_schema=schema, payload_schema=schema)]
    assert isinstance(codes(subject(tools=tools, variables={"x": derived(type_, trigger)})), list)


def test_every_rule_is_in_the_catalogue():
    assert {rule.code for rule in RULES} <= set(CATALOGUE)
