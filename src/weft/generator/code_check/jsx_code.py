"""Whether a component that a model wrote can be part of a package. It is parsed, never executed.

What passes has one component, sends the declared answer, and reaches only what it is given: not the
page around it, no address, no markup made of text.
"""

from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

from weft.generator.code_check.python_code import invisible_sign

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_BYTES: Final = 64_000
_DEEPEST: Final = 200
MODULES: Final = frozenset({"react", "@kit/ui", "@kit/chart", "@kit/icons"})
_ANSWER: Final = "onResponse"


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


#: Harmless names of the language.
_GLOBALS: Final = _set(
    "Array Boolean Date Error Infinity Intl JSON Map Math NaN Number Object RegExp Set String "
    "isFinite isNaN parseFloat parseInt undefined"
)
#: Names that lead out of the component, as variables or as properties.
_FORBIDDEN: Final = _set(
    "EventSource Function Image Proxy Reflect WebSocket Worker XMLHttpRequest __proto__ caches "
    "cloneElement constructor contentDocument contentWindow cookie createElement createPortal "
    "createRoot dangerouslySetInnerHTML defaultView defineProperty document eval fetch frames "
    "getOwnPropertyDescriptor getOwnPropertyDescriptors getPrototypeOf globalThis href import "
    "importScripts indexedDB innerHTML insertAdjacentHTML localStorage location navigator open "
    "opener outerHTML ownerDocument postMessage prototype require self sendBeacon sessionStorage "
    "setAttribute setInterval setPrototypeOf setTimeout src srcDoc submit top view window"
)
#: Attributes that contain an address, or can.
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
#: What must not run when the file is loaded.
_CALLS: Final = _set("call_expression new_expression await_expression")
_TAGS: Final = _set("jsx_opening_element jsx_closing_element jsx_self_closing_element")
_CALLEES: Final = (_ANSWER, f"props.{_ANSWER}")


def jsx_faults(
    source: str, component: str, keys: Sequence[str], needed: Sequence[str] | None = None
) -> list[str]:
    """Return why a text cannot be the component; nothing if it can.

    `keys` are those that an answer may have, `needed` those it must have; by default all.
    """
    if len(source.encode("utf-8", "replace")) > MAX_BYTES:
        return [f"it is longer than {MAX_BYTES:,} bytes"]
    if fault := invisible_sign(source):
        return [fault]
    root = _parsed(source)
    if isinstance(root, str):
        return [root]
    if _is_deep(root):
        return ["it is nested too deeply"]
    nodes = [*_nodes(root)]
    broken = next((node for node in nodes if node.is_error or node.is_missing), None)
    if broken or root.has_error:
        return [f"it is not valid JSX at line {(broken or root).start_point[0] + 1}"]
    found = (
        *_of_module(root, component),
        *_of_names(nodes),
        *(fault for node in nodes for fault in _of_node(node)),
        *_of_answers(nodes, keys, keys if needed is None else needed),
    )
    return list(dict.fromkeys(found))


def _parsed(source: str) -> "Node | str":
    try:  # The parser is an extra: only components of a model need it.
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
    # The time to find the parent of a node grows with its depth.
    level = [root]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in node.children]
    return bool(level)


def _text(node: "Node | None") -> str:
    return node.text.decode() if node and node.text else ""


def _of_module(root: "Node", component: str) -> Iterator[str]:
    """Yield what is wrong with the statements of the file."""
    defaults: list[str] = []
    for node in root.named_children:
        if node.type not in _STATEMENTS:
            yield f"line {node.start_point[0] + 1} runs when the file is loaded"
        elif node.type == "import_statement":
            module = _text(node.child_by_field_name("source")).strip("\"'")
            if module not in MODULES:
                yield f"it imports {module[:60]}, which is not allowed"
        elif node.type == "export_statement":
            if not any(child.type == "default" for child in node.children):
                yield "it exports more than its component"
            inner = node.child_by_field_name("declaration") or node.child_by_field_name("value")
            name = inner.child_by_field_name("name") if inner else None
            is_name = inner is not None and inner.type == "identifier"
            defaults.append(_text(inner) if is_name else _text(name))
        elif node.type == "lexical_declaration":
            yield from _of_constants(node)
    if defaults != [component]:
        yield f"its one default export is not {component}"


def _of_constants(declaration: "Node") -> Iterator[str]:
    for node in declaration.named_children:
        value = node.child_by_field_name("value")
        plain = value is not None and value.type in ("arrow_function", "function_expression")
        inside = () if plain or value is None else _nodes(value)
        if any(inner.type in _CALLS for inner in inside):
            yield f"line {node.start_point[0] + 1} runs when the file is loaded"


