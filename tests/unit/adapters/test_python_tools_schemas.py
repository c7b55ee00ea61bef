"""What a model is told about a function, and what becomes of the arguments it sends."""

from textwrap import dedent

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cases import read_cases
from support.tool_play import Bench, context, play
from weft.adapters.python_tools.schemas import Signature, read_signature
from weft.errors import RetryModel

CASES = read_cases(__file__)

IMPORTS = """
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict, Union
from pydantic import BaseModel, Field

class Colour(Enum):
    RED = "red"
    BLUE = "blue"

class Point(TypedDict):
    x: int
    y: NotRequired[int]

class Node(TypedDict):
    name: str
    children: list["Node"]

@dataclass
class Size:
    width: int
    title: str = "none"

class Order(BaseModel):
    '''What somebody bought.'''
    number: int = Field(ge=1)
    lines: list[str] = []
"""

UNFIT = "which a model cannot fill in"


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.loader.close()


def load(bench, definition):
    return bench.load(f"{IMPORTS}\n{dedent(definition)}", "f")


def parameters(bench, definition):
    return load(bench, definition).schema("f").parameters


def signature(function) -> Signature:
    found = read_signature("f", function)
    assert isinstance(found, Signature)
    return found


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        ("str", {"type": "string"}),
        ("int", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("list[int]", {"type": "array", "items": {"type": "integer"}}),
        ("dict[str, bool]", {"type": "object", "additionalProperties": {"type": "boolean"}}),
        ("Optional[str]", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ("int | str", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("Union[int, list]", {"anyOf": [{"type": "integer"}, {"type": "array", "items": {}}]}),
        ("Literal['a', 'b']", {"enum": ["a", "b"], "type": "string"}),
        ("'list[str]'", {"type": "array", "items": {"type": "string"}}),
        ("Annotated[int, 'How many.']", {"type": "integer", "description": "How many."}),
        ("Annotated[int, Field(description='N.')]", {"type": "integer", "description": "N."}),
        ("Any", {}),
    ],
)  # fmt: skip
def test_type_hints_become_a_schema(bench, hint, schema):
    assert parameters(bench, f"def f(a: {hint}): ...") == {
        "type": "object",
        "properties": {"a": schema},
        "required": ["a"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(("hint", "name", "schema"), CASES["test_classes_are_described_once"])
def test_classes_are_described_once(bench, hint, name, schema):
    assert parameters(bench, f"def f(a: {hint}): ...")["$defs"] == {name: schema}


def test_classes_that_contain_themselves_are_described(bench):
    found = parameters(bench, "def f(a: Node): ...")
    assert found["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}


def test_defaults_are_shown_and_not_required(bench):
    text = """
        def f(a: int, b: int = 3, c: int = None, d: Any = object(), e: Colour = Colour.RED): ...
    """
    found = parameters(bench, text)
    assert found["required"] == ["a"]
    assert found["properties"]["b"] == {"type": "integer", "default": 3}
    assert found["properties"]["c"] == {
        "anyOf": [{"type": "integer"}, {"type": "null"}],
        "default": None,
    }
    assert found["properties"]["d"] == {}
    assert found["properties"]["e"]["default"] == "red"


def test_a_parameter_without_a_hint_takes_anything(bench):
    tools = load(bench, "def f(a) -> object:\n    return a")
    assert tools.schema("f").parameters["properties"] == {"a": {}}
    assert play(tools, "f", {"a": {"b": [1]}}) == {"b": [1]}


def test_a_parameter_called_title_stays(bench):
    found = parameters(
        bench, "def f(title: str, schema: Size, _x: Literal['title'] = 'title'): ..."
    )
    assert list(found["properties"]) == ["title", "schema", "_x"]
    assert found["properties"]["_x"]["default"] == "title"


def test_docstring_describes_the_tool_and_its_parameters(bench):
    text = '''
        def f(order: str, limit: int = 5, *, note: Annotated[str, "Mine."] = "", extra: str = ""):
            """Find an order.

            It looks far and wide.

            Args:
                order: The number on the
                    receipt: as printed.

                limit (int): At most
                    so many.
                note: Not this.
                **options: Whatever.

            Returns:
                extra: Not this either.
            """
    '''
    tools = load(bench, text)
    assert tools.schema("f").description == "Find an order."
    described = {
        name: entry.get("description")
        for name, entry in tools.schema("f").parameters["properties"].items()
    }
    assert described == {
        "order": "The number on the receipt: as printed.",
        "limit": "At most so many.",
        "note": "Mine.",
        "extra": None,
    }


def test_text_before_the_first_parameter_describes_none(bench):
    text = '''
        def f(a: int):
            """Do.

            Args:
                all of them matter
                a: One.
            """
    '''
    assert parameters(bench, text)["properties"]["a"]["description"] == "One."


def test_a_function_without_docstring_has_no_description(bench):
    assert load(bench, "def f(): ...").schema("f").description == ""


@pytest.mark.parametrize("parameter", CASES["test_injected_parameters_are_hidden_from_the_model"])
def test_injected_parameters_are_hidden_from_the_model(bench, parameter):
    text = f"""
        from weft.runtime.tools.context_variables import Context
        def f(a: int, {parameter}) -> str:
            return {parameter.lstrip("*, ").partition(":")[0]}.key
    """
    tools = load(bench, text)
    assert list(tools.schema("f").parameters["properties"]) == ["a"]
    assert play(tools, "f", {"a": 1}) == "run-1:7"


def test_a_text_called_context_comes_from_the_model(bench):
    tools = load(bench, "def f(context: str) -> str:\n    return context.upper()")
    assert play(tools, "f", {"context": "hi"}) == "HI"


def test_values_arrive_as_their_types_say(bench):
    text = """
        def f(c: Colour, s: Size, o: Order, p: Point, n: int, u: int | str) -> list[object]:
            return [c is Colour.RED, s.title, o.number + 1, p["x"], n, u]
    """
    arguments = {
        "c": "red",
        "s": {"width": 2},
        "o": {"number": 4},
        "p": {"x": 9},
        "n": "7",
        "u": "x",
    }
    assert play(load(bench, text), "f", arguments) == [True, "none", 5, 9, 7, "x"]


def test_further_keywords_reach_a_function_that_takes_them(bench):
    tools = load(bench, "def f(a: int, *more, **rest) -> object:\n    return [a, more, rest]")
    assert tools.schema("f").parameters["additionalProperties"] is True
    assert play(tools, "f", {"a": 1, "b": [2]}) == [1, [], {"b": [2]}]


def test_every_argument_error_is_one_sentence(bench):
    text = """
        def f(order: str, limit: int, colour: Colour, sizes: list[Size], n: Annotated[
            int, Field(multiple_of=2)]): ...
    """
    wrong = {"limit": "many", "colour": "pink", "sizes": [{"width": {}}], "n": 3, "color": 1}
    with pytest.raises(RetryModel) as caught:
        play(load(bench, text), "f", wrong)
    assert str(caught.value) == (
        "The arguments of f are invalid. "
        "order is missing. "
        "limit should be a valid integer, unable to parse string as an integer. "
        "colour should be 'red' or 'blue'. "
        "sizes.0.width should be a valid integer. "
        "n should be a multiple of 2. "
        "color is unknown; the tool takes order, limit, colour, sizes, n."
    )


def test_a_fault_that_the_author_words_is_passed_on(bench):
    text = """
        from pydantic import AfterValidator
        def check(value):
            raise ValueError("no such order")
        def f(a: Annotated[int, AfterValidator(check)]): ...
    """
    with pytest.raises(RetryModel, match=r"a: Value error, no such order\."):
        play(load(bench, text), "f", {"a": 1})


@pytest.mark.parametrize(
    ("faults", "rest"),
    [(100, "There are 90 more faults."), (11, "There is 1 more fault."), (10, "as an integer.")],
)
def test_first_of_many_faults_are_reported(bench, faults, rest):
    with pytest.raises(RetryModel) as caught:
        play(load(bench, "def f(a: list[int]): ..."), "f", {"a": ["x"] * faults})
    assert str(caught.value).count("should be") == 10
    assert str(caught.value).endswith(rest)


def test_a_function_without_parameters_says_so(bench):
    with pytest.raises(RetryModel, match=r"b is unknown; the tool takes no arguments\."):
        play(load(bench, "def f(): ..."), "f", {"b": 1})


def test_a_tool_may_change_its_arguments(bench):
    sent = {"a": [1], "b": {"c": []}}
    text = """
        def f(a: list[int], b: Any) -> None:
            a.append(2)
            b["c"].append(3)
    """
    play(load(bench, text), "f", sent)
    assert sent == {"a": [1], "b": {"c": []}}


@pytest.mark.parametrize(
    ("definition", "fault"),
    [
        ("def f(a: 'Nothing'): ...", "the type hint of a cannot be read: name 'Nothing' is"),
        ("def f(a: 3): ...", ""),
        ("class Own: ...\ndef f(a: Own): ...", f"a has the type Own, {UNFIT} (Unable"),
        ("def f(a: type): ...", f"a has the type type, {UNFIT} (Cannot"),
        ("def f(a, /): ...", "a cannot be given by name: remove the / after it"),
        ("f = iter", "its parameters cannot be read: no signature found"),
    ],
)  # fmt: skip
def test_parameter_without_a_schema_is_a_package_error(bench, definition, fault):
    (finding,) = bench.refused(f"{IMPORTS}\n{definition}", "f").findings
    assert finding.code == "LINK002"
    assert finding.message.startswith(f"models cannot call f: {fault}")
    assert finding.place.file == "tools/main.py"


def test_all_faults_of_a_signature_are_named_with_their_line(bench):
    text = "class Own: ...\n\ndef f(a: Own, b: Own, c: int): ...\n"
    findings = bench.refused(text, "f").findings
    assert [str(finding.place) for finding in findings] == ["tools/main.py:3"] * 2
    assert [" a has" in findings[0].message, " b has" in findings[1].message] == [True, True]
    assert "weft_packages" not in findings[0].message


def test_a_wrapped_function_is_read_as_the_one_inside(bench):
    text = """
        from functools import partial, wraps
        def twice(function):
            @wraps(function)
            def inner(*args, **kwargs):
                return function(*args, **kwargs) * 2
            return inner

        @twice
        def f(a: "Size") -> int:
            '''Double.'''
            return a.width

        def add(a: int, b: int) -> int:
            return a + b

        g = partial(add, b=5)

        class Caller:
            def __call__(self, a: int) -> int:
                return -a

        h = Caller()
    """
    tools = bench.load(f"{IMPORTS}\n{dedent(text)}", "f", "g", "h")
    assert tools.schema("f").description == "Double."
    assert play(tools, "f", {"a": {"width": 4}}) == 8
    assert play(tools, "g", {"a": 4}) == 9
    assert play(tools, "h", {"a": 4}) == -4


def test_reading_leaves_injected_parameters_to_the_caller():
    def f(a: int, context_variables): ...

    found = signature(f)
    assert found.injected == ("context_variables",)
    assert found.read({"a": "3"}) == {"a": 3}
    with pytest.raises(RetryModel, match="context_variables is unknown"):
        found.read({"a": 3, "context_variables": context().to_dict()})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), json_values))
def test_arguments_that_fit_the_schema_are_accepted(arguments):
    def f(a: list[int], b: dict[str, str] | None = None, c: float = 0.5) -> None: ...

    found = signature(f)
    fits = jsonschema.Draft202012Validator(found.schema.parameters).is_valid(arguments)
    try:
        read = found.read(arguments)
    except RetryModel:
        assert not fits
    else:
        assert set(read) == set(arguments)
        if fits:
            assert read == arguments
