"""Whether a component that a model wrote may take the place of the plain one. It is only parsed.

What passes has one component, sends the declared answer, and reaches nothing but what it is given:
no page around it, no address, no markup from text.
"""

from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

from weft.generator.enrich.texts import unseen

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_BYTES: Final = 64_000
_DEEPEST: Final = 200
_MODULES: Final = frozenset({"react", "@kit/ui", "@kit/chart", "@kit/icons"})
_ANSWER: Final = "onResponse"


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


#: What the language itself has, and does no harm.
_GLOBALS: Final = _set(
    "Array Boolean Date Error Infinity Intl JSON Map Math NaN Number Object RegExp Set String "
    "isFinite isNaN parseFloat parseInt undefined"
)
#: Names that lead out, whatever they stand for here: as variables or as properties.
_FORBIDDEN: Final = _set(
    "EventSource Function Image Proxy Reflect WebSocket Worker XMLHttpRequest __proto__ caches "
    "cloneElement constructor contentDocument contentWindow cookie createElement createPortal "
    "createRoot dangerouslySetInnerHTML defaultView defineProperty document eval fetch frames "
    "getOwnPropertyDescriptor getOwnPropertyDescriptors getPrototypeOf globalThis href import "
    "importScripts indexedDB innerHTML insertAdjacentHTML localStorage location navigator open "
    "opener outerHTML ownerDocument postMessage prototype require self sendBeacon sessionStorage "
    "setAttribute setInterval setPrototypeOf setTimeout src srcDoc submit top view window"
)
#: Attributes that name an address, or may in what they hold.
_ADDRESSES: Final = _set("action background data formAction ping poster srcSet style xlinkHref")
_CHANGES: Final = _set(
    "assignment_expression augmented_assignment_expression delete for_in_statement "
    "update_expression"
)
_OF_OBJECTS: Final = _set("entries fromEntries keys values")
_ELEMENTS: Final = _set("base embed frame iframe link meta object script style")
_NAMES: Final = _set(
    "identifier property_identifier shorthand_property_identifier "
    "shorthand_property_identifier_pattern private_property_identifier"
)
_STATEMENTS: Final = _set(
    "comment function_declaration import_statement lexical_declaration export_statement "
    "empty_statement"
)

_PATTERNS: Final = _set("array_pattern object_pattern pair_pattern assignment_pattern rest_pattern")
_LISTS: Final = _set("formal_parameters import_clause namespace_import")
_DECLARING: Final = _set(
    "variable_declarator function_declaration function_expression arrow_function catch_clause "
    "import_specifier class_declaration for_in_statement"
)
_TAGS: Final = _set("jsx_opening_element jsx_closing_element jsx_self_closing_element")
_CALLEES: Final = (_ANSWER, f"props.{_ANSWER}")


def jsx_faults(source: str, component: str, response_keys: Sequence[str]) -> list[str]:
    """Say why a text cannot be the component; nothing if it can."""
    if len(source.encode("utf-8", "replace")) > MAX_BYTES:
        return [f"it is longer than {MAX_BYTES:,} bytes"]
    if fault := unseen(source):
        return [fault]
    root = _parsed(source)
    if isinstance(root, str):
        return [root]
    if _is_deep(root):
        return ["it is nested too deeply"]
    nodes = [*_nodes(root)]
    broken = next((it for it in nodes if it.is_error or it.is_missing), None)
    if broken or root.has_error:
        return [f"it is not valid JSX at line {(broken or root).start_point[0] + 1}"]
    found = (
        *_of_module(root, component),
        *_of_names(nodes),
        *(fault for it in nodes for fault in _of_node(it)),
        *_of_answers(nodes, response_keys),
    )
    return list(dict.fromkeys(found))


def _parsed(source: str) -> "Node | str":
    try:  # the parser is an extra that only those need who let a model write components
        tree_sitter = import_module("tree_sitter")
        javascript = import_module("tree_sitter_javascript")
    except ImportError:
        return 'it cannot be parsed here: pip install "weft-agents[generator]"'
    parser = tree_sitter.Parser(tree_sitter.Language(javascript.language()))
    return parser.parse(source.encode()).root_node


def _nodes(root: "Node") -> Iterator["Node"]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def _is_deep(root: "Node") -> bool:
    # To look for the parent of a node takes the longer, the deeper it lies.
    level = [root]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in node.children]
    return bool(level)


def _text(node: "Node | None") -> str:
    return node.text.decode() if node and node.text else ""


def _of_module(root: "Node", component: str) -> Iterator[str]:
    """Yield what is wrong with the statements of the file."""
    defaults: list[str] = []
    for it in root.named_children:
        if it.type not in _STATEMENTS:
            yield f"line {it.start_point[0] + 1} would be carried out when the file is loaded"
        elif it.type == "import_statement":
            module = _text(it.child_by_field_name("source")).strip("\"'")
            if module not in _MODULES:
                yield f"it imports {module[:60]}, which it may not"
        elif it.type == "export_statement":
            if not any(child.type == "default" for child in it.children):
                yield "it exports more than its component"
            inner = it.child_by_field_name("declaration") or it.child_by_field_name("value")
            name = inner.child_by_field_name("name") if inner else None
            is_name = inner is not None and inner.type == "identifier"
            defaults.append(_text(inner) if is_name else _text(name))
        elif it.type == "lexical_declaration":
            yield from _of_constants(it)
    if defaults != [component]:
        yield f"its one default export is not {component}"


