"""One Python file of a package, known by its syntax tree alone: it is never imported."""

import ast
from collections import Counter
from dataclasses import dataclass, replace
from typing import TypeAlias

from weft.check.context_sight import Handing, Taker
from weft.check.signatures import Function, Spot
from weft.check.uncallable import Thing
from weft.check.variable_writes import Write
from weft.findings import Place

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class PlacedWrite:
    """Code that sets a variable, and where.

    `parameter` names the parameter through which it does, or is "" if it goes another way.
    """

    write: Write
    spot: Spot
    parameter: str


@dataclass(frozen=True, slots=True)
class Definition:
    """What stands behind a name at the top level of a file.

    `origin` is set for an import from another file of the package: that file and the name in it,
    or "" where the file is imported as a whole.
    """

    file: str
    mentions: frozenset[str]
    written: tuple[PlacedWrite, ...]
    handed: tuple[Handing, ...]
    origin: tuple[str, str] | None = None
    #: The UI tools it shows to a person; None among them where it does not show which.
    asked: frozenset[str | None] = frozenset()
    #: What is imported inside it from other files of the package, like `origin`.
    inner: frozenset[tuple[str, str]] = frozenset()
    #: What it raises, by name; "" where that does not show.
    raised: frozenset[str] = frozenset()
    #: It has several meanings, or takes the context and is wrapped: it may not be what runs.
    veiled: bool = False
    #: It holds a generator, or a function that is wrapped in something.
    wrapped: bool = False
    #: It gets at functions by names that it works out.
    by_name: bool = False
    #: It makes functions or objects that other code may call.
    roams: bool = False

    @property
    def writes(self) -> tuple[Write, ...]:
        """The variables it sets."""
        return tuple(placed.write for placed in self.written)

    def beside(self, other: "Definition", *, veiled: bool) -> "Definition":
        """Return what stands behind a name that may mean this or, later in the file, another."""
        return replace(
            other,
            mentions=self.mentions | other.mentions,
            written=tuple(dict.fromkeys((*self.written, *other.written))),
            handed=tuple(dict.fromkeys((*self.handed, *other.handed))),
            asked=self.asked | other.asked,
            inner=self.inner | other.inner | ({self.origin} if self.origin else set()),
            raised=self.raised | other.raised,
            veiled=self.veiled or other.veiled or veiled,
            wrapped=self.wrapped or other.wrapped,
            by_name=self.by_name or other.by_name,
            roams=self.roams or other.roams,
        )


@dataclass(frozen=True, slots=True)
class Module:
    """What one file defines and uses; `anything` means that it may define further names."""

    path: str
    #: Empty where bytes and characters are the same.
    lines: tuple[str, ...]
    definitions: dict[str, Definition]
    functions: dict[str, Function]
    #: The code of the same functions.
    bodies: dict[str, FunctionNode]
    #: The functions at any depth, each with what the top-level statement around it holds.
    takers: tuple[tuple[Taker, Definition], ...]
    strings: frozenset[str]
    imports: frozenset[str]
    #: The names imported at any depth, with where in the package they come from, if they do.
    origins: dict[str, tuple[str, str] | None]
    #: The names that stand for something else than a function, with what that is.
    things: dict[str, Thing]
    #: The files of the package from which all names are imported.
    stars: frozenset[str]
    anything: bool
    #: How many meanings each name is given, at any depth; the same import counts once.
    bindings: Counter[str]
    #: The names under which something of Weft is imported, with Weft's own name for it.
    own: dict[str, str]
    #: The attributes that are set, of whatever it may be.
    patches: frozenset[str]
    #: The names whose values are not just called.
    about: frozenset[str]
    #: What stands outside functions gets at names that it works out.
    by_name: bool

    def is_plain(self, name: str) -> bool:
        """Tell whether a name has one meaning only, wherever in this file it stands."""
        return self.bindings[name] == 1 and not self.anything

    def means(self, name: str) -> str:
        """Return which name of Weft a name stands for, such as `weft.Ask`; "" if for none."""
        holder, _, asked = name.rpartition(".")
        if not self.is_plain(holder or name):
            return ""
        if holder:
            return asked if self.own.get(holder) == "weft" else ""
        return self.own.get(name, "")

    def defines(self, name: str) -> bool:
        """Tell whether the name can be taken from this file."""
        return self.anything or name in self.definitions

    def thing(self, name: str) -> Thing | None:
        """Say what stands behind a name that is certainly no function."""
        return None if self.anything else self.things.get(name)

    def place(self, spot: Spot) -> Place:
        """Say where something stands, in characters from 1."""
        if not self.lines:
            return Place(self.path, spot.line, spot.offset + 1)
        before = self.lines[spot.line - 1].encode()[: spot.offset]
        return Place(self.path, spot.line, len(before.decode()) + 1)
