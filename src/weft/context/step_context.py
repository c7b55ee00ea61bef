"""The context of a step besides its state: segments in order, and their text."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeAlias, cast

from pydantic_core import to_jsonable_python

from weft.context.segment import Budget, over_budget, shown
from weft.context.slices import Envelope, Item
from weft.errors import ToolError
from weft.findings import Json
from weft.ports.retrieval import Collection, RetrievalResult
from weft.spec.agents import estimate_tokens
from weft.spec.flow import ContextFormat

#: The format of a context's text, as in a step's `format`.
ContextFormatOptions: TypeAlias = ContextFormat

#: The default format: blank lines between segments, `---` between passages.
DEFAULT_FORMAT: Final = ContextFormat()

#: The fields of an artifact that a model sees.
_SHOWN_FIELDS: Final = ("type", "payload", "produced_by", "tags")


def json_of(value: object) -> Json:
    """Return a value as JSON; objects by the names of their fields."""
    return to_jsonable_python(value, by_alias=False)


def state_value(state: object, path: str) -> Any:  # noqa: ANN401 - a field, or a part of one
    """Return a field of a state or a part of it; a part of None is None."""
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


@dataclass(frozen=True)
class ContextSegment:
    """One segment of a context: its name, and its content as JSON."""

    name: str
    content: Any

    kind: ClassVar[str] = ""
    #: The key of the content in a record.
    key: ClassVar[str] = "value"

    def __post_init__(self) -> None:
        """Convert the content to JSON, so that a segment read from the journal is equal."""
        object.__setattr__(self, "content", json_of(self.content))

    @property
    def value(self) -> Any:  # noqa: ANN401 - JSON
        """The content."""
        return self.content

    @property
    def parts(self) -> tuple[Any, ...]:
        """The parts that can be left out individually to fit a budget."""
        return () if self.content is None else (self.content,)

    def part_text(self, part: Any) -> str:  # noqa: ANN401 - one of `parts`
        """Return one part as text for a prompt."""
        return shown(part)

    def part_name(self, part: Any, number: int) -> str:  # noqa: ANN401, ARG002 - one of `parts`
        """Return the name of a part in the manifest; empty for a segment of one part."""
        return ""

    def to_prompt_string(self, separator: str = "\n") -> str:
        """Return the text of all parts; empty without parts."""
        return separator.join(map(self.part_text, self.parts))


class StateContextSegment(ContextSegment):
    """A value of the state."""

    kind = "state"


class VariableContextSegment(ContextSegment):
    """A variable that is not part of the state."""

    kind = "variable"


class LiteralContextSegment(ContextSegment):
    """A fixed text; it has no name."""

    kind = "literal"
    key = "text"

    def __init__(self, text: str) -> None:
        super().__init__("", text)

    @property
    def text(self) -> str:
        """The text."""
        return self.content

    def part_text(self, part: str) -> str:
        return part


class RetrievalContextSegment(ContextSegment):
    """Passages of a collection, the best first."""

    kind = "retrieval"
    key = "hits"

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", tuple(map(_plain_result, self.content)))

    @property
    def collection(self) -> str:
        """The name of the collection."""
        return self.name

    @property
    def results(self) -> tuple[RetrievalResult, ...]:
        """The passages."""
        return self.content

    @property
    def parts(self) -> tuple[RetrievalResult, ...]:
        return self.content

    def part_text(self, part: RetrievalResult) -> str:
        return part.content

    def part_name(self, part: RetrievalResult, number: int) -> str:
        return part.source_id or f"passage {number}"

    def to_prompt_string(self, separator: str = DEFAULT_FORMAT.hit_separator) -> str:
        """Return the passages one after the other."""
        return super().to_prompt_string(separator)


class ArtifactsContextSegment(ContextSegment):
    """Artifacts of a board, one line of JSON each."""

    kind = "board"
    key = "artifacts"

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", tuple(json_of(item) for item in self.content))

    @property
    def board(self) -> str:
        """The name of the board."""
        return self.name

    @property
    def artifacts(self) -> tuple[Item, ...]:
        """The artifacts."""
        return self.content

    @property
    def parts(self) -> tuple[Item, ...]:
        return self.content

    def part_text(self, part: Item) -> str:
        shown = {key: part[key] for key in _SHOWN_FIELDS if part.get(key)}
        return json.dumps(shown, ensure_ascii=False)

    def part_name(self, part: Item, number: int) -> str:
        return str(part.get("id") or f"artifact {number}")


class FittedContext(NamedTuple):
    """A context that fits its budget, and what was left out of it."""

    context: "AssembledContext"
    left_out: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class AssembledContext:
    """The context of a step besides its state, in order."""

    segments: tuple[ContextSegment, ...] = ()
    #: The default format of the text; None: the format that the step declares.
    format: ContextFormat | None = None

    @classmethod
    def empty(cls) -> "AssembledContext":
        """Return an empty context."""
        return cls()

    @property
    def retrieval_results(self) -> tuple[RetrievalResult, ...]:
        """The passages of all collections, in order."""
        found = [
            segment for segment in self.segments if isinstance(segment, RetrievalContextSegment)
        ]
        return tuple(result for segment in found for result in segment.results)

    @property
    def is_empty(self) -> bool:
        """Whether no segment has a text."""
        return not any(segment.to_prompt_string() for segment in self.segments)

    def to_prompt_string(self, options: ContextFormat | None = None) -> str:
        """Return the text of all segments; empty segments leave no gap."""
        wanted = options or self.format or DEFAULT_FORMAT
        return _text(self.fitted(wanted).context.segments, wanted)

    def fitted(self, options: ContextFormat | None = None) -> FittedContext:
        """Return the context cut to a budget; passages and artifacts are left out one by one.

        Earlier parts have precedence; later parts are kept if they still fit.
        """
        wanted = options or self.format or DEFAULT_FORMAT
        left_out: list[dict[str, Any]] = []
        tokens = wanted.max_tokens
        if tokens is None or estimate_tokens(_text(self.segments, wanted)) <= tokens:
            return FittedContext(self, left_out)
        budget = _budget(wanted, tokens)
        kept: list[ContextSegment] = []
        is_first = True
        for segment in self.segments:
            fitting, names = _fitting_parts(segment, wanted, budget, is_first=is_first)
            is_first = is_first and not any(map(segment.part_text, fitting))
            if not names:
                kept.append(segment)
                continue
            if fitting:
                kept.append(replace(segment, content=tuple(fitting)))
            gone: dict[str, Any] = {"kind": segment.kind, "origin": segment.name}
            gone |= {"names": names} if any(names) else {}
            left_out.append({**gone, "reason": over_budget(tokens)})
        return FittedContext(replace(self, segments=tuple(kept)), left_out)


def _budget(wanted: ContextFormat, tokens: int) -> Budget:
    """Return the budget of the segments, after subtracting the text around them."""
    template = wanted.template or "{context}"
    copies = template.count("{context}")
    return Budget(tokens, used=len(template) - copies * len("{context}"), copies=copies)


def _fitting_parts(
    segment: ContextSegment, wanted: ContextFormat, budget: Budget, *, is_first: bool
) -> tuple[list[Any], list[str]]:
    """Return the parts of a segment that fit the budget, and the names of the others."""
    before = len(_heading(segment, wanted)) + (0 if is_first else len(wanted.separator))
    between = len(_part_separator(segment, wanted))
    fitting: list[Any] = []
    names: list[str] = []
    has_text = False
    for number, part in enumerate(segment.parts, 1):
        size = len(segment.part_text(part)) + (between if fitting else 0)
        if budget.take(size if has_text or not size else size + before):
            fitting.append(part)
            has_text = has_text or bool(size)
        else:
            names.append(segment.part_name(part, number))
    return fitting, names


def _text(segments: Iterable[ContextSegment], wanted: ContextFormat) -> str:
    texts: list[str] = []
    for segment in segments:
        text = segment.to_prompt_string(_part_separator(segment, wanted))
        texts += [_heading(segment, wanted) + text] if text else []
    whole = wanted.separator.join(texts)
    if not whole or wanted.template is None:
        return whole
    return wanted.template.replace("{context}", whole)


def _heading(segment: ContextSegment, wanted: ContextFormat) -> str:
    return f"[{segment.name}]\n" if wanted.headers and segment.name else ""


def _part_separator(segment: ContextSegment, wanted: ContextFormat) -> str:
    return wanted.hit_separator if isinstance(segment, RetrievalContextSegment) else "\n"


def _plain_result(result: RetrievalResult) -> RetrievalResult:
    if result.metadata is None:
        return result
    return replace(result, metadata=cast("dict[str, Json]", json_of(dict(result.metadata))))


class AssembledContextBuilder:
    """Builds a context segment by segment."""

    def __init__(self) -> None:
        self._segments: list[ContextSegment] = []

    def add_state_context(self, name: str, value: object) -> Self:
        """Add a value of the state."""
        return self._added(StateContextSegment(name, value))

    def add_variable_context(self, name: str, value: object) -> Self:
        """Add a variable that is not part of the state."""
        return self._added(VariableContextSegment(name, value))

    def add_retrieval_context(
        self, collection: str | type[Collection], results: Sequence[RetrievalResult]
    ) -> Self:
        """Add passages of a collection."""
        name = collection if isinstance(collection, str) else collection.collection_name()
        return self._added(RetrievalContextSegment(name, tuple(results)))

    def add_artifacts_context(
        self, board: str, artifacts: Iterable[Envelope | Mapping[str, Any]]
    ) -> Self:
        """Add artifacts of a board."""
        items = (
            artifact.item() if isinstance(artifact, Envelope) else dict(artifact)
            for artifact in artifacts
        )
        return self._added(ArtifactsContextSegment(board, tuple(items)))

    def add_literal_context(self, text: str) -> Self:
        """Add a fixed text."""
        return self._added(LiteralContextSegment(text))

    def build(self, format: ContextFormat | None = None) -> AssembledContext:  # noqa: A002 - what it is
        """Return the context; without a format, the step's format is used."""
        return AssembledContext(tuple(self._segments), format)

    def _added(self, segment: ContextSegment) -> Self:
        self._segments.append(segment)
        return self


