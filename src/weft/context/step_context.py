"""What a step is shown beside its state: pieces in order, and the text that is made of them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeAlias, cast

from pydantic_core import to_jsonable_python

from weft.context.segment import over_budget, shown
from weft.context.slices import Envelope, Item
from weft.errors import ToolError
from weft.findings import Json
from weft.ports.retrieval import Collection, RetrievalResult
from weft.spec.agents import estimate_tokens
from weft.spec.flow import ContextFormat

#: How a context becomes text; the same that a step may declare as its `format`.
ContextFormatOptions: TypeAlias = ContextFormat

#: As it is made where nobody says anything: blank lines between pieces, `---` between passages.
DEFAULT_FORMAT: Final = ContextFormat()

#: What a model is told of an artifact.
_TOLD: Final = ("type", "payload", "produced_by", "tags")


def json_of(value: object) -> Json:
    """Return a value as JSON has it: objects of classes by the names of their fields."""
    return to_jsonable_python(value, by_alias=False)


def state_value(state: object, path: str) -> Any:  # noqa: ANN401 - a field, or a part of one
    """Return a field of a state or a part of it; nothing has nothing as its parts."""
    found: Any = state
    for part in path.split("."):
        if found is None:
            return None
        try:
            if isinstance(found, Mapping):
                found = cast("Mapping[str, Any]", found)[part]
            else:
                found = getattr(found, part)
        except (AttributeError, KeyError):
            raise ToolError(f"the state has no {path}: there is no {part} in it") from None
    return found


@dataclass(frozen=True, slots=True)
class StateContextSegment:
    """A value of the state."""

    name: str
    value: Any

    kind: ClassVar = "state"

    def __post_init__(self) -> None:
        # As a journal has it, so that one that is read back is equal.
        object.__setattr__(self, "value", json_of(self.value))

    def to_prompt_string(self) -> str:
        """Return the value; nothing for none."""
        return "" if self.value is None else shown(self.value)


@dataclass(frozen=True, slots=True)
class VariableContextSegment:
    """A variable that is no part of the state."""

    name: str
    value: Any

    kind: ClassVar = "variable"

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", json_of(self.value))

    def to_prompt_string(self) -> str:
        """Return the value; nothing for none."""
        return "" if self.value is None else shown(self.value)


@dataclass(frozen=True, slots=True)
class RetrievalContextSegment:
    """Passages of a collection, the best first."""

    collection: str
    results: tuple[RetrievalResult, ...]

    kind: ClassVar = "retrieval"

    def __post_init__(self) -> None:
        object.__setattr__(self, "results", tuple(map(_plain_result, self.results)))

    @property
    def name(self) -> str:
        """What it is called under its heading."""
        return self.collection

    def to_prompt_string(self, separator: str = DEFAULT_FORMAT.hit_separator) -> str:
        """Return the passages one after the other."""
        return separator.join(it.content for it in self.results)


@dataclass(frozen=True, slots=True)
class ArtifactsContextSegment:
    """Artifacts of a board."""

    board: str
    artifacts: tuple[Item, ...]

    kind: ClassVar = "board"

    def __post_init__(self) -> None:
        object.__setattr__(self, "artifacts", tuple(json_of(it) for it in self.artifacts))

    @property
    def name(self) -> str:
        """What it is called under its heading."""
        return self.board

    def to_prompt_string(self) -> str:
        """Return one line of JSON for each artifact."""
        return "\n".join(map(_line, self.artifacts))


@dataclass(frozen=True, slots=True)
class LiteralContextSegment:
    """A fixed text."""

    text: str

    kind: ClassVar = "literal"

    @property
    def name(self) -> str:
        """What it is called under its heading: nothing, it speaks for itself."""
        return ""

    def to_prompt_string(self) -> str:
        """Return the text."""
        return self.text


ContextSegment: TypeAlias = (
    StateContextSegment
    | VariableContextSegment
    | RetrievalContextSegment
    | ArtifactsContextSegment
    | LiteralContextSegment
)

#: All of them, for whoever asks whether something is one.
SEGMENTS: Final = (
    StateContextSegment,
    VariableContextSegment,
    RetrievalContextSegment,
    ArtifactsContextSegment,
    LiteralContextSegment,
)


class Fitting(NamedTuple):
    """A context that fits its budget, and what does not stand in it any more."""

    context: "AssembledContext"
    left_out: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class AssembledContext:
    """Everything a step is shown beside its state, in order."""

    segments: tuple[ContextSegment, ...] = ()
    #: How it becomes text, unless that is said then; None takes what the step declares.
    format: ContextFormat | None = None

    @classmethod
    def empty(cls) -> "AssembledContext":
        """Return a context without anything."""
        return cls()

    @property
    def retrieval_results(self) -> tuple[RetrievalResult, ...]:
        """The passages of all collections, in order."""
        return tuple(
            result
            for it in self.segments
            if isinstance(it, RetrievalContextSegment)
            for result in it.results
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show: no piece, or none that says anything."""
        return not any(it.to_prompt_string() for it in self.segments)

    def to_prompt_string(self, options: ContextFormat | None = None) -> str:
        """Return one text of all pieces; pieces that say nothing leave no gap."""
        wanted = options or self.format or DEFAULT_FORMAT
        return _text(self.fitted(wanted).context.segments, wanted)

    def fitted(self, options: ContextFormat | None = None) -> Fitting:
        """Leave out what is over the budget: passages and artifacts one by one.

        What stands first is preferred; something that does not fit keeps nothing after it out.
        """
        wanted = options or self.format or DEFAULT_FORMAT
        budget, left_out = wanted.max_tokens, list[dict[str, Any]]()
        if budget is None or estimate_tokens(_text(self.segments, wanted)) <= budget:
            return Fitting(self, left_out)
        kept: list[ContextSegment] = []
        for segment in self.segments:
            fitting: ContextSegment | None = None
            for at, part in enumerate(_parts(segment)):
                more = part if fitting is None else _extended(fitting, part)
                if estimate_tokens(_text((*kept, more), wanted)) <= budget:
                    fitting = more
                else:
                    _note(left_out, _gone(part, at), over_budget(budget))
            kept += [] if fitting is None else [fitting]
        return Fitting(replace(self, segments=tuple(kept)), left_out)


