"""What a server works with: its models, whether what it needs can be used, and its codes."""

import asyncio
import platform
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from time import perf_counter
from typing import Annotated, Final, Literal

from fastapi import Path as FromPath
from typing_extensions import TypedDict

from weft.app.diagnosis import Diagnosis, check_disk, check_embeddings, check_models
from weft.app.folders import LOCAL
from weft.app.models import is_own_model, open_registry
from weft.app.settings import ANY_MODEL, fallbacks_of
from weft.catalogue import CATALOGUE
from weft.errors import ModelError, NotFoundError, PortError, UsageError
from weft.findings import Rule
from weft.ports.model import ModelReply, ModelRequest
from weft.ports.scope import Scope
from weft.server.answers import page_of
from weft.server.codes import HTTP_RULES
from weft.server.context import ServerContext
from weft.server.identity import KNOWN, OPERATOR, STAFF, Principal
from weft.server.parameters import PRINTABLE
from weft.server.routing import Caller, Context, Routes

routes: Final = Routes("setup")

#: Seconds that a test call may take.
_TEST_SECONDS: Final = 30.0

ModelPath = Annotated[str, FromPath(min_length=1, max_length=300, pattern=PRINTABLE)]
CodePath = Annotated[str, FromPath(pattern="^[A-Z]{1,20}[0-9]{1,4}$")]

_CODES: Final = {**CATALOGUE, **{rule.code: rule for rule in HTTP_RULES}}


class ModelAnswer(TypedDict):
    """A model that is configured for the tenant."""

    name: str
    is_default: bool
    is_fallback: bool
    #: The workflows that name it.
    workflows: list[str]
    #: What is missing to call it, such as a key; null: nothing.
    problem: str | None


class ModelTestAnswer(TypedDict):
    """The reply of a model to a test call; null: the provider does not say."""

    name: str
    #: The name that the provider gives to the model.
    model: str
    text: str
    milliseconds: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None


class CheckAnswer(TypedDict):
    """The result of a check; `remedy` is what an operator does about it."""

    state: Literal["ok", "warn", "fail"]
    subject: str
    fact: str
    remedy: str


class DoctorAnswer(TypedDict):
    """The results of all checks; `ok`: none has failed."""

    ok: bool
    checks: list[CheckAnswer]


@dataclass
class _Uses:
    """Where a model is configured."""

    is_default: bool = False
    is_fallback: bool = False
    workflows: list[str] = field(default_factory=list[str])


@routes.add("GET", "/api/models", roles=STAFF, answer=page_of(ModelAnswer))
async def list_models(caller: Caller, context: Context) -> object:
    """List the models that settings and packages name, and what is missing to call them."""
    return await asyncio.to_thread(_models, context, caller)


@routes.add("POST", "/api/models/{name:path}/test", roles=STAFF, answer=ModelTestAnswer)
async def test_model(name: ModelPath, caller: Caller, context: Context) -> object:
    """Call a model of the list once, with a short question."""
    if name not in await asyncio.to_thread(_configured, context, caller):
        raise NotFoundError(f"there is no model {name}", hint="GET /api/models lists them")
    if is_own_model(name):
        raise UsageError(f"{name} has no provider that could be called", hint="test another model")
    begun = perf_counter()
    reply = await _call(context, caller, name)
    return ModelTestAnswer(
        name=name,
        model=reply.model or name,
        text=reply.text,
        milliseconds=round((perf_counter() - begun) * 1000),
        input_tokens=reply.usage.input_tokens,
        output_tokens=reply.usage.output_tokens,
        cost_usd=reply.usage.cost_usd,
    )


@routes.add("GET", "/api/codes/{code}", roles=KNOWN, answer=Rule)
async def explain(code: CodePath) -> object:
    """Explain the code of a finding or a problem."""
    rule = _CODES.get(code)
    if rule is None:
        raise NotFoundError(f"there is no code {code}", hint="docs/findings.md lists them")
    return rule


@routes.add("GET", "/api/doctor", roles=OPERATOR, answer=DoctorAnswer)
async def doctor(caller: Caller, context: Context) -> object:
    """Check what runs of the tenant need; for operators of `local`, the machine as well.

    These also get a line for each setting of the server: its value, and where it comes from.
    """
    hide = context.folders.hide
    checks = [
        replace(each, fact=hide(each.fact), remedy=hide(each.remedy))
        async for each in _checks(context, caller)
    ]
    return {"ok": all(each.state != "fail" for each in checks), "checks": checks}