# -- the form in the journal

_KINDS: Final = {
    kind.kind: kind
    for kind in (
        StateContextSegment,
        VariableContextSegment,
        RetrievalContextSegment,
        ArtifactsContextSegment,
        LiteralContextSegment,
    )
}


def context_record(
    assembled: AssembledContext, left_out: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return the journal form of a context; `from_record` restores it."""
    made: dict[str, Any] = {
        "text": assembled.to_prompt_string(),
        "segments": [_entry(segment) for segment in assembled.segments],
        "left_out": list(left_out),
    }
    if assembled.format is not None:
        made["format"] = assembled.format.model_dump(mode="json", exclude_defaults=True)
    return made


def _entry(segment: ContextSegment) -> dict[str, Any]:
    content = segment.content
    if isinstance(segment, RetrievalContextSegment):
        content = [asdict(result) for result in segment.results]
    elif isinstance(segment, ArtifactsContextSegment):
        content = list(segment.artifacts)
    text = segment.to_prompt_string()
    return {"kind": segment.kind, "name": segment.name, segment.key: content, "text": text}


def from_record(record: Mapping[str, Any] | None) -> AssembledContext:
    """Restore a recorded context without reading sources again."""
    if not record:
        return AssembledContext.empty()
    given = record.get("format")
    format_ = None if given is None else ContextFormat.model_validate(given)
    return AssembledContext(tuple(map(_segment, record["segments"])), format_)


def _segment(entry: Mapping[str, Any]) -> ContextSegment:
    kind = _KINDS[entry["kind"]]
    if kind is LiteralContextSegment:
        return LiteralContextSegment(entry["text"])
    content = entry[kind.key]
    if kind is RetrievalContextSegment:
        content = tuple(RetrievalResult(**hit) for hit in content)
    return kind(entry["name"], content)  # pyright: ignore[reportCallIssue]