def _text(segments: Iterable[ContextSegment], wanted: ContextFormat) -> str:
    texts = filter(None, (_piece(it, wanted) for it in segments))
    whole = wanted.separator.join(texts)
    if not whole or wanted.template is None:
        return whole
    return wanted.template.replace("{context}", whole)


def _piece(segment: ContextSegment, wanted: ContextFormat) -> str:
    if isinstance(segment, RetrievalContextSegment):
        text = segment.to_prompt_string(wanted.hit_separator)
    else:
        text = segment.to_prompt_string()
    return f"[{segment.name}]\n{text}" if text and wanted.headers and segment.name else text


def _parts(segment: ContextSegment) -> Iterator[ContextSegment]:
    """Yield a piece in parts that can be left out: of each passage or artifact one of its own."""
    if isinstance(segment, RetrievalContextSegment) and segment.results:
        yield from (replace(segment, results=(it,)) for it in segment.results)
    elif isinstance(segment, ArtifactsContextSegment) and segment.artifacts:
        yield from (replace(segment, artifacts=(it,)) for it in segment.artifacts)
    else:
        yield segment


def _extended(segment: ContextSegment, part: ContextSegment) -> ContextSegment:
    """Return a piece with one more of its parts."""
    match segment, part:
        case RetrievalContextSegment(), RetrievalContextSegment():
            return replace(segment, results=(*segment.results, *part.results))
        case ArtifactsContextSegment(), ArtifactsContextSegment():
            return replace(segment, artifacts=(*segment.artifacts, *part.artifacts))
        case _:  # pragma: no cover - all others are one part
            raise AssertionError


def _gone(part: ContextSegment, at: int) -> dict[str, Any]:
    """Say what was left out, and which passage or artifact of its piece that is."""
    gone: dict[str, Any] = {"kind": part.kind, "origin": part.name}
    if isinstance(part, RetrievalContextSegment) and part.results:
        gone["names"] = [part.results[0].source_id or f"passage {at + 1}"]
    if isinstance(part, ArtifactsContextSegment) and part.artifacts:
        gone["names"] = [str(part.artifacts[0].get("id") or f"artifact {at + 1}")]
    return gone


