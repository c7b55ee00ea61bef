"""Made-up values for a JSON Schema: valid, plain and reproducible."""

import math
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final, TypeAlias

from weft.adapters.models.provider_errors import as_items, as_object
from weft.engine.variables.conditions import same
from weft.engine.variables.patterns import example_of
from weft.engine.variables.triggers import dig
from weft.errors import ModelError
from weft.findings import Json
from weft.spec.triggers import Contains, Equals, Exact, Match, Regex

#: The probability of a long text, and its suffix: tools may depend on the length.
_LONG: Final = 0.5
_MORE: Final = (
    ": a longer text of the kind that people and models write when there is more to say. "
    "It names nothing in particular, goes on for a second sentence, and then it ends."
)

_FORMATS: Final = {
    "date": "2025-01-15",
    "date-time": "2025-01-15T09:30:00Z",
    "time": "09:30:00Z",
    "duration": "PT15M",
    "email": "sample@example.com",
    "hostname": "sample.example.com",
    "idn-email": "sample@example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/sample",
    "url": "https://example.com/sample",
    "uuid": "00000000-0000-4000-8000-000000000001",
}


def sample_text(schema: Mapping[str, Any], name: str, random: Random) -> str:
    """Return a valid text for a schema that says that it is a sample, and of what."""
    known = _FORMATS.get(schema.get("format", ""))
    if known is not None:
        return known
    if "pattern" in schema:
        return _patterned(schema, name)
    long = random.random() < _LONG
    text = _said(name) + (_MORE if long else "")
    return text.ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]


def is_free_text(value: Json, name: str) -> bool:
    """Whether a value is made-up text that any other text could replace."""
    return value in (_said(name), _said(name) + _MORE)


def _said(name: str) -> str:
    return f"[sample] {name}"


def _patterned(schema: Mapping[str, Any], name: str) -> str:
    """Return a text that matches a pattern: an example of the author, or a generated one."""
    given = [*schema.get("examples", ()), schema.get("default")]
    text = next((value for value in given if isinstance(value, str)), None)
    if text is None:
        text = matching_text(Regex(regex=schema["pattern"]))
    return _said(name) if text is None else text


def matching_text(match: Match) -> str | None:
    """Return a text that meets a match; None if no example of the pattern is found."""
    match match:
        case Equals(equals=text) | Exact(exact=text):
            return text
        case Contains(contains=text):
            # Long enough for the kind of the text.
            return f"[sample] {text}"
        case _:
            return example_of(match.regex)


#: From this depth on, values are as flat as possible.
_DEEP: Final = 3

#: The most optional items and keys of a value.
_EXTRA: Final = 2

#: The most attempts to make an item different from the others.
_DRAWS: Final = 20

_Schema = Mapping[str, Any]

#: Values by path in arguments, a reply or an answer.
Places: TypeAlias = tuple[tuple[tuple[str, ...], Json], ...]


def sample_value(schema: _Schema, random: Random) -> Json:
    """Return a valid value for a schema; raises ModelError if every value is infinite."""
    maker = _Maker(schema, random)
    if maker.height(schema) == math.inf:
        raise ModelError("no sample value exists: the type refers to itself without end")
    return maker.value(schema, "value", 0)


