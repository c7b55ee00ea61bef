"""Made-up ports for simulated runs: documents, services, files, servers and environment.

Each run is its own tenant, and its data depends only on its name.
"""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from random import Random
from typing import Final, cast

from weft.adapters.models.provider_errors import as_object
from weft.adapters.models.sample_values import put_at, sample_value
from weft.check.declarations import comes_with_start, has_trigger
from weft.check.explore.domains import questions_in
from weft.check.subject import Subject
from weft.engine.compiled import CompiledWorkflow
from weft.engine.variables.conditions import evaluate
from weft.errors import ExpressionError
from weft.findings import Json
from weft.ports.documents import Change, Collection, Document
from weft.ports.external import (
    ExternalPorts,
    OfferedTool,
    ServiceAnswer,
    ServiceRequest,
    ToolServer,
)
from weft.ports.model import ToolSchema
from weft.ports.scope import Scope
from weft.spec.condition_parser import parse_condition
from weft.spec.orchestrator import DatabaseStart, FormStart, WebhookStart
from weft.spec.tools import SecretRef
from weft.spec.type_meaning import json_schema, validation_error
from weft.spec.types import ANY, OptionalOf, Ref
from weft.spec.variables import (
    DatabaseSource,
    DerivedSource,
    EntitySource,
    EnvironmentSource,
    ExternalSource,
    FileSource,
)
from weft.spec.workflow import WorkflowSpec

#: The probability of a value that some rule compares.
_ASKED: Final = 0.7

#: The most documents that are tried for the condition that starts a workflow.
_MOST_DOCUMENTS: Final = 10_000


@dataclass(frozen=True)
class SimulatedWorld:
    """The outside world of simulated runs; `values_of` returns the values that rules compare."""

    subject: Subject
    compiled: CompiledWorkflow
    values_of: Callable[[str], tuple[Json, ...]]
    #: Values of variables that are not made up.
    given: dict[str, Json] = field(default_factory=dict[str, Json])
    #: The changes of tools to documents, by tenant and collection.
    written: dict[tuple[str, str], Document] = field(
        default_factory=dict[tuple[str, str], Document]
    )

    def value(self, app: str, name: str) -> Json:
        """Make up the value of a variable in a run."""
        if name in self.given:
            return self.given[name]
        random = Random(f"{app}:{name}")  # noqa: S311
        source, type_ = self.compiled.variables[name].source, self.compiled.variables[name].type
        asked = [
            value
            for value in self.values_of(name)
            if not validation_error(type_, value, self.compiled.models)
        ]
        if asked and random.random() < _ASKED:
            return random.choice(asked)
        # The environment is complete, because tools may fail without a variable.
        if isinstance(source, EnvironmentSource) and isinstance(type_, OptionalOf):
            type_ = type_.of
        return sample_value(json_schema(type_, self.compiled.models), random)

    def environment(self) -> dict[str, str]:
        """Return every environment variable that the workflow names, with a valid value."""
        servers = self.subject.spec.mcp_servers
        sources = (source for _, source in self.subject.sources(ExternalSource))
        settings = (setting for server in servers for setting in server.env.values())
        secrets = [
            *(setting.secret_env for setting in settings if isinstance(setting, SecretRef)),
            *(owner.auth.secret_env for owner in (*servers, *sources) if owner.auth),
        ]
        named = dict.fromkeys(secrets, "[sample] secret")
        for name, source in self.subject.sources(EnvironmentSource):
            value = self.value("", name)
            named[source.env_var] = value if isinstance(value, str) else json.dumps(value)
        return named

    def start_values(self, app: str) -> dict[str, Json]:
        """Return the initial values of a run; those of the environment differ between runs."""
        variables = self.compiled.variables
        open_ones = [name for name, _ in self.subject.sources(EnvironmentSource)]
        return {name: self.value(app, name) for name in open_ones if not variables[name].secret}

    def input(self, app: str) -> dict[str, Json] | None:
        """Make up the input of a run: a form, a body, or a document that meets its condition."""
        random = Random(f"{app}:input")  # noqa: S311
        match self.subject.spec.orchestrator.trigger:
            case FormStart(form=str() as form):
                schema = json_schema(Ref(form), self.compiled.models)
                made = as_object(sample_value(schema, random)) or {}
                return {**made, **self._given_at_start(app)}
            case DatabaseStart(condition=condition):
                return self._fitting(condition, random)
            case WebhookStart():
                return {"event": "[sample] event", **self._given_at_start(app)}
            case _:
                return None

    def _given_at_start(self, app: str) -> dict[str, Json]:
        """Make up the fields of the input that variables begin with, as rules distinguish them."""
        return {
            name: self.value(app, name)
            for name, source in self.subject.sources(DerivedSource)
            if comes_with_start(self.subject, name) and not has_trigger(source)
        }

    def outside(self) -> ExternalPorts:
        """Return the ports of this world for a host."""
        return ExternalPorts(
            documents=_Documents(self),
            services=_Services(self),
            files=_Files(self),
            servers=_Servers(self.subject.spec),
            environment=self.environment(),
        )

    def document(self, app: str, collection: str) -> Document:
        """Make up the document of a collection with the fields that variables read."""
        made: Document = {}
        sources = self.subject.sources
        for name, source in (*sources(DatabaseSource), *sources(EntitySource)):
            if source.collection != collection:
                continue
            value = self.value(app, name)
            if isinstance(source, DatabaseSource) and source.find == "many":
                value = next(iter(cast("list[Json]", value)), None)
            path = source.field if isinstance(source, DatabaseSource) else None
            if path:
                put_at(made, ((tuple(path.split(".")), value),))
            else:
                made |= as_object(value) or {}
        return made | self.written.get((app, collection), {})

    def answer(self, app: str, request: ServiceRequest) -> Json:
        """Make up the answer of a service with the fields that variables read."""
        made: dict[str, Json] = {}
        for name, source in self.subject.sources(ExternalSource):
            if (source.service, source.operation) == (request.service, request.operation):
                if source.field is None:
                    return self.value(app, name)
                put_at(made, ((tuple(source.field.split(".")), self.value(app, name)),))
        return made

    def text(self, path: str) -> str:
        """Make up a file."""
        names = [name for name, source in self.subject.sources(FileSource) if source.path == path]
        value = self.value("", names[0]) if names else ""
        return value if isinstance(value, str) else json.dumps(value)

    def _fitting(self, condition: str, random: Random) -> dict[str, Json]:
        """Return fields that meet a condition; the last try if none does."""
        asked = parse_condition(condition)
        choices = {
            name: self._candidates(name, questions.constants)
            for name, questions in questions_in([asked]).items()
        }
        for values in choices.values():
            random.shuffle(values)
        made: dict[str, Json] = {}
        for chosen in islice(product(*choices.values()), _MOST_DOCUMENTS):
            made = dict(zip(choices, chosen, strict=True))
            try:
                if evaluate(asked, made):
                    break
            except ExpressionError:
                continue
        return made

    def _candidates(self, name: str, constants: Sequence[Json]) -> list[Json]:
        numbers = [constant for constant in constants if isinstance(constant, int | float)]
        others: list[Json] = [True, False, 1, 2, "[sample] text", ["[sample] text"]]
        found = [*constants, *(number + n for number in numbers for n in (-1, 1)), *others]
        # Only derived variables start with the field of their name.
        variable = self.compiled.variables.get(name)
        type_ = variable.type if variable and isinstance(variable.source, DerivedSource) else ANY
        return [
            value for value in found if not validation_error(type_, value, self.compiled.models)
        ]