def _of_constants(declaration: "Node") -> Iterator[str]:
    for node in declaration.named_children:
        value = node.child_by_field_name("value")
        plain = value is not None and value.type in ("arrow_function", "function_expression")
        if (
            not plain
            and value is not None
            and any(
                it.type in ("call_expression", "new_expression", "await_expression")
                for it in _nodes(value)
            )
        ):
            yield f"line {node.start_point[0] + 1} would be carried out when the file is loaded"


def _of_names(nodes: Sequence["Node"]) -> Iterator[str]:
    """Yield the names that lead out of the component, or that nobody has declared."""
    known = _GLOBALS.union(_text(it) for it in nodes if it.type in _NAMES and _is_declared(it))
    for it in nodes:
        name = _text(it)
        leads_out = it.type in _NAMES and (name in _FORBIDDEN or "\\" in name)
        free = it.type == "identifier" and name not in known and not _is_element(it)
        if leads_out or free:
            yield f"it uses {name[:40]}, which it may not"


def _is_element(node: "Node") -> bool:
    inside = node.parent is not None and node.parent.type in _TAGS
    return inside and _text(node)[0].islower()


def _is_declared(node: "Node") -> bool:
    """Tell whether a name gets its meaning here: as variable, parameter, function or import."""
    if node.type == "shorthand_property_identifier_pattern":
        return True
    inner, outer = node, node.parent
    while outer is not None and outer.type in _PATTERNS:
        inner, outer = outer, outer.parent
    if outer is None or node.type != "identifier":
        return False
    fields = ("name", "pattern", "parameter", "parameters", "left", "alias")
    place = any(outer.child_by_field_name(it) == inner for it in fields)
    return (place and outer.type in _DECLARING) or outer.type in _LISTS


def _of_node(node: "Node") -> Iterator[str]:
    match node.type:
        case "import":
            if node.parent is not None and node.parent.type != "import_statement":
                yield "it imports while it runs"
        case "subscript_expression":
            index = node.child_by_field_name("index")
            if index is None or index.type not in ("string", "number"):
                yield "it works out the name of a property"
        case "string":
            if _is_key(node) and (_text(node)[1:-1] in _FORBIDDEN or "\\" in _text(node)):
                yield f"it uses {_text(node)[:40]}, which it may not"
        case "computed_property_name" | "with_statement" | "while_statement" | "do_statement":
            yield f"it has a {node.type.replace('_', ' ')}"
        case "string_fragment" | "jsx_text":
            text = "".join(_text(node).lower().split())
            if any(it in text for it in ("javascript:", "url(", "data:text")):
                yield "it has an address in a text"
        case _:
            yield from _of_changes(node)
            yield from _of_markup(node)


def _of_changes(node: "Node") -> Iterator[str]:
    """Yield what would change objects that others use as well."""
    if node.type in _CHANGES:
        changed = node.child_by_field_name("left") or node.child_by_field_name("argument")
        if changed is None or changed.type not in ("identifier", "array_pattern", "object_pattern"):
            yield "it changes an object from outside"
    elif node.type == "identifier" and _text(node) == "Object":
        part = node.parent.child_by_field_name("property") if node.parent else None
        if _text(part) not in _OF_OBJECTS:
            yield "it uses Object for more than it may"
    elif node.type == "member_expression" and node.parent and node.parent.type in _PATTERNS:
        yield "it changes an object from outside"


def _of_markup(node: "Node") -> Iterator[str]:
    match node.type:
        case "jsx_expression":
            if any(it.type == "spread_element" for it in node.named_children):
                yield "it takes attributes over that it does not name"
        case "jsx_opening_element" | "jsx_self_closing_element":
            name = _text(node.child_by_field_name("name")).lower()
            if name in _ELEMENTS:
                yield f"it has an element {name}"
        case "jsx_attribute":
            name = _text(node.named_children[0])
            if name in _ADDRESSES:
                yield f"it has the attribute {name}"
        case _:
            return


def _is_key(node: "Node") -> bool:
    """Tell whether a text is the name of a property."""
    parent = node.parent
    keys = (parent.child_by_field_name(it) for it in ("key", "index")) if parent else ()
    return node in keys


def _of_answers(nodes: Sequence["Node"], response_keys: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with what is sent: every call sends the declared keys and no others."""
    calls = [it for it in nodes if it.type == "call_expression"]
    answers = [it for it in calls if _text(it.child_by_field_name("function")) in _CALLEES]
    if not answers:
        yield f"it never calls {_ANSWER}"
    uses = [it for it in nodes if _text(it) == _ANSWER and it.type in _NAMES]
    if len(uses) > len(answers) + 1:
        yield f"it passes {_ANSWER} on"
    for it in answers:
        arguments = it.child_by_field_name("arguments")
        given = arguments.named_children if arguments else []
        keys = _keys(given[0]) if len(given) == 1 and given[0].type == "object" else None
        if keys != set(response_keys):
            yield f"it does not answer with {', '.join(response_keys) or 'an empty object'} alone"


def _keys(given: "Node") -> set[str]:
    found: set[str] = set()
    for it in given.named_children:
        key = it.child_by_field_name("key") if it.type == "pair" else it
        found.add(_text(key).strip("\"'"))
    return found