class _Maker:
    """Makes values of one schema. `height` is the depth of the flattest value of a schema."""

    def __init__(self, root: _Schema, random: Random) -> None:
        self._random = random
        self._makers: dict[str, Callable[[_Schema, str, int], Json]] = {
            "object": self._object,
            "array": self._array,
            "string": self._text,
            "integer": self._integer,
            "number": self._number,
            "boolean": self._truth,
        }
        self._models: dict[str, _Schema] = {
            f"#/{place}/{name}": model
            for place in ("$defs", "definitions")
            for name, model in root.get(place, {}).items()
        }
        self._models["#"] = root
        self._heights = dict.fromkeys(self._models, math.inf)
        # Every round settles at least one model, unless the rest have no finite value.
        for _ in self._models:
            for name, model in self._models.items():
                self._heights[name] = self.height(model)

    def height(self, schema: _Schema) -> float:
        """Return the depth of the flattest value."""
        inner = [self._heights.get(schema["$ref"], 0.0)] if "$ref" in schema else []
        inner += [self.height(part) for part in schema.get("allOf", ())]
        for choice in _choices(schema):
            inner.append(min(self.height(part) for part in choice))
        wanted = schema.get("required", ())
        properties: dict[str, _Schema] = schema.get("properties", {})
        inner += [1 + self.height(properties[name]) for name in wanted if name in properties]
        inner += [1 + self.height(part) for part in schema.get("prefixItems", ())]
        if schema.get("minItems", 0) > len(schema.get("prefixItems", ())):
            inner.append(1 + self.height(schema.get("items", {})))
        return max(inner, default=0.0)

    def value(self, schema: _Schema, name: str, depth: int) -> Json:
        """Return a value; `name` is its place, which texts mention."""
        schema = self._merged(schema)
        while choices := _choices(schema):
            rest = {key: part for key, part in schema.items() if key not in ("anyOf", "oneOf")}
            # A schema with both kinds of choice is not supported: the first decides.
            schema = self._merged({**rest, **self._one(choices[0], depth)})
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        type_ = schema.get("type", _implied_type(schema))
        types = as_items(type_) or [type_]
        make = self._makers.get(self._random.choice(types))
        return None if make is None else make(schema, name, depth)

    def _merged(self, schema: _Schema) -> _Schema:
        """Replace a reference by the schema it names."""
        while "$ref" in schema or "allOf" in schema:
            rest = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
            target = self._models.get(schema.get("$ref", ""), {})
            parts = (self._merged(part) for part in schema.get("allOf", ()))
            schema = _union([target, *parts, rest])
        return schema

    def _one(self, choice: list[_Schema], depth: int) -> _Schema:
        """Choose a schema; the flattest at great depth, and never an infinite one."""
        heights = [self.height(part) for part in choice]
        most = min(heights) if depth >= _DEEP else math.inf
        fit = [option for option, height in zip(choice, heights, strict=True) if height <= most]
        ending = [option for option in fit if self.height(option) < math.inf]
        return self._random.choice(ending)

    def _object(self, schema: _Schema, _name: str, depth: int) -> dict[str, Json]:
        properties: dict[str, _Schema] = schema.get("properties", {})
        required = set(schema.get("required", ()))
        made: dict[str, Json] = {}
        for name, part in properties.items():
            # A constant distinguishes alternatives, so it is included even if it is optional.
            wanted = "const" in part or (depth < _DEEP and self._random.random() < 0.7)
            if name in required or (wanted and self.height(part) < math.inf):
                made[name] = self.value(part, name, depth + 1)
        others = as_object(schema.get("additionalProperties"))
        if others is not None and self.height(others) < math.inf:
            least = max(0, schema.get("minProperties", 0) - len(made))
            for number in range(1, self._length(least, schema.get("maxProperties"), depth) + 1):
                made[f"sample_{number}"] = self.value(others, f"sample_{number}", depth + 1)
        return made

    def _array(self, schema: _Schema, name: str, depth: int) -> list[Json]:
        first: list[_Schema] = schema.get("prefixItems", [])
        made = [self.value(part, name, depth + 1) for part in first]
        items = as_object(schema.get("items", {}))
        if items is None or self.height(items) == math.inf:
            return made
        least = max(0, schema.get("minItems", 0) - len(made))
        most = schema.get("maxItems")
        room = None if most is None else most - len(made)
        for _ in range(self._length(least, room, depth)):
            item = self.value(items, name, depth + 1)
            if schema.get("uniqueItems"):
                tries = (self.value(items, name, depth + 1) for _ in range(_DRAWS))
                item = next(
                    (candidate for candidate in (item, *tries) if candidate not in made), item
                )
                if item in made:
                    break
            made.append(item)
        return made

    def _text(self, schema: _Schema, name: str, _depth: int) -> str:
        return sample_text(schema, name, self._random)

    def _truth(self, _schema: _Schema, _name: str, _depth: int) -> bool:
        return self._random.random() < 0.5

    def _length(self, least: int, most: int | None, depth: int) -> int:
        extra = 0 if depth >= _DEEP else self._random.randint(0, _EXTRA)
        return least + extra if most is None else max(least, min(most, least + extra))

    def _integer(self, schema: _Schema, _name: str, _depth: int) -> int:
        low, high = _bounds(schema, step=1)
        factor = int(schema.get("multipleOf", 1))
        first, last = math.ceil(low / factor), math.floor(high / factor)
        return factor * self._random.randint(first, max(first, last))

    def _number(self, schema: _Schema, _name: str, _depth: int) -> float:
        factor = schema.get("multipleOf")
        if factor is not None:
            low, high = _bounds(schema, step=factor)
            first, last = math.ceil(low / factor), math.floor(high / factor)
            return factor * self._random.randint(first, max(first, last))
        low, high = _bounds(schema, step=0)
        inner = low + (high - low) * (0.25 + self._random.random() / 2)
        rounded = round(inner, 2)
        return rounded if low < rounded < high else inner


