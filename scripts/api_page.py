"""Writes the generated part of docs/api.md: every route and type of the HTTP API.

    python scripts/api_page.py

What stands above the marker is written by hand.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import fill
from typing import Any, Final

from weft.server.app import openapi_document

PAGE: Final = Path(__file__).parents[1] / "docs" / "api.md"
MARKER: Final = (
    "<!-- Below this line, `make generate` writes the page from the OpenAPI document. -->"
)

_WIDTH: Final = 118

Schema = Mapping[str, Any]


def with_routes(text: str) -> str:
    """Return the page with its generated part as it is now."""
    document = openapi_document()
    parts = [text.partition(MARKER)[0] + MARKER, *_groups(document), *_types(document)]
    return "\n".join(parts) + "\n"


def _groups(document: Schema) -> Iterator[str]:
    groups: dict[str, list[tuple[str, str, Schema]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            entry = (path, method.upper(), operation)
            groups.setdefault(operation["tags"][0], []).append(entry)
    for tag, entries in sorted(groups.items()):
        yield f"\n## {tag.capitalize()}"
        for path, method, operation in entries:
            yield from _operation(path, method, operation)


def _operation(path: str, method: str, operation: Schema) -> Iterator[str]:
    yield f"\n### {method} {path}\n"
    yield from operation["description"].splitlines()
    parameters = [
        f"{_field(each['name'], each)} ({each['in']})" for each in operation.get("parameters", ())
    ]
    body = _contents(operation.get("requestBody", {}))
    answers = [
        f"{status} {_contents(answer)}".rstrip()
        for status, answer in operation["responses"].items()
        if status.startswith("2")
    ]
    yield f"\n- Roles: {', '.join(operation['x-weft-roles'])}"
    if parameters:
        yield _wrapped(f"- Parameters: {', '.join(parameters)}")
    if body:
        yield f"- Body: {body}"
    yield f"- Answer: {', or '.join(answers)}"


def _contents(part: Schema) -> str:
    """Return the types of a body or an answer; those that are not JSON with their media type."""
    return " or ".join(
        _type(content.get("schema", {})) if media == "application/json" else f"`{media}`"
        for media, content in part.get("content", {}).items()
    )


def _types(document: Schema) -> Iterator[str]:
    yield "\n## Types"
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield f"\n### {name}\n"
        if "description" in schema:
            yield from [*schema["description"].splitlines(), ""]
        required = schema.get("required", ())
        fields = [
            _field(field, {"schema": part, "required": field in required})
            for field, part in schema.get("properties", {}).items()
        ]
        yield _wrapped(", ".join(fields)) if fields else "any JSON"


def _wrapped(text: str) -> str:
    return fill(
        text, _WIDTH, subsequent_indent="  " if text[0] == "-" else "", break_on_hyphens=False
    )


def _field(name: str, part: Schema) -> str:
    """Return a name with its type; a question mark says that it can be left out."""
    return f"`{name}{'' if part.get('required') else '?'}` {_type(part['schema'])}"


def _type(schema: Schema) -> str:
    """Return the name of a type, with a link if it has a section."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(map(_type, schema[key]))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return str(schema.get("type", "any"))


def main() -> None:
    """Write the page."""
    PAGE.write_text(with_routes(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
