"""The offer: the packages of a generation, and everything that the checks found."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from weft.findings import Finding, Json, is_error
from weft.generator.assemble import Assembly, Outputs, assemble
from weft.generator.bundle import Bundle, make_bundle
from weft.generator.compile.compiler import compile_drafts
from weft.generator.draft import Draft, LeftOut
from weft.generator.judge.conformance import conformance, question_key, scenario_finding
from weft.generator.judge.guarantee import Verdict, verify
from weft.generator.judge.simulation import RunScenarios, ScenarioRun, Simulate
from weft.generator.plans.split import workflow_plans
from weft.ids import join_names
from weft.spec.plan import ActionPlan


@dataclass(frozen=True, slots=True)
class Offer:
    """The packages that were assembled, and what the checks say about them."""

    bundle: Bundle
    verdict: Verdict
    #: The errors, as text for their author.
    findings: tuple[str, ...] = ()
    #: What differs from the plan, by key; each can be corrected, or answered with a reason.
    questions: Mapping[str, str] = field(default_factory=dict[str, str])
    answers: Mapping[str, str] = field(default_factory=dict[str, str])
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    scenarios: Mapping[str, tuple[ScenarioRun, ...]] = field(
        default_factory=dict[str, tuple[ScenarioRun, ...]]
    )

    @property
    def promotable(self) -> bool:
        """Whether there is no error and every question is answered."""
        return not (self.findings or self.unanswered)

    @property
    def unanswered(self) -> dict[str, str]:
        """The questions without an answer."""
        return {key: text for key, text in self.questions.items() if not self.answers.get(key)}

    def data(self) -> dict[str, Json]:
        """Return what a run stores: every file of every package, and what the checks found."""
        pack = self.bundle.pack
        questions = [
            {"key": key, "text": text, "answer": self.answers.get(key) or None}
            for key, text in self.questions.items()
        ]
        return {
            "left_out": [asdict(piece) for piece in self.left_out],
            "errors": list(self.findings),
            "questions": questions,
            "scenarios": {
                name: [asdict(run) for run in runs] for name, runs in self.scenarios.items()
            },
            "notes": list(self.notes),
            "verdict": self.verdict.as_json(),
            "promotable": self.promotable,
            "report": "".join(f"{line}\n" for line in self.report()),
            "packages": {name: dict(files) for name, files in self.bundle.packages.items()},
            "pack": None if pack is None else {"file": pack[0], "text": pack[1]},
        }

    def summary(self) -> dict[str, Json]:
        """Return what a person is shown before the packages are promoted."""
        return {
            "left_out": list(map(str, self.left_out)),
            "errors": list(self.findings),
            "questions": [*_asked(self)],
            "packages": {name: len(files) for name, files in self.bundle.packages.items()},
            "checked": [
                *(package.in_words() for package in self.verdict.packages),
                *_tried(self.scenarios),
                *self.notes,
            ],
        }

    def report(self) -> Iterator[str]:
        """Yield the lines of a report, with what was left out first."""
        sections = {
            "Left out": [*map(str, self.left_out)],
            "Errors": list(self.findings),
            "Differences from the plan": [*_asked(self)],
            "Scenarios": [*_tried(self.scenarios)],
            "Checked": [package.in_words() for package in self.verdict.packages],
            "Notes": list(self.notes),
        }
        for title, lines in sections.items():
            yield from (f"## {title}", "", *(f"- {line}" for line in lines), "") if lines else ()


def make_offer(
    plan: ActionPlan,
    outputs: Outputs,
    answers: Mapping[str, str],
    simulate: Simulate,
    run_scenarios: RunScenarios,
) -> Offer:
    """Assemble the packages that the agents described, and check them.

    Code that a model wrote is read and never executed, also in simulated runs and scenarios.
    """
    assembly = assemble(plan, outputs)
    bundle = make_bundle(plan, assembly.drafts)
    compiled = _compiled(plan, assembly)
    judged = Judged(Verdict(()))
    if not any(map(is_error, assembly.findings)):
        judged = judge(plan, assembly.drafts, bundle, simulate, run_scenarios)
    return Offer(
        bundle,
        judged.verdict,
        findings=tuple(map(as_text, (*assembly.findings, *judged.verdict.errors))),
        questions={question_key(finding): as_text(finding) for finding in judged.questions},
        answers={**_answers(judged.questions, compiled), **answers},
        left_out=assembly.left_out,
        notes=_notes((*assembly.drafts, *compiled)),
        scenarios=judged.scenarios,
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """What the checks found in packages, what differs from the plan, and its scenarios."""

    verdict: Verdict
    questions: tuple[Finding, ...] = ()
    scenarios: Mapping[str, tuple[ScenarioRun, ...]] = field(
        default_factory=dict[str, tuple[ScenarioRun, ...]]
    )


def judge(
    plan: ActionPlan,
    drafts: Sequence[Draft],
    bundle: Bundle,
    simulate: Simulate,
    run_scenarios: RunScenarios,
) -> Judged:
    """Check packages, compare them with the plan, and run its scenarios."""
    verdict = verify(bundle.packages, simulate, bundle.pack[1] if bundle.pack else None)
    questions: list[Finding] = []
    scenarios: dict[str, tuple[ScenarioRun, ...]] = {}
    for workflow, draft in zip(workflow_plans(plan), drafts, strict=True):
        questions += conformance(workflow, draft)
        if verdict.ok:
            scenarios[draft.name] = _run(draft, run_scenarios)
            questions += _differences(draft, scenarios[draft.name])
    return Judged(verdict, tuple(questions), scenarios)


def as_text(finding: Finding) -> str:
    """Return a finding in a line: the place, the fact and the remedy."""
    hint = f" ({'; '.join(finding.hint)})" if finding.hint else ""
    return f"{finding.place}: {finding.code} {finding.message}{hint}"


def _run(draft: Draft, run_scenarios: RunScenarios) -> tuple[ScenarioRun, ...]:
    code = {path: text.encode() for path, text in draft.code.items()}
    return run_scenarios(draft.spec, code, draft.tests) if draft.tests else ()


def _differences(draft: Draft, runs: tuple[ScenarioRun, ...]) -> Iterator[Finding]:
    for run in runs:
        if run.differences:
            yield scenario_finding(draft.name, run.name, run.differences)


def _compiled(plan: ActionPlan, assembly: Assembly) -> tuple[Draft, ...]:
    """Return the drafts that follow from the plan alone, if nothing else was assembled."""
    drafts = compile_drafts(plan)
    pairs = zip(drafts, assembly.drafts, strict=True)
    same = all(one.spec == other.spec and one.code == other.code for one, other in pairs)
    return drafts if same else ()


def _answers(questions: Iterable[Finding], compiled: Iterable[Draft]) -> dict[str, str]:
    """Answer why something is missing where the compiler says so: nothing else could write it."""
    notes = _notes(compiled)
    return {
        question_key(finding): note
        for finding in questions
        for note in notes
        if finding.cause and f" {finding.cause[0]} " in f" {note} "
    }


def _notes(drafts: Iterable[Draft]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for draft in drafts for note in draft.notes))


def _asked(offer: Offer) -> Iterator[str]:
    for key, text in offer.questions.items():
        answer = offer.answers.get(key)
        yield f"{text} Meant so: {answer}" if answer else f"{text} [{key}]"


def _tried(scenarios: Mapping[str, tuple[ScenarioRun, ...]]) -> Iterator[str]:
    for name, runs in scenarios.items():
        decided = [run for run in runs if not run.rests_on]
        if decided:
            passed = sum(not run.differences for run in decided)
            yield f"{name}: {passed} of {len(decided)} scenarios passed"
        if len(decided) < len(runs):
            tools = sorted({tool for run in runs for tool in run.rests_on})
            yield (
                f"{name}: {len(runs) - len(decided)} scenarios need the code of "
                f"{join_names(tools)}, which runs only after the promotion: weft test {name}"
            )
