"""Putting what a model returned over the plain version: free texts that pass, and nothing else."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from weft.findings import Json
from weft.generator.draft import Replaced

Place: TypeAlias = tuple[str, ...]
#: Says why a text cannot stand at a place; None for a place where no text is free.
Check: TypeAlias = Callable[[Place], Callable[[str], list[str]] | None]

#: By what entries of a list are told apart, tried in order.
_IDENTITIES: Final = (
    ("agent_name",),
    ("filename",),
    ("agent", "function"),
    ("function",),
    ("name",),
    ("id",),
    ("agent", "model"),
    ("source_agent", "target_agent", "condition"),
)
#: After so many reports, nobody reads more.
_MOST: Final = 50
_DECIDED: Final = "the plan decides this"
NO_PART: Final = "there is no such part"
NO_FILE: Final = "there is no such file"
TWICE: Final = "it is there twice"
LEFT_OUT: Final = "it was left out"
#: Stands for all that is not listed.
MORE: Final = "more"
#: What is said of something that may belong to another workflow.
UNKNOWN: Final = frozenset({NO_PART, NO_FILE, TWICE})


@dataclass(frozen=True, slots=True)
class Comparison:
    """The plain version of one agent's part, compared with what a model made of it."""

    agent: str
    check: Check
    replaced: list[Replaced] = field(default_factory=list[Replaced])

    def report(self, what: str, why: str) -> None:
        """Note that something did not stay."""
        if len(self.replaced) < _MOST:
            self.replaced.append(Replaced(self.agent, _short(what), why))
        elif len(self.replaced) == _MOST:
            self.replaced.append(Replaced(self.agent, MORE, "what else differs is not listed"))

    def merged(self, plain: Json, given: Json, place: Place = ()) -> Json:
        """Return the plain version with the texts of the other that may stand there."""
        free = self.check(place)
        if same(plain, given) or says_nothing(given):
            return plain
        if free and isinstance(plain, str) and isinstance(given, str):
            faults = free(given)
            if faults:
                self.report(".".join(place), "; ".join(faults[:3]))
            return plain if faults else given
        ours, theirs = as_object(plain), as_object(given)
        if ours is not None and theirs is not None:
            return self._object(ours, theirs, place)
        entries, listed = _entries(plain), as_list(given)
        if entries is not None and listed is not None:
            return self._list(entries, listed, place)
        self.report(".".join(place) or "the whole reply", _wrong(plain, given))
        return plain

    def _object(
        self, plain: Mapping[str, Json], given: Mapping[str, Json], place: Place
    ) -> dict[str, Json]:
        for key, value in given.items():
            if key not in plain and not says_nothing(value):
                self.report(".".join((*place, str(key))), NO_PART)
        return {
            key: self.merged(value, given[key], (*place, key)) if key in given else value
            for key, value in plain.items()
        }

    def _list(
        self, plain: Mapping[str, Mapping[str, Json]], given: list[Json], place: Place
    ) -> list[Json]:
        found: dict[str, Json] = {}
        for it in given:
            name = _identity(it, plain)
            if name is None or name in found:
                why = NO_PART if name is None else TWICE
                self.report(".".join((*place, name or _named(it))), why)
            else:
                found[name] = it
        for name in plain:
            if name not in found:
                self.report(".".join((*place, name)), LEFT_OUT)
        return [
            self.merged(it, found[name], (*place, name)) if name in found else it
            for name, it in plain.items()
        ]


def as_object(value: Json) -> Mapping[str, Json] | None:
    """Return a value if it is an object."""
    return cast("Mapping[str, Json]", value) if isinstance(value, Mapping) else None


def as_list(value: Json) -> list[Json] | None:
    """Return a value if it is a list."""
    return cast("list[Json]", value) if isinstance(value, list) else None


def same(plain: Json, given: Json) -> bool:
    """Tell whether two values are the same JSON; lists of names may be in any order."""
    if isinstance(plain, bool) or isinstance(given, bool):
        return plain is given
    ours, theirs = as_list(plain), as_list(given)
    if ours and theirs and all(isinstance(it, str) for it in (*ours, *theirs)):
        return sorted(map(str, ours)) == sorted(map(str, theirs))
    return plain == given


def says_nothing(value: Json) -> bool:
    """Tell whether a value leaves open what it could say."""
    fields = as_object(value)
    if fields is not None:
        return all(it is None for it in fields.values())
    return value is None or value in ("", [])


def _entries(plain: Json) -> dict[str, Mapping[str, Json]] | None:
    """Return the entries of a list by what tells them apart; None where nothing does."""
    entries = [as_object(it) for it in as_list(plain) or ()]
    named = {name: it for it in entries if it is not None and (name := _key(it))}
    return named if len(named) == len(entries) and isinstance(plain, list) else None


def _key(entry: Mapping[str, Json]) -> str | None:
    for names in _IDENTITIES:
        # A condition may be left out.
        if all(name in entry for name in names[:2]):
            return " ".join(str(entry.get(name))[:200] for name in names)
    return None


def _identity(given: Json, plain: Mapping[str, Mapping[str, Json]]) -> str | None:
    """Return which of the plain entries is meant."""
    entry = as_object(given)
    name = _key(entry) if entry is not None else None
    return name if name in plain else None


def _named(given: Json) -> str:
    entry = as_object(given)
    return (_key(entry) if entry is not None else None) or f"an entry that is {_kind(given)}"


def _wrong(plain: Json, given: Json) -> str:
    if _kind(plain) == _kind(given):
        return _DECIDED
    return f"it is {_kind(given)} where {_kind(plain)} is due"


def _kind(value: Json) -> str:
    kinds: Sequence[tuple[type, str]] = (
        (bool, "true or false"),
        (str, "text"),
        (int, "a number"),
        (float, "a number"),
        (list, "a list"),
        (dict, "an object"),
    )
    return next((word for kind, word in kinds if isinstance(value, kind)), "nothing")


def _short(text: str) -> str:
    seen = "".join(it if it.isprintable() else " " for it in text[:200])
    return seen if len(seen) <= 120 else f"{seen[:117]}..."
