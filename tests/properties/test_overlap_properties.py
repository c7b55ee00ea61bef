"""Two conditions that are called exclusive never hold together, whatever the values are."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from weft.check.rules.handoffs import domain, hold_together
from weft.engine.variables.conditions import decide
from weft.errors import ExpressionError
from weft.spec.conditions import And, Compare, ListOf, Name, Not, Or, Value
from weft.spec.type_meaning import validation_error
from weft.spec.type_parser import parse_type
from weft.spec.variables import Variable

TYPES = (
    "int",
    "float",
    "str",
    "bool",
    "any",
    "optional[int]",
    'literal["a", 1, true]',
    "list[int]",
)

numbers = st.integers(-4, 4) | st.sampled_from([0.5, -1.5, 1e300, 10**30])
texts = st.sampled_from(["", "a", "ab", "b", "a\0"])
scalars = st.none() | st.booleans() | numbers | texts
literals = st.builds(Value, scalars)
x = st.sampled_from([Name("x"), Name("x"), Name("y")])
operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
tests = st.one_of(
    x,
    st.builds(Compare, operators, x, literals),
    st.builds(Compare, operators, literals, x),
    st.builds(
        Compare,
        st.sampled_from(["in", "not in"]),
        x,
        st.builds(ListOf, st.lists(literals, max_size=3).map(tuple)),
    ),
    st.builds(Compare, st.sampled_from(["in", "not in", "=="]), x, x),
    st.builds(Compare, st.just("in"), literals, x),
)
conditions = st.recursive(
    tests,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.tuples(inner, inner)),
        st.builds(Or, st.tuples(inner, inner)),
    ),
    max_leaves=4,
)
values = (
    scalars
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3)
    | st.lists(st.integers(-2, 2), max_size=2)
)


def variable(type_):
    return Variable.model_validate({"type": type_, "source": {"type": "static", "value": None}})


def holds(condition, valuation):
    try:
        return decide(condition, valuation) is True
    except ExpressionError:
        return False


@settings(deadline=None)
@given(conditions, conditions, st.sampled_from(TYPES), st.sampled_from(TYPES), values, values)
@example(
    Compare("<", Name("x"), Value(1e300)), Compare(">", Name("x"), Value(1)), "float", "int", 2.0, 0
)
@example(Name("x"), Compare("<", Name("x"), Value("a")), "str", "int", "0", 0)
@example(Name("x"), Compare("<", Name("x"), Value(0.5)), "float", "int", 0.25, 0)
@example(
    Or((Name("x"), Compare("in", Name("y"), Name("y")))),
    Or((Name("y"), Compare("<", Name("x"), Value(False)))),
    "int",
    "any",
    1,
    True,
)
def test_exclusive_conditions_never_hold_together(left, right, x_type, y_type, x_value, y_value):
    variables = {"x": variable(x_type), "y": variable(y_type)}
    chosen = domain(left, right, variables)
    exclusive = not hold_together(left, right, chosen)
    fits = (
        validation_error(parse_type(x_type), x_value, {}) is None
        and validation_error(parse_type(y_type), y_value, {}) is None
    )
    valuation = {"x": x_value, "y": y_value}
    if exclusive and fits:
        assert not (holds(left, valuation) and holds(right, valuation))


@settings(deadline=None)
@given(conditions)
def test_a_condition_and_its_opposite_exclude_each_other_where_all_is_known(condition):
    variables = {"x": variable("bool"), "y": variable('literal["a", 1]')}
    opposite = Not(condition)
    assert not hold_together(condition, opposite, domain(condition, opposite, variables))
