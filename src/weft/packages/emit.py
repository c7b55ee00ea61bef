"""Python code of context assemblers that do the same as the declared contexts of a flow's steps.

The result is equal byte for byte, so that an author can start from it.
"""

import json
import keyword
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

from weft.engine.flow.plan import steps_of
from weft.errors import UsageError
from weft.spec.agents import LiteralIngredient
from weft.spec.flow import (
    ArtifactsIngredient,
    ContextFormat,
    RetrievalFilter,
    RetrievalIngredient,
    StateIngredient,
    StepContext,
    StepIngredient,
    VariableIngredient,
)
from weft.spec.tools import LOCAL
from weft.spec.workflow import WorkflowSpec

#: Names of parameters and variables that every class uses.
_OWN: Final = frozenset({"self", "state", "context", "builder"})

#: Everything that a module may import, besides the class of the state.
_IMPORTED: Final = frozenset(
    {
        "Any",
        "AssembledContext",
        "AssembledContextBuilder",
        "Collection",
        "ContextFormatOptions",
        "FilterConfig",
        "StepContext",
        "VectorSearchAdapter",
        "state_value",
    }
)

_STATE: Final = "state"


def assemblers(spec: WorkflowSpec) -> str:
    """Return a module with one class for each step that declares a context.

    Raises UsageError if there is no such step.
    """
    name = spec.orchestrator.workflow_name
    declared = [
        (step.name, step.context)
        for step in (steps_of(spec.flow) if spec.flow is not None else ())
        if step.context is not None and step.context.assembler is None
    ]
    if not declared:
        raise UsageError(
            f"no step of {name} declares a context", hint="give a step sources: context.sources"
        )
    module = _Module(spec.flow.state if spec.flow is not None else None)
    classes = [_class(module, step, context) for step, context in declared]
    head = (
        f'"""What the steps of {_doc(name)} are shown, one class for each step.\n\n'
        f"Written by `weft emit assemblers {_doc(name)}`. To use one, name it as the `assembler`\n"
        "of the step's context, in place of its sources.\n"
        '"""\n\n'
    )
    return "\n\n".join([head + module.imports(), *module.collections(), *classes])


@dataclass
class _Module:
    """The names and imports of a generated module."""

    state: str | None
    #: Names that are in use, including all that may be imported.
    names: set[str] = field(default_factory=lambda: set(_IMPORTED))
    #: The modules of the imported names.
    used: dict[str, set[str]] = field(default_factory=dict[str, "set[str]"])
    #: The class names of collections.
    known: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.state_class = "Any"
        if self.state is None or self.state.startswith(LOCAL):
            self.use("typing", "Any")
        else:
            module, _, self.state_class = self.state.partition(":")
            self.use(module, self.state_class.partition(".")[0])
        for name in ("AssembledContext", "AssembledContextBuilder", "StepContext"):
            self.use("weft.flow", name)

    def use(self, module: str, name: str) -> str:
        self.used.setdefault(module, set()).add(name)
        self.names.add(name)
        return name

    def collection(self, name: str) -> str:
        """Return the class name of a collection."""
        if name not in self.known:
            self.use("weft.retrieval", "Collection")
            self.use("weft.retrieval", "VectorSearchAdapter")
            self.known[name] = self.free(_pascal(name, "Collection"))
        return self.known[name]

    def free(self, wanted: str) -> str:
        """Return a name that nothing else has."""
        name, number = wanted, 1
        while name in self.names:
            number += 1
            name = f"{wanted}{number}"
        self.names.add(name)
        return name

    def imports(self) -> str:
        return "\n".join(
            f"from {module} import {', '.join(sorted(names))}"
            if len(names) < 4
            else f"from {module} import (\n    " + ",\n    ".join(sorted(names)) + ",\n)"
            for module, names in sorted(self.used.items())
        )

    def collections(self) -> Iterator[str]:
        for name, class_ in self.known.items():
            text = f'\nclass {class_}(Collection):\n    """The collection {_doc(name)}."""'
            if class_ != name:
                text += "\n\n    @classmethod\n    def collection_name(cls) -> str:\n"
                text += '        """Return what it is called in stores."""\n'
                text += f"        return {_text(name)}"
            yield text


def _class(module: _Module, step: str, context: StepContext) -> str:
    searched = {
        source.collection: ""
        for source in context.sources
        if isinstance(source, RetrievalIngredient)
    }
    taken = set(_OWN)
    for name in searched:
        searched[name] = _free_parameter(_snake(name), taken)
    given = f"self, state: {module.state_class}, context: StepContext"
    lines = [
        "",
        f"class {module.free(_pascal(step, 'Step') + 'ContextAssembler')}:",
        f'    """Shows the step {_doc(step)} what it declares."""',
        "",
        *_constructor(module, searched),
        f"    async def assemble({given}) -> AssembledContext:",
        '        """Put the context together."""',
        "        builder = AssembledContextBuilder()",
    ]
    for source in context.sources:
        lines += [f"        {line}" for line in _source(module, source, searched)]
    return "\n".join(
        [*lines, f"        return builder.build({_format(module, context.format)})", ""]
    )


