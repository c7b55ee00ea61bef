"""Forms: what a UI tool shows and what it takes for an answer, as its schemas say."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from weft.findings import Json
from weft.spec.part import JsonMap
from weft.spec.tools import UiTool
from weft.spec.workflow import WorkflowSpec

#: Says what does not fit, or None.
Fault: TypeAlias = Callable[[Json], str | None]

#: Where in a value something does not fit, and what.
Misfit: TypeAlias = tuple[tuple[str | int, ...], str]
Misfits: TypeAlias = Callable[[Json], Iterator[Misfit]]


@dataclass(frozen=True, slots=True)
class Form:
    """What may be shown and answered."""

    payload_fault: Fault
    answer_misfits: Misfits
    #: The schema a form can be made from.
    answer_schema: JsonMap | None

    def answer_fault(self, answer: Json) -> str | None:
        """Say what does not fit in an answer."""
        return _first(self.answer_misfits(answer))

    def field_fault(self, name: str, value: Json) -> str | None:
        """Say what does not fit in one field of an answer, whatever the others are."""
        found = self.answer_misfits({name: value})
        return _first((place[1:], said) for place, said in found if place[:1] == (name,))


def make_forms(spec: WorkflowSpec) -> Mapping[str, Form]:
    """Return the form of every UI tool of a workflow, by the name of its function."""
    return {
        tool.function: Form(
            partial(_payload_fault, _misfits(tool.payload_schema)),
            _misfits(tool.response_schema, formats=True),
            tool.response_schema,
        )
        for tool in spec.tools
        if isinstance(tool, UiTool)
    }


def _misfits(schema: JsonMap | None, *, formats: bool = False) -> Misfits:
    """Return what looks for misfits; `formats` are what a person is asked to write, as a date."""
    if schema is None:
        return _none
    # Few packages have schemas, and the library takes a while to load.
    from jsonschema.validators import Draft202012Validator  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    # A registry of our own: nothing a schema refers to is ever fetched from anywhere.
    validator: Any = Draft202012Validator(
        schema,
        registry=Registry(),
        format_checker=Draft202012Validator.FORMAT_CHECKER if formats else None,
    )

    def find(value: Json) -> Iterator[Misfit]:
        try:
            for error in validator.iter_errors(value):
                yield tuple(error.absolute_path), str(error.message)
        except Unresolvable as missing:
            yield (), f"its schema refers to {missing.ref}, which is not in it"

    return find


def _payload_fault(misfits: Misfits, payload: Json) -> str | None:
    return _first(misfits(payload))


def _first(misfits: Iterator[Misfit]) -> str | None:
    """Say the first of what does not fit, with its place."""
    for place, said in misfits:
        return f"{'.'.join(str(it) for it in place)}: {said}" if place else said
    return None


def _none(_value: Json) -> Iterator[Misfit]:
    yield from ()