def _configured(context: ServerContext, caller: Principal) -> dict[str, _Uses]:
    """Return the models that the settings and packages of a tenant name."""
    found: dict[str, _Uses] = {}
    settings = context.host.environment_of(caller.app)
    if settings.get("WEFT_MODEL"):
        found.setdefault(settings["WEFT_MODEL"], _Uses()).is_default = True
    fallbacks = fallbacks_of(settings)
    for name in (*fallbacks, *fallbacks.values()):
        if name != ANY_MODEL:
            found.setdefault(name, _Uses()).is_fallback = name in fallbacks.values()
    for place in sorted(context.packages.all_of(caller.app).values(), key=lambda place: place.name):
        spec = context.packages.reviewed(place).spec
        for name in {spec.orchestrator.model, *(agent.model for agent in spec.agents)} - {None}:
            found.setdefault(str(name), _Uses()).workflows.append(place.name)
    return found


def _models(context: ServerContext, caller: Principal) -> list[ModelAnswer]:
    registry, _ = open_registry(context.host.environment_of(caller.app), context.clock)
    items: list[ModelAnswer] = []
    for name, uses in sorted(_configured(context, caller).items()):
        problem: str | None = None
        try:
            if not is_own_model(name):
                registry.model(name)
        except UsageError as error:
            problem = context.folders.hide(f"{error}; {error.hint}" if error.hint else str(error))
        items.append(ModelAnswer(name=name, problem=problem, **asdict(uses)))
    return items


async def _call(context: ServerContext, caller: Principal, name: str) -> ModelReply:
    """Call a model with the keys of the tenant; raises ModelError."""
    registry, _ = open_registry(context.host.environment_of(caller.app), context.clock)
    request = ModelRequest(
        model=name,
        run="",
        agent="",
        turn=0,
        call=1,
        key=context.clock.new_id(),
        messages=[{"role": "user", "content": "Reply with the word OK."}],
        app=caller.app,
    )
    try:
        async with asyncio.timeout(_TEST_SECONDS):
            model = await asyncio.to_thread(registry.model, name)
            return await model.reply(request)
    except TimeoutError as error:
        text = f"{name} did not reply within {_TEST_SECONDS:.0f} s"
        raise ModelError(text, retryable=True) from error
    finally:
        await registry.close()


async def _checks(context: ServerContext, caller: Principal) -> AsyncGenerator[Diagnosis]:
    yield Diagnosis("ok", "weft", version("weft-agents"))
    yield await _check_runs(context)
    try:
        settings = context.host.environment_of(caller.app)
    except UsageError as error:
        yield Diagnosis("fail", "settings", str(error), error.hint or "")
        return
    yield await asyncio.to_thread(check_models, settings)
    yield await _check_documents(context, caller)
    yield await asyncio.to_thread(_check_packages, context, caller)
    if caller.app == LOCAL.app:
        yield Diagnosis("ok", "python", platform.python_version())
        yield await asyncio.to_thread(check_embeddings, settings)
        yield check_disk(context.workspace, "the workspace")
        for setting in context.settings_shown:
            yield setting


async def _check_runs(context: ServerContext) -> Diagnosis:
    """Check that runs can be read, and that a worker works on them."""
    try:
        found = await context.host.workload()
    except PortError as error:
        return Diagnosis("fail", "runs", str(error), "check WEFT_STORE, and that its server runs")
    fact = f"runs that wait for a worker: {found.waiting}; workers: {len(found.owners)}"
    if context.works or found.owners:
        return Diagnosis("ok", "runs", fact)
    return Diagnosis("warn", "runs", fact, "start a worker: weft worker")


async def _check_documents(context: ServerContext, caller: Principal) -> Diagnosis:
    if context.host.documents is None:
        return Diagnosis("ok", "documents", "this server has none")
    try:
        found = await context.host.documents.collections(Scope.operator(caller.app))
    except (PortError, UsageError) as error:
        remedy = "check WEFT_DOCUMENTS, and that its server runs"
        return Diagnosis("fail", "documents", str(error), remedy)
    fact = f"documents: {sum(count for _, count in found)}; collections: {len(found)}"
    return Diagnosis("ok", "documents", fact)


def _check_packages(context: ServerContext, caller: Principal) -> Diagnosis:
    places = context.packages.all_of(caller.app).values()
    broken = sorted(place.name for place in places if context.packages.reviewed(place).errors)
    if broken:
        fact = f"packages with errors: {', '.join(broken)}"
        return Diagnosis("warn", "packages", fact, "weft check")
    return Diagnosis("ok", "packages", f"packages: {len(places)}, without errors")
