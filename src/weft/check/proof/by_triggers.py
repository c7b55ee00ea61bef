"""What triggers set, as happenings: all that fires at once sets its variables together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from weft.check.bindings import bound_model
from weft.check.proof.firings import Firing, Reader
from weft.check.proof.happenings import Doubt, Happening, Setting, When
from weft.check.proof.texts import together
from weft.check.subject import Subject
from weft.spec.triggers import Match
from weft.spec.variables import DerivedSource, Variable

_Fired: TypeAlias = tuple[Firing, Setting]


@dataclass
class _Sum:
    """What all triggers set that fire together: for sure, and perhaps."""

    sure: list[Setting] = field(default_factory=list[Setting])
    unsure: list[Setting] = field(default_factory=list[Setting])
    doubts: list[Doubt] = field(default_factory=list[Doubt])


def triggered(subject: Subject, variables: Mapping[str, Variable]) -> Iterator[Happening]:
    """Yield the happenings by which triggers set one of `variables`."""
    reader = Reader(subject, variables)
    fired = [
        found
        for name, variable in variables.items()
        if isinstance(variable.source, DerivedSource)
        for found in reader.settings(name, variable.source, variable.type)
    ]
    texts: dict[When, dict[Match, list[Setting]]] = {}
    sums: dict[tuple[Happening, str], _Sum] = {}
    for firing, setting in _taken_apart(fired):
        for when in firing.moments:
            if firing.text is not None:
                texts.setdefault(when, {}).setdefault(firing.text, []).append(setting)
                continue
            bare = Happening(when, (), tick=firing.tick, stage=firing.stage, call=firing.call)
            sum_ = sums.setdefault((bare, firing.cause), _Sum())
            (sum_.unsure if firing.doubt else sum_.sure).append(setting)
            sum_.doubts += [firing.doubt] if firing.doubt else []
    for (bare, _), sum_ in sums.items():
        yield from _filled(bare, sum_)
    for when, found in texts.items():
        yield from _said(subject, when, found)


def _taken_apart(fired: Sequence[_Fired]) -> Iterator[_Fired]:
    """Put in doubt what two variables take from one place: they never get different values."""
    takers: dict[tuple[str, str, str], set[str]] = {}
    for firing, setting in fired:
        for part in _parts(firing):
            takers.setdefault((firing.call, firing.cause, part), set()).add(setting.variable)
    for firing, setting in fired:
        inside = (takers[firing.call, firing.cause, part] for part in _parts(firing))
        others = sorted(set[str]().union(*inside) - {setting.variable})
        if others and (firing.doubt is None or firing.doubt.mild):
            name = setting.variable
            why = f"{name} and {others[0]} take their values from one place, {firing.part}"
            doubt = Doubt(why, "let one of them decide about handoffs", name)
            yield replace(firing, doubt=doubt), setting
        else:
            yield firing, setting


def _parts(firing: Firing) -> Iterator[str]:
    """Yield the first step of a dotted path: what stands under one step is taken for one place."""
    if firing.part is not None:
        yield firing.part.partition(".")[0]


def _filled(bare: Happening, sum_: _Sum) -> Iterator[Happening]:
    """Yield what happens for sure, and beside it what may happen, which also may not."""
    if not sum_.doubts:
        yield replace(bare, settings=tuple(sum_.sure))
        return
    doubt = next((it for it in sum_.doubts if not it.mild), sum_.doubts[0])
    if sum_.sure:
        yield replace(bare, settings=tuple(sum_.sure), doubt=replace(doubt, mild=True))
    yield replace(bare, settings=(*sum_.sure, *sum_.unsure), doubt=doubt)


def _said(
    subject: Subject, when: When, found: Mapping[Match, Sequence[Setting]]
) -> Iterator[Happening]:
    """Yield the texts that somebody may say: each sets all that waits for such a text."""
    settings = list(found.values())
    texts = together(list(found))
    name = settings[0][0].variable
    why = f"one text may be what {name} waits for and others too, or not"
    doubt = Doubt(why, "match with contains or equals instead of regex", name)
    # Of replies that must be JSON it is not known which texts are in them.
    bound = bound_model(subject, when.agent or "")
    if bound:
        why = f"{name} waits for a text, but the replies of {when.agent} are JSON, as {bound} says"
        doubt = Doubt(why, "let a tool take the field as an argument, and the call set it", name)
    for indexes in texts.sure:
        yield Happening(when, _all(settings, indexes), doubt if bound else None)
    for indexes in texts.likely:
        yield Happening(when, _all(settings, indexes), doubt)
    if bound or not texts.complete:
        every = (replace(one, keeps=True) for one in _all(settings, range(len(settings))))
        yield Happening(when, tuple(every), doubt)
    yield Happening(when, (), doubt if bound or not texts.silence else None)


def _all(settings: Sequence[Sequence[Setting]], indexes: Iterable[int]) -> tuple[Setting, ...]:
    return tuple(one for index in indexes for one in settings[index])
