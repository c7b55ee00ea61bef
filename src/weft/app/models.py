"""Models by name: the registry of the settings, fallbacks, models of a workflow or a run."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final
from weakref import WeakKeyDictionary

from weft.adapters.models.limits import WithFallback
from weft.adapters.models.providers import COMPATIBLE, THROUGH_LIBRARY
from weft.adapters.models.recorded import Ask, PersonModel, RecordedModel
from weft.adapters.models.registry import ADDRESSES, ModelRegistry
from weft.adapters.models.sample import SampleModel
from weft.adapters.models.sample_moves import steering_of
from weft.adapters.models.usage import Price
from weft.app.replies import ReadRun, RepliesFile, is_replies_file
from weft.app.settings import ANY_MODEL, call_rules, fallbacks_of
from weft.app.tenants import TenantSettings
from weft.check.subject import Subject
from weft.errors import ModelError, ReplayMismatch, UsageError
from weft.generator.steps import DESIGNER, is_generator
from weft.ports.clock import Clock
from weft.ports.model import Model, ModelReply, ModelRequest
from weft.ports.scope import Scope
from weft.runtime.workflow import Workflow, unpack
from weft.spec.workflow import WorkflowSpec

#: The model of new runs of the command line if none is named: made-up replies, with a badge.
SAMPLE: Final = "sample"

#: Models without a provider. They get a fallback only if it names them: no
#: default fallback replaces a person or a recorded run.
_OWN_MODELS: Final = frozenset({"sample", DESIGNER, "replay", "you"})

#: The most recorded runs in memory.
MOST_RECORDED: Final = 8


def known_providers() -> frozenset[str]:
    """Return the valid prefixes of model names: providers, addresses, models without a provider."""
    return frozenset({*COMPATIBLE, *THROUGH_LIBRARY, *ADDRESSES, *_OWN_MODELS})


class ModelChoice:
    """Finds the model for a name; `sample`, `designer` and `replay:` are made here.

    In the Generator, the designer is the fallback of every other model. Without `reads_files`, no
    file of replies is read: names of models may come from a client.
    """

    def __init__(
        self,
        registry: ModelRegistry,
        *,
        default: str,
        of_tenant: "TenantRegistries | None" = None,
        last_resort: str = "",
        seed: int,
        read_run: ReadRun,
        fallbacks: Mapping[str, str] | None = None,
        reads_files: bool = False,
    ) -> None:
        self._registry = registry
        self._of_tenant = of_tenant
        self._default = default
        self._last_resort = last_resort
        self._seed = seed
        self._read_run = read_run
        self._fallbacks = fallbacks or {}
        self._samples: WeakKeyDictionary[Workflow, SampleModel] = WeakKeyDictionary()
        self._recorded: OrderedDict[tuple[Scope, str], _RecordedRun] = OrderedDict()
        self._reads_files = reads_files
        self._files: dict[tuple[Scope, str], RepliesFile] = {}

    def __call__(self, name: str, workflow: Workflow, scope: Scope) -> Model:
        """Return the model for a name, with its fallback; an empty name means the default model.

        Raises UsageError if no model is named anywhere.
        """
        name = name or self._default or default_model_of(workflow.spec) or self._last_resort
        if not name:
            raise UsageError(
                f"no model is named for {workflow.name}",
                hint="set WEFT_MODEL in the process that performs the run, or name a model in the "
                'package; for made-up replies use model="sample" (weft: --model sample)',
            )
        model = self._model(name, workflow, scope)
        other = self._fallbacks.get(name)
        if other is None and not is_own_model(name):
            other = self._fallbacks.get(ANY_MODEL)
        if other is None or other == name:
            return model
        return WithFallback(model, self._model(other, workflow, scope), name=name)

    def _model(self, name: str, workflow: Workflow, scope: Scope) -> Model:
        kind, _, rest = name.partition(":")
        if kind == "sample":
            sample = self._sample(workflow)
            return _with_designer(sample, name) if is_generator(workflow.spec) else sample
        if kind == DESIGNER:
            return _designer()
        if kind == "replay":
            if not rest:
                hint = "write replay:RUN, or replay:FILE.yaml"
                raise UsageError("replay needs a run or a file of replies", hint=hint)
            if not is_replies_file(rest):
                return self._recorded_run(scope, rest)
            written = self._replies_file(scope, rest)
            return _with_designer(written, name) if is_generator(workflow.spec) else written
        own = None if self._of_tenant is None else self._of_tenant(scope.app)
        registry = own or self._registry
        if name == "you" and not registry.knows("you"):
            raise UsageError(
                "the model you needs a person",
                hint="name another model; a person replies in a terminal: weft chat --model you, "
                "or in Python: person=...",
            )
        model = registry.model(name)
        return _with_designer(model, name) if is_generator(workflow.spec) else model

    async def close(self) -> None:
        """Close every connection."""
        await self._registry.close()
        if self._of_tenant is not None:
            await self._of_tenant.close()

    def _sample(self, workflow: Workflow) -> SampleModel:
        if workflow not in self._samples:
            _, files = unpack(workflow.package)
            code = {path: raw.decode("utf-8-sig") for path, raw in files.items()}
            steering = steering_of(Subject(workflow.spec, code=code))
            self._samples[workflow] = SampleModel(self._seed, steering)
        return self._samples[workflow]

    def _replies_file(self, scope: Scope, name: str) -> RepliesFile:
        if not self._reads_files:
            hint = "use it in a terminal: weft run NAME --model replay:FILE.yaml"
            raise UsageError(f"replay:{name} is a file, and this host reads no files", hint=hint)
        if (scope, name) not in self._files:
            self._files[scope, name] = RepliesFile(Path(name), scope, self._read_run)
        return self._files[scope, name]

    def _recorded_run(self, scope: Scope, run: str) -> "_RecordedRun":
        """Return a recorded run; one that is used again is not read again."""
        found = self._recorded.pop((scope, run), None) or _RecordedRun(scope, run, self._read_run)
        self._recorded[scope, run] = found
        if len(self._recorded) > MOST_RECORDED:
            self._recorded.popitem(last=False)
        return found


def default_model_of(spec: WorkflowSpec) -> str:
    """Return the model of a workflow for which none is named: only the Generator has one."""
    return DESIGNER if is_generator(spec) else ""


def _designer() -> Model:
    # Deferred: only the Generator needs it.
    from weft.generator.designer import DesignerModel  # noqa: PLC0415

    return DesignerModel()


def _with_designer(model: Model, name: str) -> Model:
    from weft.generator.assisted import AssistedModel  # noqa: PLC0415

    return AssistedModel(model, name=name)


def refuse_unknown_fallbacks(fallbacks: Mapping[str, str], registry: ModelRegistry) -> None:
    """Refuse fallbacks of unknown models: they would silently never be used."""
    for name in fallbacks:
        kind = _kind(name)
        if name != ANY_MODEL and kind not in _OWN_MODELS and not registry.knows(kind):
            raise UsageError(
                f"unknown model {name} in WEFT_FALLBACK_MODEL",
                hint="write PROVIDER:MODEL=OTHER, with a known provider",
            )


def is_own_model(name: str) -> bool:
    """Tell whether a model has no provider: nothing is configured for it."""
    return _kind(name) in _OWN_MODELS


def _kind(name: str) -> str:
    return name.partition(":")[0]


class _RecordedRun:
    """A recorded run in the scope of the asking run, read with the first request."""

    def __init__(self, scope: Scope, run: str, read_run: ReadRun) -> None:
        self._scope = scope
        self._run = run
        self._read_run = read_run
        self._model: RecordedModel | None = None

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Return the recorded reply."""
        try:
            if self._model is None:
                events = await self._read_run(self._scope, self._run)
                self._model = RecordedModel(self._run, events)
            return await self._model.reply(request, on_text)
        except ReplayMismatch as error:
            raise ModelError(str(error)) from error