def _choices(schema: _Schema) -> list[list[_Schema]]:
    return [schema[key] for key in ("anyOf", "oneOf") if key in schema]


def _union(schemas: list[_Schema]) -> _Schema:
    """Merge schemas that apply together."""
    whole: dict[str, Any] = {}
    for schema in schemas:
        for key, value in schema.items():
            if key == "properties":
                whole[key] = {**whole.get(key, {}), **value}
            elif key == "required":
                whole[key] = [*whole.get(key, []), *value]
            else:
                whole[key] = value
    return whole


def _implied_type(schema: _Schema) -> str:
    """Return the type of a schema without one; text if any type is valid."""
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    return "string"


def _bounds(schema: _Schema, *, step: float) -> tuple[float, float]:
    """Return the least and the greatest value, both allowed if `step` is not 0."""
    low = schema.get("minimum", -math.inf)
    high = schema.get("maximum", math.inf)
    low = max(low, schema.get("exclusiveMinimum", -math.inf) + step)
    high = min(high, schema.get("exclusiveMaximum", math.inf) - step)
    if low == -math.inf:
        low = 0 if high >= 0 else high - 100
    return low, min(high, low + 100)


def put_at(value: dict[str, Json], places: Places) -> None:
    """Write values at their paths, replacing what is there."""
    for path, wanted in places:
        *above, last = path
        inner = value
        for key in above:
            below = as_object(inner.get(key))
            if below is None:
                below = inner[key] = {}
            inner = below
        inner[last] = wanted


def found_at(value: Json, places: Places) -> bool:
    """Whether all values are at their paths."""
    return as_object(value) is not None and all(
        same(dig(value, path), wanted) for path, wanted in places
    )


def allowed_at(schema: _Schema, places: Places) -> bool:
    """Whether a schema has the paths and allows these values."""
    return all(_allowed(schema, schema, path, wanted) for path, wanted in places)


def _allowed(
    root: Mapping[str, Any], node: Mapping[str, Any], path: tuple[str, ...], wanted: Json
) -> bool:
    node = _resolved(root, node)
    choices: list[Mapping[str, Any]] = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    if choices:
        return any(_allowed(root, choice, path, wanted) for choice in choices)
    if path:
        properties: Mapping[str, Any] | None = node.get("properties")
        if properties is None:
            return node.get("type", "object") == "object"
        key, *deeper = path
        return key in properties and _allowed(root, properties[key], tuple(deeper), wanted)
    if "const" in node:
        return same(node["const"], wanted)
    return "enum" not in node or any(same(value, wanted) for value in node["enum"])


def _resolved(root: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference to the model it names."""
    name = str(node.get("$ref", "")).rpartition("/")[2]
    models: Mapping[str, Any] = {**root.get("definitions", {}), **root.get("$defs", {})}
    return models.get(name, node)