def _constructor(module: _Module, searched: dict[str, str]) -> Iterator[str]:
    if not searched:
        return
    yield "    def __init__("
    yield "        self,"
    for name, parameter in searched.items():
        yield f"        {parameter}: VectorSearchAdapter[{module.collection(name)}],"
    yield "    ) -> None:"
    yield from (f"        self._{name} = {name}" for name in searched.values())
    yield ""


def _source(module: _Module, source: StepIngredient, searched: dict[str, str]) -> list[str]:
    match source:
        case StateIngredient(path=path):
            return [f"builder.add_state_context({_text(path)}, {_read(module, path)})"]
        case VariableIngredient(name=name):
            return [
                f"builder.add_variable_context({_text(name)}, context.variables[{_text(name)}])"
            ]
        case RetrievalIngredient():
            return _search(module, source, searched[source.collection])
        case ArtifactsIngredient(board=board):
            return [
                f"found = await context.board({_text(board)}).find(",
                f"    {_filters(module, source)}",
                ")",
                f"builder.add_artifacts_context({_text(board)}, found)",
            ]
        case LiteralIngredient(text=text):
            return [f"builder.add_literal_context({_text(text)})"]
        case _:
            return ["# What the agent has said before is added by its run."]


def _search(module: _Module, source: RetrievalIngredient, parameter: str) -> list[str]:
    path = source.query_path
    query = _text(source.query or "") if path is None else _read(module, path)
    filters = ", ".join(f"{_text(one.key)}: {_filter(module, one)}" for one in source.filters)
    return [
        f"results = await self._{parameter}.search(",
        f"    {query},",
        f"    top_k={source.top_k},",
        f"    min_relevance={source.min_relevance},",
        *([f"    filters={{{filters}}},"] if filters else []),
        ")",
        f"builder.add_retrieval_context({_text(source.collection)}, results)",
    ]


def _filter(module: _Module, wanted: RetrievalFilter) -> str:
    return _literal(wanted.value) if wanted.path is None else _read(module, wanted.path)


def _filters(module: _Module, source: ArtifactsIngredient) -> str:
    most = min(source.limit, source.filters.limit or source.limit)
    given = source.filters.model_dump(mode="json", exclude_defaults=True)
    name = module.use("weft.board", "FilterConfig")
    return f"{name}.model_validate({_literal({**given, 'limit': most})})"


def _format(module: _Module, wanted: ContextFormat) -> str:
    given = wanted.model_dump(mode="json", exclude_defaults=True)
    if not given:
        return ""
    module.use("weft.flow", "ContextFormatOptions")
    options = ", ".join(f"{key}={_literal(value)}" for key, value in given.items())
    return f"ContextFormatOptions({options})"


def _read(module: _Module, path: str) -> str:
    # Without a class, the state is a mapping, which has attributes of its own.
    hidden = keyword.iskeyword(path) or (module.state_class == "Any" and hasattr(dict, path))
    if path.isidentifier() and not hidden:
        return f"{_STATE}.{path}"
    return f"{module.use('weft.flow', 'state_value')}({_STATE}, {_text(path)})"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _literal(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return JSON as Python writes it."""
    match value:
        case str():
            return _text(value)
        case list():
            return f"[{', '.join(map(_literal, cast('list[Any]', value)))}]"
        case dict():
            entries = cast("dict[str, Any]", value).items()
            return f"{{{', '.join(f'{_text(key)}: {_literal(value)}' for key, value in entries)}}}"
        case _:
            return repr(value)


def _doc(text: str) -> str:
    """Return text escaped for a docstring."""
    return re.sub(r'[\\"\n]', " ", text)


def _words(text: str) -> Iterable[str]:
    return filter(None, re.split(r"[^A-Za-z0-9]+", text))


def _pascal(text: str, otherwise: str) -> str:
    name = "".join(word[0].upper() + word[1:] for word in _words(text))
    return name if name.isidentifier() else f"{otherwise}{name}"


def _snake(text: str) -> str:
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    return "_".join(_words(parted)).lower() or "collection"


def _free_parameter(wanted: str, taken: set[str]) -> str:
    name = wanted if wanted.isidentifier() and not keyword.iskeyword(wanted) else f"{wanted}_"
    name = name if name.isidentifier() else f"in_{name}"
    while name in taken:
        name += "_"
    taken.add(name)
    return name
