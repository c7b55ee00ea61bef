"""Properties of conditions: writing and reading agree, and so do the explorer and a run."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from weft.engine.variables.conditions import UNKNOWN, decide, evaluate, same
from weft.errors import ExpressionError
from weft.spec.condition_parser import mentions, parse_condition
from weft.spec.conditions import (
    And,
    Compare,
    Condition,
    ListOf,
    Name,
    Not,
    Or,
    Value,
    names,
    print_condition,
)

ORDERS = ["==", "!=", "<", "<=", ">", ">="]
NAMES = ["a", "b", "_c1", "And", "not", "when", "TRUE", "none"]

known_names = st.sampled_from(NAMES).map(Name)
any_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).map(Name) | known_names
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**100) + 1, 10**100 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.text(alphabet="'\"\\\n\t\x00\u2028\U000e0001n", max_size=12),
).map(Value)


def conditions(name: st.SearchStrategy[Name]) -> st.SearchStrategy[Condition]:
    operand = name | values
    lists = st.lists(values, max_size=4).map(lambda items: ListOf(tuple(items)))
    leaves = st.one_of(
        name,
        st.builds(Compare, st.sampled_from(ORDERS), operand, operand),
        st.builds(Compare, st.sampled_from(["in", "not in"]), operand, operand | lists),
    )

    def grown(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
        operands = st.lists(inner, min_size=2, max_size=4).map(tuple)
        return st.one_of(st.builds(And, operands), st.builds(Or, operands), st.builds(Not, inner))

    return st.recursive(leaves, grown, max_leaves=12)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 0.5, "", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=5,
)
assignments = st.fixed_dictionaries(dict.fromkeys(NAMES, json_values))


def answer(
    condition: Condition,
    assignment: dict[str, object],
    by: Callable[[Condition, dict[str, object]], bool | None] = evaluate,
) -> bool | str | None:
    try:
        return by(condition, assignment)
    except ExpressionError as error:
        return f"refused: {error}"


@given(conditions(any_names))
def test_printed_condition_parses_to_the_same_tree(condition: Condition):
    text = print_condition(condition)
    assert parse_condition(text) == condition
    assert print_condition(parse_condition(text)) == text


@given(conditions(any_names))
def test_every_pair_of_parentheses_is_needed(condition: Condition):
    text = print_condition(condition)
    for opening, closing in groups(text):
        without = text[:opening] + text[opening + 1 : closing] + text[closing + 1 :]
        assert parse_condition(without) != condition


def groups(text: str) -> list[tuple[int, int]]:
    """Find the pairs of parentheses outside quoted texts."""
    found: list[tuple[int, int]] = []
    opened: list[int] = []
    quote = ""
    escaped = False
    for place, char in enumerate(text):
        if quote:
            if char == quote and not escaped:
                quote = ""
            escaped = char == "\\" and not escaped
        elif char in "'\"":
            quote = char
        elif char == "(":
            opened.append(place)
        elif char == ")":
            found.append((opened.pop(), place))
    return found


@given(conditions(any_names))
def test_mentions_point_at_the_names(condition: Condition):
    text = print_condition(condition)
    found = mentions(text)
    assert tuple(dict.fromkeys(name for name, _ in found)) == names(condition)
    for name, offset in found:
        assert text[offset : offset + len(name)] == name


@given(conditions(known_names), assignments)
def test_decide_and_evaluate_agree_where_everything_is_known(
    condition: Condition, assignment: dict[str, object]
):
    assert answer(condition, assignment, by=decide) == answer(condition, assignment)


@given(conditions(known_names), assignments, st.sets(st.sampled_from(NAMES)))
def test_a_decision_holds_whatever_the_unknown_values_are(
    condition: Condition, assignment: dict[str, object], hidden: set[str]
):
    partial = {name: UNKNOWN if name in hidden else assignment[name] for name in NAMES}
    decided = answer(condition, partial, by=decide)
    actual = answer(condition, assignment)
    if decided is None:
        assert hidden & set(names(condition))
    elif isinstance(decided, bool) and isinstance(actual, bool):
        assert actual is decided


@given(conditions(known_names), assignments)
def test_printing_keeps_the_meaning(condition: Condition, assignment: dict[str, object]):
    reread = parse_condition(print_condition(condition))
    assert answer(reread, assignment) == answer(condition, assignment)


@given(json_values, json_values, json_values)
def test_equality_is_an_equivalence(a: object, b: object, c: object):
    assert same(a, a)
    assert same(a, b) is same(b, a)
    assert not (same(a, b) and same(b, c)) or same(a, c)
