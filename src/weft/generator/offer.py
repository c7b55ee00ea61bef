"""The offer: a bundle that was checked and tried out, or what keeps it from being one."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace

from weft.errors import ToolError
from weft.findings import Json, is_error
from weft.generator.bundle import Bundle, enriched, make_bundle, plain_drafts, plain_part
from weft.generator.draft import Replaced
from weft.generator.guarantee import Verdict, verify
from weft.generator.simulation import Simulate
from weft.spec.plan import ActionPlan


@dataclass(frozen=True, slots=True)
class Offer:
    """A bundle, what was found out about it, and what of the models' work is not in it."""

    bundle: Bundle
    verdict: Verdict
    replaced: tuple[Replaced, ...] = ()
    #: Who made the part that is wrong; empty where nothing is.
    responsible: str = ""
    #: What was made otherwise than the plan says, and why.
    notes: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[str, ...]:
        """What is wrong, in words for whoever shall fix it."""
        return tuple(_faults(self.verdict))

    def data(self) -> dict[str, Json]:
        """Return what a run keeps of it: every file of every package."""
        pack = self.bundle.pack
        return {
            "packages": {name: dict(files) for name, files in self.bundle.packages.items()},
            "pack": None if pack is None else {"file": pack[0], "text": pack[1]},
            "verdict": self.verdict.as_json(),
        }

    def replaced_data(self) -> list[Json]:
        """Return what did not stay of the models' work, as a run keeps it."""
        return [asdict(it) for it in self.replaced]

    def summary(self) -> dict[str, Json]:
        """Return what a person is told before the package takes its place."""
        return {
            "packages": {name: len(files) for name, files in self.bundle.packages.items()},
            "checked": [*(it.in_words() for it in self.verdict.packages), *self.notes],
            "replaced": [f"{it.what}: {it.why}" for it in self.replaced],
        }


def make_offer(
    plan: ActionPlan, outputs: Mapping[str, Mapping[str, Json]], simulate: Simulate
) -> Offer:
    """Put a bundle together from what the agents returned, check it and try it out.

    What no agent returned is plain. Code that a model wrote is never run: where a package is tried
    out, the plain code stands in for it. Raises ToolError if the plain version itself does not
    hold: then there is nothing to offer.
    """
    base = plain_drafts(plan)
    drafts, replaced = enriched(base, outputs)
    bundle = make_bundle(plan, drafts)
    code = {draft.name: _bytes(draft.code) for draft in base}
    verdict = verify(bundle.packages, code, simulate, bundle.pack[1] if bundle.pack else None)
    if verdict.ok:
        notes = tuple(it for draft in base for it in draft.notes)
        return Offer(bundle, verdict, replaced, notes=notes)
    if drafts == base:
        raise ToolError("the plan gives no package that holds: " + "; ".join(_faults(verdict)))
    wrong = (agent for agent, found in verdict.responsible.items() if any(map(is_error, found)))
    return Offer(bundle, verdict, replaced, responsible=next(wrong))


def plainer_offer(
    plan: ActionPlan, outputs: Mapping[str, Mapping[str, Json]], simulate: Simulate, offer: Offer
) -> Offer:
    """Make an offer that holds of one that does not: without the part of whoever is responsible.

    If that is not enough, nothing of what models added is in it.
    """
    drafts = plain_drafts(plan)
    added = [agent for agent in outputs if outputs[agent] != plain_part(agent, drafts)]
    made, dropped = offer, [it for it in added if it == offer.responsible]
    if dropped:
        kept = {agent: it for agent, it in outputs.items() if agent not in dropped}
        made = make_offer(plan, kept, simulate)
    if made.responsible:
        made, dropped = make_offer(plan, {}, simulate), added
    why = f"the package does not hold with it: {offer.findings[0]}"
    told = (Replaced(agent, "the whole part", why) for agent in dropped)
    return replace(made, replaced=(*made.replaced, *told))


def _faults(verdict: Verdict) -> Iterator[str]:
    found = (it for theirs in verdict.responsible.values() for it in theirs if is_error(it))
    return (f"{it.place}: {it.code} {it.message}" for it in found)


def _bytes(code: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in code.items()}
