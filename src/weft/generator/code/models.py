"""Classes for what a model is asked to work out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from weft.generator.code.python_text import Piece, doc_text, hint, string, type_of, typing_imports
from weft.generator.names import pascal_case, unique
from weft.generator.shapes import FieldShape
from weft.spec.type_field import OutputModel
from weft.spec.type_meaning import references
from weft.spec.types import OptionalOf, print_type

#: What the file of a tool has imported: a model of such a name stays an object.
_TAKEN: Final = frozenset({"Any", "BaseModel", "Context", "Field", "Literal"})


@dataclass(frozen=True, slots=True)
class _Class:
    name: str
    about: str
    fields: Sequence[FieldShape]
    #: The classes that stand above it.
    above: Sequence[str]

    @property
    def text(self) -> str:
        lines = (f"    {_own_name(it)}: {self._type(it)} = {_field(it)}" for it in self.fields)
        doc = f'    """{doc_text(self.about, self.name)}"""'
        return "\n".join([f"class {self.name}(BaseModel):", doc, "", *lines])

    def _type(self, shape: FieldShape) -> str:
        return hint(type_of(shape), self.above)


def result_class(
    tool: str, fields: Sequence[FieldShape], models: Mapping[str, OutputModel]
) -> tuple[str, Piece]:
    """Return the name of the class of a result, and the class with those it refers to."""
    used = list(dict.fromkeys(_used(fields, models, ())))
    name = unique(f"{pascal_case(tool, 'Tool')}Result", {*models, *_TAKEN})
    classes = [
        *(
            _Class(it, models[it].description, _fields_of(models[it]), used[:at])
            for at, it in enumerate(used)
        ),
        _Class(name, f"What {tool} works out.", fields, used),
    ]
    typing = (typing_imports(it.fields, it.above) for it in classes)
    own = {("pydantic", "BaseModel"), ("pydantic", "Field")}
    text = "\n\n\n".join(it.text for it in classes)
    return name, Piece(text, frozenset(own).union(*typing))


def _used(
    fields: Sequence[FieldShape], models: Mapping[str, OutputModel], above: tuple[str, ...]
) -> Iterator[str]:
    """Yield the models that fields refer to, each after those it refers to itself."""
    named = (name for field in fields for name in references(type_of(field)))
    for name in named:
        # What refers to itself stays an object there.
        if name in models and name not in above and name not in _TAKEN:
            yield from _used(_fields_of(models[name]), models, (*above, name))
            yield name


def _fields_of(model: OutputModel) -> list[FieldShape]:
    return [FieldShape(it, print_type(of.type), of.description) for it, of in model.fields.items()]


def _own_name(shape: FieldShape) -> str:
    """Return the name of an attribute: some names belong to every model."""
    return f"{shape.name}_" if hasattr(BaseModel, shape.name) else shape.name


def _field(shape: FieldShape) -> str:
    told = " ".join(shape.description.split()) or shape.name.replace("_", " ")
    optional = isinstance(type_of(shape), OptionalOf)
    settings = (
        *(("default=None",) if optional else ()),
        *((f"alias={string(shape.name)}",) if _own_name(shape) != shape.name else ()),
        f"description={string(told)}",
    )
    return f"Field({', '.join(settings)})"
