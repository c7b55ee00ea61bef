"""Types as a whole: printing and reading are inverse, and values, types and schemas agree."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from support.effort import TIMES
from weft.spec.type_field import read_type
from weft.spec.type_meaning import finite_values, json_schema, references, validation_error
from weft.spec.type_parser import parse_type
from weft.spec.types import (
    ANY,
    DictOf,
    ListOf,
    LiteralOf,
    OptionalOf,
    Ref,
    Scalar,
    UnionOf,
    is_model_name,
    print_type,
)

MODELS = {
    "Item": {"name": Scalar("str"), "count": OptionalOf(Scalar("int"))},
    "Tree": {"value": ANY, "children": ListOf(Ref("Tree"))},
    "Pair": {"left": UnionOf((Ref("Item"), Scalar("int"))), "right": OptionalOf(Ref("Pair"))},
}
# Time is no part of what is tested here, and other work may run beside the tests.
untimed = settings(deadline=None)

NAMES = st.sampled_from(sorted(MODELS))
SCALARS = st.sampled_from(["str", "int", "float", "bool", "any"]).map(Scalar)
LITERAL_VALUES = st.text(max_size=5) | st.integers(-3, 3) | st.booleans()
LITERALS = st.lists(LITERAL_VALUES, min_size=1, max_size=4, unique_by=json.dumps).map(
    lambda values: LiteralOf(tuple(values))
)


def union_of(members):
    """Build a union as the parser does: flat, without null inside and without repetition."""
    plain = [member.of if isinstance(member, OptionalOf) else member for member in members]
    flat = [part for one in plain for part in (one.members if isinstance(one, UnionOf) else (one,))]
    distinct = tuple(dict.fromkeys(flat))
    return distinct[0] if len(distinct) == 1 else UnionOf(distinct)


def optional_of(inner):
    return inner if isinstance(inner, OptionalOf) else OptionalOf(inner)


def types(refs):
    return st.recursive(
        SCALARS | LITERALS | refs.map(Ref),
        lambda inner: st.one_of(
            inner.map(ListOf),
            inner.map(DictOf),
            inner.map(optional_of),
            st.lists(inner, min_size=2, max_size=3).map(union_of),
        ),
        max_leaves=6,
    )


ANY_NAMES = st.from_regex(r"[A-Z][A-Za-z0-9]{0,8}", fullmatch=True).filter(is_model_name)
KEYS = st.sampled_from(["name", "count", "value", "children", "left", "right", "other"])
NUMBERS = st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.sampled_from([1.0, 0.0]) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def values_of(type_, depth=0):
    """Generate values that fit a type; recursion through models ends after a few levels."""
    match type_:
        case Scalar(name):
            return {
                "str": st.text(max_size=5),
                "int": st.integers(),
                "float": NUMBERS,
                "bool": st.booleans(),
                "any": JSON_VALUES,
            }[name]
        case LiteralOf(values):
            return st.sampled_from(values)
        case ListOf(of):
            return st.lists(values_of(of, depth), max_size=0 if depth > 2 else 2)
        case DictOf(of):
            return st.dictionaries(st.text(max_size=3), values_of(of, depth), max_size=2)
        case OptionalOf(of):
            return st.none() if depth > 2 else st.none() | values_of(of, depth)
        case UnionOf(members):
            return st.one_of([values_of(member, depth) for member in members])
        case Ref(name):
            return st.deferred(lambda: model_values(MODELS[name], depth + 1))


def model_values(fields, depth):
    required = {name: of for name, of in fields.items() if not isinstance(of, OptionalOf)}
    optional = {name: of for name, of in fields.items() if name not in required}
    return st.fixed_dictionaries(
        {name: values_of(of, depth) for name, of in required.items()},
        optional={name: values_of(of, depth) for name, of in optional.items()},
    )


def schema_accepts(type_, value):
    schema = json_schema(type_, MODELS)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema).is_valid(value)


@untimed
@given(types(ANY_NAMES))
def test_printing_and_reading_are_inverse(type_):
    written = print_type(type_)
    assert parse_type(written) == type_
    assert print_type(parse_type(written)) == written
    assert hash(parse_type(written)) == hash(type_)


@untimed
@given(types(ANY_NAMES))
def test_a_type_holding_optional_anywhere_in_a_union_settles_outside(type_):
    joined = parse_type(f"{print_type(type_)} | null")
    assert joined == optional_of(type_)


@untimed
@given(types(ANY_NAMES), types(ANY_NAMES))
def test_equal_text_means_equal_type(one, other):
    assert (print_type(one) == print_type(other)) == (one == other)


def object_form(type_):
    """Write a type as older packages do."""
    match type_:
        case ListOf(of):
            return {"type": "list", "items": object_form(of)}
        case DictOf(of):
            return {"type": "dict", "values": object_form(of)}
        case OptionalOf(of):
            return {"type": "optional", "of": object_form(of)}
        case LiteralOf(values):
            return {"type": "literal", "values": list(values)}
        case UnionOf(members):
            return {"type": "union", "variants": [object_form(member) for member in members]}
        case _:
            return {"type": print_type(type_)}


@untimed
@given(types(ANY_NAMES))
def test_object_forms_read_to_the_same_type(type_):
    assert read_type(object_form(type_)) == type_


@untimed
@given(st.data(), types(NAMES))
def test_values_generated_from_a_type_fit_it_and_its_schema(data, type_):
    value = data.draw(values_of(type_))
    assert validation_error(type_, value, MODELS) is None
    assert schema_accepts(type_, value)


@settings(untimed, max_examples=100 * TIMES)
@given(types(NAMES), JSON_VALUES)
def test_any_value_fits_the_type_exactly_when_it_fits_the_schema(type_, value):
    assert (validation_error(type_, value, MODELS) is None) == schema_accepts(type_, value)


@untimed
@given(st.data(), types(NAMES), JSON_VALUES)
def test_a_value_damaged_somewhere_is_judged_alike(data, type_, damage):
    value = data.draw(values_of(type_))
    if isinstance(value, list) and value:
        value = [*value[:-1], damage]
    elif isinstance(value, dict):
        key = data.draw(st.sampled_from(sorted({*value, "name", "other"})))
        value = {**value, key: damage}
    assert (validation_error(type_, value, MODELS) is None) == schema_accepts(type_, value)


@untimed
@given(types(NAMES))
def test_finite_values_are_distinct_and_fit(type_):
    values = finite_values(type_, limit=50)
    if values is not None:
        assert len({json.dumps(value) for value in values}) == len(values)
        assert all(validation_error(type_, value, MODELS) is None for value in values)


@untimed
@given(st.data(), st.recursive(LITERALS | st.just(Scalar("bool")), lambda i: i.map(optional_of)))
def test_finite_values_are_complete(data, type_):
    value = data.draw(values_of(type_))
    assert json.dumps(value) in [json.dumps(listed) for listed in finite_values(type_)]


@untimed
@given(types(NAMES))
def test_references_are_exactly_the_names_in_the_schema(type_):
    body = {key: part for key, part in json_schema(type_, MODELS).items() if key != "$defs"}
    assert {f"#/$defs/{name}" for name in references(type_)} == set(schema_refs(body))


def schema_refs(node):
    if isinstance(node, dict):
        yield from (part for key, part in node.items() if key == "$ref")
        yield from (ref for part in node.values() for ref in schema_refs(part))
    elif isinstance(node, list):
        yield from (ref for part in node for ref in schema_refs(part))