class _Documents:
    """Returns the same document for every query, with the changes written to it."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world

    async def find(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        *,
        fields: Sequence[str] = (),  # noqa: ARG002 - the caller picks the fields
    ) -> Document | None:
        equal = {name: value for name, value in query.items() if not isinstance(value, dict)}
        return {"_id": "sample", **equal, **self._world.document(scope.app, collection.name)}

    async def find_many(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        *,
        fields: Sequence[str] = (),
        order: str = "",  # noqa: ARG002 - there is one
        limit: int = 20,  # noqa: ARG002
    ) -> list[Document]:
        found = await self.find(scope, collection, query, fields=fields)
        return [] if found is None else [found]

    async def put(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        values: Mapping[str, Json],
    ) -> str:
        kept = self._world.written.setdefault((scope.app, collection.name), {})
        kept.update(query)
        put_at(kept, tuple((tuple(name.split(".")), value) for name, value in values.items()))
        return "sample"

    async def page(
        self, scope: Scope, collection: Collection, *, after: str | None = None, limit: int = 50
    ) -> list[Document]:
        found = await self.find(scope, collection, {})
        return [] if found is None or after is not None else [found][:limit]

    async def collections(
        self, scope: Scope, *, database: str | None = None
    ) -> list[tuple[Collection, int]]:
        names = {name for app, name in self._world.written if app == scope.app}
        return [(Collection(name, database), 1) for name in sorted(names)]

    async def delete(self, scope: Scope, collection: Collection, key: str) -> bool:  # noqa: ARG002
        return self._world.written.pop((scope.app, collection.name), None) is not None

    async def watch(
        self, scope: Scope, collection: Collection, *, after: str | None = None
    ) -> AsyncGenerator[Change]:
        found = await self.find(scope, collection, {})
        if after is None:
            yield Change("put", "sample", found, "1")

    async def position(self, scope: Scope, collection: Collection) -> str:  # noqa: ARG002
        return "1"

    async def close(self) -> None:
        self._world.written.clear()


class _Services:
    """Answers for every service."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world

    async def ask(self, scope: Scope, request: ServiceRequest) -> ServiceAnswer:
        return ServiceAnswer(self._world.answer(scope.app, request))

    async def close(self) -> None:
        """Nothing is open."""


class _Files:
    """Returns a text for every file."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world

    async def read(self, app: str, workflow: str, path: str) -> str:  # noqa: ARG002 - there is one
        return self._world.text(path)


class _Servers:
    """Offers the allowed tools, and answers each call with a text."""

    def __init__(self, spec: WorkflowSpec) -> None:
        self._allowed = {server.name: server.allow for server in spec.mcp_servers}

    async def tools(self, server: ToolServer) -> list[OfferedTool]:
        names = self._allowed.get(server.name) or ("sample",)
        anything = cast("dict[str, Json]", {"type": "object", "properties": {}})
        return [OfferedTool(ToolSchema(name, "A tool made up.", anything)) for name in names]

    async def call(
        self,
        server: ToolServer,
        tool: str,
        arguments: Mapping[str, Json],  # noqa: ARG002 - the answer is the same
        *,
        on_progress: Callable[[float, str], None] | None = None,  # noqa: ARG002
    ) -> Json:
        return {"result": f"[sample] {server.name} {tool}"}

    async def close(self) -> None:
        """Nothing is open."""
