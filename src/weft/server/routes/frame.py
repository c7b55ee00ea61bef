"""The frame in which the page runs components of packages, and their sources.

The frame is a document without an origin: its policy keeps what runs in it from the page, from
cookies and from every network. It is the same for everyone and holds no data; the page passes it a
source and what is shown.
"""

import asyncio
from typing import Final

from fastapi import Request
from fastapi.responses import Response
from pydantic_core import from_json
from typing_extensions import TypedDict

from weft.app.folders import NOT_BUILT
from weft.errors import NotFoundError
from weft.server.actions import PEOPLE
from weft.server.identity import PUBLIC
from weft.server.page import FRAME, file_answer
from weft.server.parameters import IdPath, RunPath
from weft.server.routing import Caller, Context, Routes
from weft.spec.tools import UiTool

routes: Final = Routes("components")

#: What the frame may do: run its own script, which the build has hashed, and what that compiles,
#: as a blob. No nonce, since modules that a script imports would inherit it. Workers would fall
#: back to the policy for scripts, so they are named.
_POLICY: Final = (
    "sandbox allow-scripts allow-forms; default-src 'none'; script-src '{script}' blob:; "
    "style-src '{style}'; img-src data:; worker-src 'none'; child-src 'none'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'self'; require-trusted-types-for 'script'; "
    "trusted-types weft-frame"
)
#: Devices, and what is done in a person's name.
_FEATURES: Final = ", ".join(
    f"{name}=()"
    for name in (
        "camera", "clipboard-read", "clipboard-write", "display-capture", "fullscreen",
        "geolocation", "microphone", "midi", "payment", "screen-wake-lock", "serial", "usb",
    )
)  # fmt: skip


class ComponentAnswer(TypedDict):
    """A component of a package: JSX, which runs in the frame only."""

    name: str
    #: Null if the package has no such component: a form shows the question.
    source: str | None


@routes.add("GET", FRAME, roles=PUBLIC, answer=str, media="text/html")
async def show_frame(request: Request, context: Context) -> Response:
    """Return the document in which the page runs components."""
    document = await asyncio.to_thread(context.page.file, "frame/frame.html")
    hashes = await asyncio.to_thread(context.page.file, "frame/policy.json")
    if document is None or hashes is None:
        raise NotFoundError(NOT_BUILT)
    headers = {
        "content-security-policy": _POLICY.format(**from_json(hashes.content)),
        "permissions-policy": _FEATURES,
        "x-dns-prefetch-control": "off",
        "cache-control": "no-cache",
    }
    return file_answer(request, document, headers)


@routes.add("GET", "/api/runs/{run}/components/{component}", roles=PEOPLE, answer=ComponentAnswer)
async def show_component(
    run: RunPath, component: IdPath, caller: Caller, context: Context
) -> object:
    """Return a component that draws a question, from the package the run was started with."""
    workflow = await context.host.workflow(run, scope=caller.scope)
    drawn = {tool.ui.component for tool in workflow.spec.tools if isinstance(tool, UiTool)}
    code: dict[str, str] = from_json(workflow.package)["code"]
    source = code.get(f"tools/{component}.jsx") if component in drawn else None
    return {"name": component, "source": source}
