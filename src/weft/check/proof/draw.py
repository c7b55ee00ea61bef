"""Drawing the chart of a workflow: turns, handoffs, and what may happen in between.

A turn goes: rules before the reply, what opens the turn, the turn itself, in which anything may
happen any number of times, what closes it, rules after the reply, what the handoff sets.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Final

from weft import ids
from weft.check.proof.cases import Case, cases
from weft.check.proof.chart import Chart, Step
from weft.check.proof.decisions import Way
from weft.check.proof.effort import MOST_STEPS, Effort
from weft.check.proof.firings import turns_of
from weft.check.proof.ground import Ground
from weft.check.proof.happenings import ANSWERED, RUNS, Doubt, Happening
from weft.check.proof.limits import draw_limits
from weft.check.proof.sheet import Sheet, settings_of
from weft.check.proof.space import forward
from weft.check.subject import Subject
from weft.engine.defaults import startup_mode
from weft.engine.routing import Route, Routing, link_routing, routes_after, routes_before
from weft.spec.orchestrator import Orchestrator

_BROKEN_OFF: Final = Doubt(
    "a call that breaks off has set a part of its variables", "let one event set them all"
)
_ASKED_AGAIN: Final = Doubt(
    "a call may ask more than once, and each answer sets its variables", "ask once in a call"
)
_NOT_TAKEN: Final = Doubt(
    "a call may not go on with every value that it is given", "let one event set all variables"
)
_FIRST_WORDS: Final = Doubt(
    "a run may be started with words of the user", "let the user speak first"
)


def draw(subject: Subject, ground: Ground, steps: int = MOST_STEPS) -> Chart:
    """Draw the chart of a workflow, to be explored in so many steps."""
    sheet, routing = Sheet(ground, list(subject.agents)), link_routing(subject.spec)
    _start(sheet, subject.spec.orchestrator)
    for agent in sheet.agents:
        _turn(sheet, routing, agent)
    draw_limits(sheet, routing, subject.spec.orchestrator)
    triggered = [happening for happening in sheet.at("begin") if not happening.doubt]
    beginning = sheet.changes(settings_of(triggered))
    counts = dict.fromkeys(ground.counts, (0,))
    certain = {name: domain.initial for name, domain in ground.domains.items()} | counts
    possible = {name: domain.possible for name, domain in ground.domains.items()} | counts
    return Chart(
        ground=ground,
        routing=routing,
        points=sheet.points,
        edges=tuple(sheet.edges),
        uses=tuple(sheet.uses),
        initial=forward(beginning, ground.space.within(certain)),
        possible=forward(beginning, ground.space.within(possible)),
        effort=Effort(ground.space.full.bit_length(), steps),
    )


def _start(sheet: Sheet, orchestrator: Orchestrator) -> None:
    """Draw the start: the user or the initial agent speaks first."""
    kind = "wait" if startup_mode(orchestrator) == "UserDriven" else "enter"
    start, first = sheet.number("start"), sheet.number(kind, orchestrator.initial_agent)
    sheet.some(start, start, map(sheet.step, sheet.at("prepare")))
    # What triggers set when a run begins already holds at the start.
    begun = sheet.without_fail([happening for happening in sheet.at("begin") if happening.doubt])
    sheet.some(start, first, begun)
    if kind == "enter":
        given = Step(doubts=(_FIRST_WORDS,))
        words = product(begun, _words(sheet, sheet.at("hear")))
        sheet.some(start, first, (step.then(word).then(given) for step, word in words))


def _turn(sheet: Sheet, routing: Routing, agent: str) -> None:
    """Draw a turn of an agent, with all that may follow it."""
    enter, speak, wait = (sheet.number(kind, agent) for kind in ("enter", "speak", "wait"))
    sheet.some(wait, wait, map(sheet.step, sheet.at("wait")))
    sheet.one_of(wait, enter, _words(sheet, sheet.at("hear")))
    opening = sheet.changes(settings_of(sheet.at("open", agent)))
    for case, ways in _cases(sheet, routing, agent, before=True):
        # A rule that certainly applies is the last to be asked, and leaves no room for a reply.
        if True not in case.held.values():
            ways.append(Way(speak, opening, case.bits))
        sheet.decide(enter, ways)
    sheet.some(speak, speak, _at_work(sheet, agent))
    here = _close(sheet, agent, speak)
    for _, ways in _cases(sheet, routing, agent, before=False):
        sheet.decide(here, ways)


def _words(sheet: Sheet, happenings: Sequence[Happening]) -> list[Step]:
    """Return what somebody may say: one of the texts, or another."""
    return list(dict.fromkeys(map(sheet.step, happenings))) or [Step()]


def _at_work(sheet: Sheet, agent: str) -> Iterator[Step]:
    """Yield what may happen during a turn: the calls of tools, and all else by itself."""
    found = sheet.at("turn", agent)
    for call in dict.fromkeys(happening.call for happening in found):
        parts = [happening for happening in found if happening.call == call]
        if not call:
            yield from map(sheet.step, parts)
            continue
        yield from _call(sheet, parts)
        if len({happening.stage for happening in parts}) > 1:
            broken = Step(doubts=(_BROKEN_OFF,))
            yield from (sheet.step(happening).then(broken) for happening in parts)


def _call(sheet: Sheet, happenings: Sequence[Happening]) -> list[Step]:
    """Return what the call of a tool may do, one stage after the other."""
    steps: list[Step] = [Step()]
    given = False
    stages = sorted({happening.stage for happening in happenings})
    for stage in stages:
        parts = [happening for happening in happenings if happening.stage == stage]
        found = parts if stage == stages[-1] else [it for part in parts for it in _going_on(part)]
        # Which way code goes may depend on what is given to it, so not every two go together.
        choices = [_in_doubt(sheet.step(part)) if given else sheet.step(part) for part in found]
        choices += _answered_again(sheet, parts) if stage == ANSWERED else ()
        given = given or any(setting.given for setting in settings_of(parts))
        steps = list(dict.fromkeys(step.then(one) for step in steps for one in choices))
    return steps


def _going_on(happening: Happening) -> Iterator[Happening]:
    """Yield what may be set in a part of a call after which the call goes on."""
    settings = happening.settings
    taken = {setting.taken for setting in settings}
    if taken <= {"any"}:
        yield happening
        return
    if "unknown" not in taken:
        given = (replace(it, keeps=it.keeps and it.taken == "any") for it in settings)
        yield replace(happening, settings=tuple(given))
    doubt = happening.doubt
    yield replace(happening, doubt=_NOT_TAKEN if doubt is None or doubt.mild else doubt)


def _answered_again(sheet: Sheet, happenings: Iterable[Happening]) -> Iterator[Step]:
    """Yield what several answers to one call do: from where one has led, the next may lead on."""
    domains = sheet.ground.domains
    for happening in happenings:
        names = {setting.variable for setting in happening.settings} & domains.keys()
        most = [len(domains[name].values) for name in names if domains[name].allowed is not None]
        if most:
            step = sheet.step(happening)
            doubts = (*step.doubts, _ASKED_AGAIN)
            yield replace(step, changes=step.changes * max(most), doubts=doubts)


def _in_doubt(step: Step) -> Step:
    return replace(step, doubts=tuple(replace(doubt, mild=False) for doubt in step.doubts))


def _close(sheet: Sheet, agent: str, here: int) -> int:
    """Draw the end of a turn, as far as it changes anything; return where that leads to."""
    said, decide = sheet.number("said", agent), sheet.number("decide", agent)
    sheet.some(here, here, _sent_back(sheet, agent))
    replies = _replies(sheet, agent, sheet.at("auto", agent))
    if replies != [Step()]:
        sheet.one_of(here, said, replies)
        here = said
    counted, closing = _counted(sheet, agent), sheet.at("close", agent)
    if not closing and counted == [Step()]:
        return here
    steps = [count.then(end) for count, end in product(counted, sheet.without_fail(closing))]
    # What code sets before the end of a turn may also be a part of what it could set.
    in_parts = any(happening.doubt for happening in closing)
    (sheet.some if in_parts else sheet.one_of)(here, decide, steps)
    return decide


def _replies(sheet: Sheet, agent: str, called: Sequence[Happening]) -> list[Step]:
    """Return what a reply may do: its words, and the call that is made with it.

    Both come from one text. Where it is not known which words are in it, neither is which of them
    go with which call, so they are one step.
    """
    words, calls = _words(sheet, sheet.at("say", agent)), _call(sheet, called)
    return [word.then(call) for word, call in product(words, calls)]


def _sent_back(sheet: Sheet, agent: str) -> Iterator[Step]:
    """Yield what a reply does that an automatic tool sends back: what was set before stays set."""
    signals = [sheet.step(happening) for happening in sheet.at("back", agent)]
    if signals:
        begun = [happening for happening in sheet.at("auto", agent) if happening.stage < RUNS]
        replies = _replies(sheet, agent, begun)
        yield from (reply.then(signal) for reply, signal in product(replies, signals))


def _counted(sheet: Sheet, agent: str) -> list[Step]:
    """Return what the count of the turns does: for each number so far, a step of its own."""
    name = turns_of(agent)
    if name not in sheet.ground.counts:
        return [Step()]
    happenings = sheet.at("count", agent)
    steps: list[Step] = []
    for number in range(1, sheet.ground.counts[name] + 2):
        reached = settings_of(it for it in happenings if it.tick == (name, number))
        steps.append(sheet.tick(name, number).then(Step(changes=sheet.changes(reached))))
    return steps


def _cases(
    sheet: Sheet, routing: Routing, agent: str, *, before: bool
) -> Iterator[tuple[Case, list[Way]]]:
    """Yield the cases of a decision with the ways that are possible in each."""
    walk = partial(routes_before if before else routes_after, routing, agent)
    for case in cases(walk, sheet.ground.truths, sheet.ground.space.full):
        yield case, [_way(sheet, agent, case, route) for route in case.routes]


def _way(sheet: Sheet, agent: str, case: Case, route: Route) -> Way:
    """Return where a route leads; what the user says goes to the agent that handed over."""
    match route.target:
        case ids.TERMINATE:
            target = sheet.number("end")
        case ids.USER:
            target = sheet.number("wait", agent)
        case other:
            target = sheet.number("enter", other)
    changes = sheet.changes(settings_of(sheet.at("pass", agent, route.target)))
    rule, ground = route.rule, sheet.ground
    if rule is not None and rule in ground.truths and case.held[rule] is None:
        bits = case.bits & ground.truths[rule].open
        return Way(target, changes, bits, rule, ground.doubts[rule])
    return Way(target, changes, case.bits, rule)
