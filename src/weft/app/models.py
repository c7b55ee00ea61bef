"""Models by name: the registry of the settings, fallbacks, models of a workflow or a run."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

from weft.adapters.models.limits import WithFallback
from weft.adapters.models.providers import COMPATIBLE, THROUGH_LIBRARY
from weft.adapters.models.recorded import Ask, PersonModel, RecordedModel
from weft.adapters.models.registry import ADDRESSES, ModelRegistry
from weft.adapters.models.sample import SampleModel
from weft.adapters.models.sample_moves import steering_of
from weft.adapters.models.usage import Price
from weft.app.settings import ANY_MODEL, call_rules, fallbacks_of
from weft.check.subject import Subject
from weft.engine.events import Event
from weft.errors import ModelError, ReplayMismatch, UsageError
from weft.generator.steps import DESIGNER, is_generator
from weft.ports.clock import Clock
from weft.ports.model import Model, ModelReply, ModelRequest
from weft.ports.scope import Scope
from weft.runtime.workflow import Workflow, unpack
from weft.spec.workflow import WorkflowSpec

#: The model of the command line where none is named: made-up replies, shown with a badge.
SAMPLE: Final = "sample"

#: What no provider is asked for. A fallback stands in for it only where it is named itself: no
#: other model speaks for a person or a recorded run because one is usually at hand.
_OWN_MODELS: Final = frozenset({"sample", DESIGNER, "replay", "you"})

#: How many recorded runs are kept in memory to answer again.
MOST_RECORDED: Final = 8


def known_providers() -> frozenset[str]:
    """Return what the name of a model may begin with here: providers, addresses, own models."""
    return frozenset({*COMPATIBLE, *THROUGH_LIBRARY, *ADDRESSES, *_OWN_MODELS})


ReadRun: TypeAlias = Callable[[Scope, str], Awaitable[list[Event]]]


class ModelChoice:
    """Finds the model for a name; `sample`, `designer` and `replay:RUN` are made here.

    For the Generator every other model has the designer behind it.
    """

    def __init__(
        self,
        registry: ModelRegistry,
        *,
        default: str,
        last_resort: str = "",
        seed: int,
        read_run: ReadRun,
        fallbacks: Mapping[str, str] | None = None,
    ) -> None:
        self._registry = registry
        self._default = default
        self._last_resort = last_resort
        self._seed = seed
        self._read_run = read_run
        self._fallbacks = fallbacks or {}
        self._samples: WeakKeyDictionary[Workflow, SampleModel] = WeakKeyDictionary()
        self._recorded: OrderedDict[tuple[Scope, str], _RecordedRun] = OrderedDict()

    def __call__(self, name: str, workflow: Workflow, scope: Scope) -> Model:
        """Return the model for a name, with its fallback; an empty name means the default model.

        Raises UsageError if no model is named anywhere.
        """
        name = name or self._default or default_model_of(workflow.spec, self._last_resort)
        if not name:
            raise UsageError(
                f"no model is named for {workflow.name}",
                hint='pass model="PROVIDER:MODEL", name a model in the package or set WEFT_MODEL; '
                'model="sample" makes replies up',
            )
        model = self._model(name, workflow, scope)
        other = self._fallbacks.get(name)
        if other is None and _kind(name) not in _OWN_MODELS:
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
                raise UsageError("replay needs a run", hint="write replay:RUN")
            return self._recorded_run(scope, rest)
        if name == "you" and not self._registry.knows("you"):
            raise UsageError(
                "nobody is there to answer for the model you",
                hint="open the host with person=..., or use it in the terminal: weft chat",
            )
        model = self._registry.model(name)
        return _with_designer(model, name) if is_generator(workflow.spec) else model

    async def close(self) -> None:
        """Close every connection."""
        await self._registry.close()

    def _sample(self, workflow: Workflow) -> SampleModel:
        if workflow not in self._samples:
            _, files = unpack(workflow.package)
            code = {path: raw.decode("utf-8-sig") for path, raw in files.items()}
            steering = steering_of(Subject(workflow.spec, code=code))
            self._samples[workflow] = SampleModel(self._seed, steering)
        return self._samples[workflow]

    def _recorded_run(self, scope: Scope, run: str) -> "_RecordedRun":
        """Return a recorded run; one that is used again is not read again."""
        found = self._recorded.pop((scope, run), None) or _RecordedRun(scope, run, self._read_run)
        self._recorded[scope, run] = found
        if len(self._recorded) > MOST_RECORDED:
            self._recorded.popitem(last=False)
        return found


def default_model_of(spec: WorkflowSpec, last_resort: str = SAMPLE) -> str:
    """Return the model of a workflow for which none is named; the Generator has its own."""
    return DESIGNER if is_generator(spec) else last_resort


def _designer() -> Model:
    # Deferred: only the Generator needs it.
    from weft.generator.designer.model import DesignerModel  # noqa: PLC0415

    return DesignerModel()


def _with_designer(model: Model, name: str) -> Model:
    from weft.generator.assisted import AssistedModel  # noqa: PLC0415

    return AssistedModel(model, name=name)


def refuse_unknown_fallbacks(fallbacks: Mapping[str, str], registry: ModelRegistry) -> None:
    """Refuse fallbacks for models that cannot be: they would never be used, and nobody notice."""
    for name in fallbacks:
        kind = _kind(name)
        if name != ANY_MODEL and kind not in _OWN_MODELS and not registry.knows(kind):
            raise UsageError(
                f"there is a fallback for {name}, which names no provider that is known",
                hint="write PROVIDER:MODEL=OTHER in WEFT_FALLBACK_MODEL",
            )


def _kind(name: str) -> str:
    return name.partition(":")[0]


class _RecordedRun:
    """A recorded run that is within the scope of the run that asks; read when it is asked."""

    def __init__(self, scope: Scope, run: str, read_run: ReadRun) -> None:
        self._scope = scope
        self._run = run
        self._read_run = read_run
        self._model: RecordedModel | None = None

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Answer as it was answered then."""
        try:
            if self._model is None:
                events = await self._read_run(self._scope, self._run)
                self._model = RecordedModel(self._run, events)
            return await self._model.reply(request, on_text)
        except ReplayMismatch as error:
            raise ModelError(str(error)) from error


def open_registry(
    settings: Mapping[str, str],
    clock: Clock,
    *,
    person: Ask | None = None,
    prices: Mapping[str, Price] | None = None,
) -> tuple[ModelRegistry, Mapping[str, str]]:
    """Return what makes models, and the fallbacks by model; raises UsageError for wrong settings.

    Nothing is asked and no connection is opened.
    """
    registry = ModelRegistry(
        clock=clock,
        random=Random(),  # noqa: S311 - spreads retries, nothing secret
        settings=settings,
        rules=call_rules(settings),
        prices=prices,
        factories={"you": lambda _: PersonModel(person)} if person else {},
    )
    fallbacks = fallbacks_of(settings)
    refuse_unknown_fallbacks(fallbacks, registry)
    return registry, fallbacks
