"""What Python that a model wrote may use. Everything that is not listed is refused.

Modules are listed with their names, because a harmless module can lead to another one:
`json.codecs` leads to `open`. Nothing here imports by name, evaluates text, or reads a file.
"""

from collections.abc import Mapping
from typing import Final


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


#: Names that may be imported, by module.
NAMES: Final[Mapping[str, frozenset[str]]] = {
    module: _set(names)
    for module, names in {
        "weft": "Context Refuse RetryModel show_ui_tool tool use_ui_tool",
        "pydantic": "BaseModel Field",
        "typing": "Any Final Literal Optional Union cast",
        "re": "DOTALL IGNORECASE MULTILINE compile escape findall finditer fullmatch match search "
        "split sub subn",
        "json": "JSONDecodeError dumps loads",
        "math": "ceil comb cos e exp fabs floor fmod fsum gcd hypot inf isclose isfinite isinf "
        "isnan isqrt log log10 log2 nan pi pow prod sin sqrt tan trunc",
        "datetime": "UTC date datetime time timedelta timezone",
        "statistics": "StatisticsError fmean mean median mode pstdev quantiles stdev variance",
        "collections": "Counter OrderedDict defaultdict deque",
        "itertools": "accumulate chain combinations groupby islice pairwise zip_longest",
        "functools": "partial reduce",
        "decimal": "Decimal InvalidOperation ROUND_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP",
        "enum": "Enum IntEnum StrEnum",
        "textwrap": "dedent fill indent shorten wrap",
        "string": "ascii_letters ascii_lowercase ascii_uppercase digits punctuation whitespace",
        "html": "escape unescape",
        "urllib.parse": "parse_qs quote quote_plus unquote urlencode urljoin urlsplit",
        "hashlib": "blake2b sha256 sha512",
    }.items()
}
#: Names that code must not redefine: what happens at import depends on them.
RESERVED: Final = frozenset(
    name for module in ("weft", "pydantic", "typing", "enum") for name in NAMES[module]
)
#: Libraries that code may require, with the names that may be imported from their modules.
LIBRARIES: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    "python-dateutil": {"dateutil.parser": _set("ParserError isoparse parse")},
}
BUILTINS: Final = _set(
    "abs all any ascii bin bool bytes chr dict divmod enumerate filter float frozenset hash hex "
    "int isinstance issubclass len list map max min next object oct ord pow range repr reversed "
    "round set slice sorted str sum tuple zip ArithmeticError AttributeError Exception IndexError "
    "KeyError LookupError OverflowError RuntimeError StopIteration TimeoutError TypeError "
    "UnicodeError ValueError ZeroDivisionError"
)
#: Attributes that lead out of an object, change shared objects, or let a text name attributes.
ATTRIBUTES: Final = _set(
    "format format_map model_config model_fields model_rebuild mro parse_file parse_raw register "
    "with_traceback"
)
#: The prefixes of private attributes, and of those of frames, code and generators.
INNER: Final = ("_", "ag_", "co_", "cr_", "f_", "gi_", "tb_")

#: The methods of a context: with the name of a variable, and without.
READS: Final = _set("contains get get_bool get_dict get_float get_int get_list get_str refresh")
WRITES: Final = frozenset({"set"})
WITHOUT_NAME: Final = _set("agent answers app ask cache_seed key progress run user")