def _note(left_out: list[dict[str, Any]], gone: dict[str, Any], reason: str) -> None:
    """Put down what was left out; passages of one piece stand together, in their order."""
    known = left_out[-1] if left_out else {}
    same = all(known.get(key) == gone[key] for key in ("kind", "origin"))
    if same and "names" in gone and "names" in known:
        known["names"] = [*known["names"], *gone["names"]]
    else:
        left_out.append({**gone, "reason": reason})


def _plain_result(result: RetrievalResult) -> RetrievalResult:
    if result.metadata is None:
        return result
    return replace(result, metadata=cast("dict[str, Json]", json_of(dict(result.metadata))))


def _line(artifact: Item) -> str:
    told = {key: artifact[key] for key in _TOLD if artifact.get(key)}
    return json.dumps(told, ensure_ascii=False)


class AssembledContextBuilder:
    """Puts a context together, piece by piece."""

    def __init__(self) -> None:
        self._segments: list[ContextSegment] = []

    def add_state_context(self, name: str, value: object) -> Self:
        """Add a value of the state."""
        return self._added(StateContextSegment(name, value))

    def add_variable_context(self, name: str, value: object) -> Self:
        """Add a variable that is no part of the state."""
        return self._added(VariableContextSegment(name, value))

    def add_retrieval_context(
        self, collection: str | type[Collection], results: Sequence[RetrievalResult]
    ) -> Self:
        """Add what was found in a collection."""
        name = collection if isinstance(collection, str) else collection.collection_name()
        return self._added(RetrievalContextSegment(name, tuple(results)))

    def add_artifacts_context(
        self, board: str, artifacts: Iterable[Envelope | Mapping[str, Any]]
    ) -> Self:
        """Add artifacts of a board."""
        items = (it.item() if isinstance(it, Envelope) else dict(it) for it in artifacts)
        return self._added(ArtifactsContextSegment(board, tuple(items)))

    def add_literal_context(self, text: str) -> Self:
        """Add a fixed text."""
        return self._added(LiteralContextSegment(text))

    def build(self, format: ContextFormat | None = None) -> AssembledContext:  # noqa: A002 - what it is
        """Return what was added; without a format, that of the step holds."""
        return AssembledContext(tuple(self._segments), format)

    def _added(self, segment: ContextSegment) -> Self:
        self._segments.append(segment)
        return self


# -- as a journal keeps it


def recorded(
    assembled: AssembledContext, left_out: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return a context as a journal keeps it; `from_record` makes an equal one of it."""
    made: dict[str, Any] = {
        "text": assembled.to_prompt_string(),
        "segments": [_entry(it) for it in assembled.segments],
        "left_out": list(left_out),
    }
    if assembled.format is not None:
        made["format"] = assembled.format.model_dump(mode="json", exclude_defaults=True)
    return made


def _entry(segment: ContextSegment) -> dict[str, Any]:
    text = segment.to_prompt_string()
    entry: dict[str, Any] = {"kind": segment.kind, "name": segment.name, "text": text}
    match segment:
        case StateContextSegment() | VariableContextSegment():
            entry["value"] = segment.value
        case RetrievalContextSegment():
            entry["hits"] = [_hit(it) for it in segment.results]
        case ArtifactsContextSegment():
            entry["artifacts"] = list(segment.artifacts)
        case LiteralContextSegment():
            pass
    return entry


def _hit(it: RetrievalResult) -> dict[str, Any]:
    return {
        "content": it.content,
        "score": it.score,
        "source_id": it.source_id,
        "metadata": it.metadata,
    }


def from_record(record: Mapping[str, Any] | None) -> AssembledContext:
    """Return the context that was recorded; nothing is asked again."""
    if not record:
        return AssembledContext.empty()
    given = record.get("format")
    format_ = None if given is None else ContextFormat.model_validate(given)
    return AssembledContext(tuple(map(_segment, record["segments"])), format_)


def _segment(entry: Mapping[str, Any]) -> ContextSegment:
    match entry["kind"]:
        case "state":
            return StateContextSegment(entry["name"], entry["value"])
        case "variable":
            return VariableContextSegment(entry["name"], entry["value"])
        case "retrieval":
            hits = tuple(RetrievalResult(**it) for it in entry["hits"])
            return RetrievalContextSegment(entry["name"], hits)
        case "board":
            return ArtifactsContextSegment(entry["name"], tuple(entry["artifacts"]))
        case _:
            return LiteralContextSegment(entry["text"])
