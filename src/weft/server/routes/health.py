"""Whether the server is alive and ready, and the documentation of its API."""

import base64
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html import escape
from typing import Any, Final

from fastapi import Request
from fastapi.responses import HTMLResponse, Response

from weft.app.folders import LOCAL
from weft.errors import AccessDenied
from weft.server.identity import OPERATOR, PUBLIC, authorize
from weft.server.problems import NOT_FOUND
from weft.server.routing import Context, Routes, caller_of
from weft.server.settings import is_loopback

routes: Final = Routes("health")

#: The style of the page; its hash is in the policy of the page.
_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color-scheme: light dark; }
code, pre { font: 13px/1.5 ui-monospace, monospace; }
summary { cursor: pointer; padding: .3rem 0; }
summary b { display: inline-block; min-width: 4.5rem; }
section > h2 { border-bottom: 1px solid; padding-bottom: .2rem; }
table { border-collapse: collapse; } td { padding: .1rem .8rem .1rem 0; vertical-align: top; }
small { opacity: .75; } pre { overflow: auto; }
"""
_STYLE_HASH: Final = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
_POLICY: Final = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; frame-ancestors 'none'"


@routes.add("GET", "/healthz", roles=PUBLIC)
async def healthz() -> object:
    """Tell that the process runs."""


@routes.add("GET", "/readyz", roles=PUBLIC)
async def readyz(context: Context) -> object:
    """Tell that runs can be started: the store can write, and the server is not stopping."""
    await context.require_ready()


@routes.add("GET", "/metrics", roles=PUBLIC, answer=str, media="text/plain")
async def metrics(request: Request, context: Context) -> Response:
    """Return metrics for Prometheus: to operators of `local`, and to programs on this machine."""
    if not _is_from_this_machine(request):
        caller = authorize(await caller_of(request), OPERATOR)
        if caller.app != LOCAL.app:  # They tell of all tenants.
            raise AccessDenied(NOT_FOUND)
    content, media = await context.metrics.page(request.headers.get("accept", ""))
    return Response(content, media_type=media)


def _is_from_this_machine(request: Request) -> bool:
    """Tell whether a request comes straight from a program on this machine."""
    peer = request.client.host if request.client is not None else ""
    passed_on = any(name in request.headers for name in ("forwarded", "x-forwarded-for", "via"))
    return is_loopback(peer) and is_loopback(request.url.hostname or "") and not passed_on


@routes.add("GET", "/docs", roles=PUBLIC, answer=str, media="text/html")
async def docs(request: Request) -> Response:
    """Show the documentation of the API."""
    page = _api_page(request.app.openapi())
    return HTMLResponse(page, headers={"content-security-policy": _POLICY})


def _api_page(document: Mapping[str, Any]) -> str:
    """Return the documentation of the API as one HTML page."""
    groups: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = operation.get("tags", ["other"])[0]
            groups.setdefault(tag, []).append(_operation(method, path, operation))
    title = escape(f"{document['info']['title']} API {document['info']['version']}")
    sections = "".join(
        f"<section><h2>{escape(tag)}</h2>{''.join(parts)}</section>"
        for tag, parts in sorted(groups.items())
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style><h1>{title}</h1>"
        f"<p>{escape(document['info'].get('description', ''))} The "
        '<a href="/openapi.json">OpenAPI document</a> has every type.</p>'
        f"{sections}<section><h2>types</h2>{''.join(_types(document))}</section></html>"
    )


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    roles = ", ".join(operation.get("x-weft-roles", ()))
    rows = [
        _row(parameter["name"], parameter["in"], _type(parameter.get("schema", {})))
        for parameter in operation.get("parameters", ())
    ]
    body = operation.get("requestBody", {}).get("content", {})
    rows += [_row("body", kind, _type(part.get("schema", {}))) for kind, part in body.items()]
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            content = answer.get("content", {})
            rows += [
                _row(status, kind, _type(part.get("schema", {}))) for kind, part in content.items()
            ]
    text = escape(operation.get("description") or operation.get("summary", ""))
    return (
        f"<details><summary><b>{escape(method.upper())}</b> <code>{escape(path)}</code> "
        f"<small>{escape(roles)}</small></summary><p>{text}</p><table>{''.join(rows)}</table></details>"
    )


def _row(name: str, place: str, type_: str) -> str:
    cells = (f"<code>{escape(name)}</code>", escape(place), type_)
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _types(document: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in sorted(document.get("components", {}).get("schemas", {}).items()):
        required = schema.get("required", ())
        rows = [
            _row(key + ("" if key in required else "?"), "", _type(part))
            for key, part in schema.get("properties", {}).items()
        ]
        text = escape(schema.get("description", ""))
        yield (
            f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary>'
            f"<p>{text}</p><table>{''.join(rows)}</table></details>"
        )


def _type(schema: Mapping[str, Any]) -> str:
    """Return the name of a type, as HTML."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}"><code>{name}</code></a>'
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(map(_type, schema[key]))
    if "enum" in schema:
        return "<code>" + escape(" | ".join(map(str, schema["enum"]))) + "</code>"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return f"<code>{escape(str(schema.get('const', schema.get('type', 'any'))))}</code>"