class TenantRegistries:
    """The models of tenants that have settings of their own: asked with their keys."""

    def __init__(
        self, settings: TenantSettings, open_one: Callable[[Mapping[str, str]], ModelRegistry]
    ) -> None:
        self._settings = settings
        self._open_one = open_one
        self._open: dict[str, tuple[Mapping[str, str], ModelRegistry]] = {}
        #: Those whose settings have changed: a call may still be under way.
        self._replaced: list[ModelRegistry] = []

    def __call__(self, app: str) -> ModelRegistry | None:
        """Return what makes the models of a tenant; None if it has no settings of its own."""
        settings = self._settings(app)
        if settings is self._settings.shared:
            return None
        known = self._open.get(app)
        if known is None or known[0] is not settings:
            if known is not None:
                self._replaced.append(known[1])
            known = self._open[app] = settings, self._open_one(settings)
        return known[1]

    async def close(self) -> None:
        """Close every connection."""
        registries = [*self._replaced, *(registry for _, registry in self._open.values())]
        self._open, self._replaced = {}, []
        for registry in registries:
            await registry.close()


def open_registry(
    settings: Mapping[str, str],
    clock: Clock,
    *,
    person: Ask | None = None,
    prices: Mapping[str, Price] | None = None,
) -> tuple[ModelRegistry, Mapping[str, str]]:
    """Return the registry of models, and the fallbacks; raises UsageError for invalid settings.

    No connection is opened.
    """
    registry = _registry(settings, clock, person, prices)
    fallbacks = fallbacks_of(settings)
    refuse_unknown_fallbacks(fallbacks, registry)
    return registry, fallbacks


def open_tenant_registries(
    settings: TenantSettings,
    clock: Clock,
    *,
    person: Ask | None = None,
    prices: Mapping[str, Price] | None = None,
) -> TenantRegistries:
    """Return what makes the models of each tenant; the parameters are those of `open_registry`."""
    return TenantRegistries(settings, lambda own: _registry(own, clock, person, prices))


def _registry(
    settings: Mapping[str, str],
    clock: Clock,
    person: Ask | None,
    prices: Mapping[str, Price] | None,
) -> ModelRegistry:
    return ModelRegistry(
        clock=clock,
        random=Random(),  # noqa: S311 - spreads retries, nothing secret
        settings=settings,
        rules=call_rules(settings),
        prices=prices,
        factories={"you": lambda _: PersonModel(person)} if person else {},
    )
