"""Random models of the type language, recursive ones too, as JSON Schemas."""

import json
from typing import Any

from hypothesis import strategies as st

from weft.spec.type_meaning import json_schema
from weft.spec.types import DictOf, ListOf, LiteralOf, OptionalOf, Ref, Scalar, TypeExpr, UnionOf

_SCALARS = st.sampled_from(["str", "int", "float", "bool", "any"]).map(Scalar)
_LITERALS = st.lists(
    st.text(max_size=5) | st.integers(-3, 3) | st.booleans(),
    min_size=1,
    max_size=4,
    unique_by=json.dumps,
).map(lambda values: LiteralOf(tuple(values)))


def _types(number: int, count: int) -> st.SearchStrategy[TypeExpr]:
    """Draw types of a field; a model refers to earlier ones only where a value can do without."""
    later = [Ref(f"M{at}") for at in range(number + 1, count)]
    anyone = st.sampled_from([Ref(f"M{at}") for at in range(count)])
    loose = st.one_of(
        anyone.map(ListOf),
        anyone.map(DictOf),
        anyone.map(OptionalOf),
        anyone.map(lambda ref: UnionOf((ref, Scalar("int")))),
    )
    plain = st.one_of(_SCALARS, _LITERALS, loose, *([st.sampled_from(later)] if later else []))
    return st.recursive(
        plain,
        lambda inner: st.one_of(
            inner.map(ListOf),
            inner.map(DictOf),
            inner.map(lambda item: item if isinstance(item, OptionalOf) else OptionalOf(item)),
            st.tuples(inner, inner).map(UnionOf),
        ),
        max_leaves=4,
    )


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the schema of a model among up to three."""
    count = draw(st.integers(1, 3))
    names = st.sampled_from(["title", "count", "items", "note", "kind"])
    models = {
        f"M{at}": draw(st.dictionaries(names, _types(at, count), max_size=4)) for at in range(count)
    }
    return json_schema(Ref("M0"), models)