def _of_names(nodes: Sequence["Node"]) -> Iterator[str]:
    """Yield the names that lead out of the component, or that are not declared."""
    known = _GLOBALS.union(
        _text(node) for node in nodes if node.type in _NAMES and _is_declared(node)
    )
    for node in nodes:
        name = _text(node)
        leads_out = node.type in _NAMES and (name in _FORBIDDEN or "\\" in name)
        free = node.type == "identifier" and name not in known and not _is_element(node)
        if leads_out or free:
            yield f"it uses {name[:40]}, which is not allowed"


def _is_element(node: "Node") -> bool:
    inside = node.parent is not None and node.parent.type in _TAGS
    return inside and _text(node)[0].islower()


def _is_declared(node: "Node") -> bool:
    """Return whether a name is defined here: as variable, parameter, function or import."""
    if node.type == "shorthand_property_identifier_pattern":
        return True
    inner, outer = node, node.parent
    while outer is not None and outer.type in _PATTERNS:
        inner, outer = outer, outer.parent
    if outer is None or node.type != "identifier":
        return False
    fields = ("name", "pattern", "parameter", "parameters", "left", "alias")
    place = any(outer.child_by_field_name(field) == inner for field in fields)
    return (place and outer.type in _DECLARING) or outer.type in _LISTS


def _of_node(node: "Node") -> Iterator[str]:
    match node.type:
        case "import":
            if node.parent is not None and node.parent.type != "import_statement":
                yield "it imports while it runs"
        case "subscript_expression":
            index = node.child_by_field_name("index")
            if index is None or index.type not in ("string", "number"):
                yield "it computes the name of a property"
        case "string":
            if _is_key(node) and (_text(node)[1:-1] in _FORBIDDEN or "\\" in _text(node)):
                yield f"it uses {_text(node)[:40]}, which is not allowed"
        case "computed_property_name" | "with_statement" | "while_statement" | "do_statement":
            yield f"it has a {node.type.replace('_', ' ')}"
        case "string_fragment" | "jsx_text":
            text = "".join(_text(node).lower().split())
            if any(address in text for address in ("javascript:", "url(", "data:text")):
                yield "it has an address in a text"
        case _:
            yield from _of_changes(node)
            yield from _of_markup(node)


def _of_changes(node: "Node") -> Iterator[str]:
    """Yield what would change objects that others use."""
    if node.type in _CHANGES:
        changed = node.child_by_field_name("left") or node.child_by_field_name("argument")
        if changed is None or changed.type not in ("identifier", "array_pattern", "object_pattern"):
            yield "it changes an object from outside"
    elif node.type == "identifier" and _text(node) == "Object":
        part = node.parent.child_by_field_name("property") if node.parent else None
        if _text(part) not in _OF_OBJECTS:
            yield "it uses Object for more than is allowed"
    elif node.type == "member_expression" and node.parent and node.parent.type in _PATTERNS:
        yield "it changes an object from outside"


def _of_markup(node: "Node") -> Iterator[str]:
    match node.type:
        case "jsx_expression":
            if any(inner.type == "spread_element" for inner in node.named_children):
                yield "it spreads attributes that it does not name"
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
    """Return whether a text is the name of a property."""
    parent = node.parent
    keys = (parent.child_by_field_name(name) for name in ("key", "index")) if parent else ()
    return node in keys


def _of_answers(
    nodes: Sequence["Node"], keys: Collection[str], needed: Collection[str]
) -> Iterator[str]:
    """Yield the calls of onResponse that do not send the declared keys."""
    calls = [node for node in nodes if node.type == "call_expression"]
    answers = [node for node in calls if _text(node.child_by_field_name("function")) in _CALLEES]
    if not answers:
        yield f"it never calls {_ANSWER}"
    uses = [node for node in nodes if _text(node) == _ANSWER and node.type in _NAMES]
    if len(uses) > len(answers) + 1:
        yield f"it passes {_ANSWER} on"
    for node in answers:
        arguments = node.child_by_field_name("arguments")
        given = arguments.named_children if arguments else []
        sent = _keys(given[0]) if len(given) == 1 and given[0].type == "object" else None
        if sent is None or not {*needed} <= sent <= {*keys}:
            wanted = ", ".join(keys) or "an empty object"
            yield f"it must call {_ANSWER}({{...}}) with exactly: {wanted}"


def _keys(given: "Node") -> set[str]:
    found: set[str] = set()
    for node in given.named_children:
        key = node.child_by_field_name("key") if node.type == "pair" else node
        found.add(_text(key).strip("\"'"))
    return found
