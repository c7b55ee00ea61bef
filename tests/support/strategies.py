"""Hypothesis strategies that follow the models by reflection: a new field is drawn at once."""

import types
from collections.abc import Mapping
from datetime import timedelta, timezone
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, MinLen
from hypothesis import strategies as st
from pydantic import AwareDatetime, JsonValue, StringConstraints, ValidationError
from pydantic.fields import FieldInfo

from weft.ids import slug
from weft.spec.orchestrator import Orchestrator
from weft.spec.part import Part
from weft.spec.type_parser import parse_type
from weft.spec.workflow import WorkflowSpec

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
)
#: Older words for the user and the end; an agent of such a name would be read as one of these.
OLDER_TARGETS = {"reverttouser", "reverttousertarget", "terminatetarget", "end"}

JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)
TYPES = st.sampled_from(
    [
        parse_type(text)
        for text in (
            "str",
            "int",
            "float",
            "bool",
            "any",
            "list[str]",
            "dict[int]",
            "optional[bool]",
            'literal["a", "b", 3, true]',
            "str | int",
            "Invoice",
            "optional[list[Invoice | str]]",
        )
    ]
)
#: A time is written with minutes in its zone, as everywhere.
TIMES = st.datetimes(
    timezones=st.integers(-1439, 1439).map(lambda item: timezone(timedelta(minutes=item)))
)


def parts(model: type[Part]) -> st.SearchStrategy[Any]:
    """Draw instances of a declared model, every field at times set and at times left out."""
    model.model_rebuild()  # One that may contain itself knows its fields only then.
    required = {n: _field(f) for n, f in model.model_fields.items() if f.is_required()}
    optional = {n: _field(f) for n, f in model.model_fields.items() if not f.is_required()}
    return st.fixed_dictionaries(required, optional=optional).map(
        lambda item: _fitting(model, item)
    )


#: A value for the first of several keys of which one is required.
NEEDED = {
    "by": "id", "size": 2, "every_seconds": 60.0, "query": "a", "tokens": 1, "command": ("a",),
    "search_by": "id",
}  # fmt: skip


def _fitting(model: type[Part], values: dict[str, Any]) -> Part:
    """Make a part of drawn values; of keys that exclude or require each other, some are changed."""
    try:
        return model(**values)
    except ValidationError as error:
        (first, *_) = error.errors()
        if first["type"] == "url_path":
            key = str(first["loc"][0])
        else:
            assert first["type"] == "keys", first
            key = first["ctx"]["key"]
        if key:
            return _fitting(model, {name: value for name, value in values.items() if name != key})
        needed = first["msg"].split('"')[1]
        return _fitting(model, {**values, needed: NEEDED[needed]})


def specs(*fields: str) -> st.SearchStrategy[WorkflowSpec]:
    """Draw workflows with only these fields filled (all of them if none is named).

    They are well formed, not necessarily sensible.
    """
    chosen = fields or tuple(WorkflowSpec.model_fields)
    drawn = {name: _field(WorkflowSpec.model_fields[name]) for name in chosen}
    small = st.just(Orchestrator(workflow_name="W", initial_agent="A"))
    return st.fixed_dictionaries({"orchestrator": small, **drawn}).map(
        lambda values: WorkflowSpec(**values)
    )


def _field(field: FieldInfo) -> st.SearchStrategy[Any]:
    return _of(field.annotation, field.metadata)


def _of(annotation: Any, metadata: list[Any]) -> st.SearchStrategy[Any]:  # noqa: PLR0911
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        own = [m for argument in arguments[1:] for m in getattr(argument, "metadata", [argument])]
        return _of(arguments[0], [*own, *metadata])
    if annotation is JsonValue:
        return JSON
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in {Union, types.UnionType}:
        if _is_type_expression(arguments):
            return TYPES
        return st.one_of(*[_of(member, metadata) for member in arguments])
    if origin is tuple:
        least = max((m.min_length for m in metadata if isinstance(m, MinLen)), default=0)
        return st.lists(_of(arguments[0], []), min_size=least, max_size=max(2, least)).map(tuple)
    if origin is dict:
        return st.dictionaries(_of(arguments[0], []), _of(arguments[1], []), max_size=2)
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return st.deferred(lambda: parts(annotation))
    return _scalar(annotation, metadata)


def _is_type_expression(arguments: tuple[Any, ...]) -> bool:
    return any(getattr(member, "__name__", "") == "LiteralOf" for member in arguments)


def _scalar(annotation: Any, metadata: list[Any]) -> st.SearchStrategy[Any]:
    low = max((m.ge for m in metadata if isinstance(m, Ge)), default=None)
    above = max((m.gt for m in metadata if isinstance(m, Gt)), default=None)
    high = min((m.le for m in metadata if isinstance(m, Le)), default=None)
    scalars: Mapping[Any, st.SearchStrategy[Any]] = {
        type(None): st.none(),
        bool: st.booleans(),
        int: st.integers(low if low is not None else -1000, high if high is not None else 10**6),
        float: st.floats(
            low if low is not None else above if above is not None else -1e9,
            high if high is not None else 1e9,
            exclude_min=low is None and above is not None,
            allow_nan=False,
        ),
        str: _text(metadata),
        AwareDatetime: TIMES,
    }
    return scalars[annotation]


def _text(metadata: list[Any]) -> st.SearchStrategy[str]:
    found = [m for m in metadata if isinstance(m, StringConstraints)]
    rules = next((m for m in found if m.pattern), found[0] if found else StringConstraints())
    if rules.pattern is not None:
        return st.from_regex(str(rules.pattern).replace("$", r"\Z"), fullmatch=True).filter(
            lambda text: len(text) < 100
        )
    return TEXT.filter(
        lambda text: len(text) >= (rules.min_length or 0) and slug(text) not in OLDER_TARGETS
    )
