"""The assembly: drafts made of what the agents of the second half replied.

Six outputs are read as the package files whose contents they have, so that a mistake is reported
with its path and what is expected there. Code is checked and never executed: a component or a tool
that fails is left out, and everything else that fails is a finding.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, cast

from pydantic import ValidationError

from weft.catalogue import CATALOGUE
from weft.check.problems import find_problems, path_text
from weft.errors import WeftError
from weft.findings import Finding, Json, Place, is_error
from weft.generator.code_check.files import Function, code_faults, functions_in
from weft.generator.code_check.python_code import imported_libraries, invisible_sign
from weft.generator.draft import Draft, LeftOut
from weft.generator.forms.scenarios import scenario_files
from weft.generator.judge.stubs import stub_file
from weft.generator.output_models import FORMS, MORE, CodeFile, HookFile
from weft.generator.plans.split import workflow_plans
from weft.generator.plans.workflow_plan import WorkflowPlan
from weft.generator.steps import REPLACED
from weft.generator.values import mapping, without_nulls
from weft.packages.archive.staging import staged_folder
from weft.packages.reader import read_package
from weft.spec.orchestrator import WorkflowDependencies
from weft.spec.plan import ActionPlan
from weft.spec.tools import AgentTool, UiTool
from weft.spec.workflow import WorkflowSpec

Outputs: TypeAlias = Mapping[str, Json]

#: Keys of outputs that are no part of a package.
_APART: Final = frozenset({MORE, REPLACED, "agent_message"})
#: The most problems of a file entry that are reported.
_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class Assembly:
    """The drafts of all workflows, and what of the outputs is not in them."""

    drafts: tuple[Draft, ...]
    left_out: tuple[LeftOut, ...] = ()
    #: What prevents a promotion.
    findings: tuple[Finding, ...] = ()


def assemble(plan: ActionPlan, outputs: Outputs) -> Assembly:
    """Return the drafts that the outputs describe. Nothing is raised and nothing is executed."""
    drafts, left_out, findings = list[Draft](), list[LeftOut](), list[Finding]()
    for number, workflow in enumerate(workflow_plans(plan)):
        given = _outputs_for(outputs, workflow, first=number == 0)
        reading = _Assembling(workflow.name, given)
        reading.note_missing()
        drafts.append(reading.draft(workflow))
        left_out += reading.left_out
        findings += reading.findings
    return Assembly(tuple(drafts), tuple(left_out), tuple(findings))


def _outputs_for(
    outputs: Outputs, workflow: WorkflowPlan, *, first: bool
) -> dict[str, dict[str, Json]]:
    """Return the outputs of one workflow: the first one's, or those under `more`."""
    given = {agent: mapping(outputs[agent]) for agent in FORMS if agent in outputs}
    if not first:
        found = {agent: mapping(output.get(MORE)) for agent, output in given.items()}
        given = {
            agent: mapping(more[workflow.name])
            for agent, more in found.items()
            if workflow.name in more
        }
    return {
        agent: {key: value for key, value in output.items() if key not in _APART}
        for agent, output in given.items()
    }


def form_findings(agent: str, output: Json) -> tuple[Finding, ...]:
    """Return what is wrong with the form of one output, read alone."""
    reading = _Assembling("Output", {agent: mapping(output)})
    reading.read_spec(reading.read_files())
    return tuple(reading.findings)


@dataclass
class _Assembling:
    """One workflow while it is assembled."""

    name: str
    outputs: Mapping[str, dict[str, Json]]
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])
    findings: list[Finding] = field(default_factory=list[Finding])

    def note_missing(self) -> None:
        """Note the agents without an output."""
        for agent in FORMS:
            if agent not in self.outputs:
                self._report("GEN005", agent, f"{agent} has no output for {self.name}")

    def draft(self, workflow: WorkflowPlan) -> Draft:
        """Return the draft, and note what is not in it."""
        files = self.read_files()
        spec = self.read_spec(files)
        # The plan decides the name, and what must be completed before.
        needed = WorkflowDependencies(required_workflows=workflow.requires)
        facts = {"workflow_dependencies": needed, "workflow_name": workflow.name}
        spec = spec.model_copy(update={"orchestrator": spec.orchestrator.model_copy(update=facts)})
        checked = ((path, self._checked(spec, path, file)) for path, file in files.items())
        code = {path: text for path, text in checked if text is not None}
        wanted: dict[str, None] = {}
        for path, text in code.items():
            if path.endswith(".py") and text == files[path].content:  # Others import nothing.
                wanted |= dict.fromkeys(imported_libraries(text, files[path].requirements))
        try:
            tests, notes = scenario_files(workflow, spec)
        except WeftError as error:  # The spec is wrong, which other findings say.
            tests, notes = {}, (f"the scenarios of {self.name} cannot be made: {error}",)
        return Draft(spec, code, tests, tuple(wanted), notes)

    def read_spec(self, files: Mapping[str, CodeFile]) -> WorkflowSpec:
        """Read the outputs that are contents of package files."""
        texts: dict[str, bytes] = {}
        for agent, output in self.outputs.items():
            form = FORMS[agent]
            if form.stem:
                texts[f"{form.stem}.json"] = json.dumps(
                    self._content(agent, output, files)
                ).encode()
        with staged_folder(texts, self.name) as folder:
            package = read_package(folder)
        for finding in filter(is_error, package.findings):
            file = finding.place.file.rpartition("/")[2]
            if file in texts:
                self.findings.append(replace(finding, place=Place(f"{self.name}/{file}")))
        return package.spec

    def _content(
        self, agent: str, output: Mapping[str, Json], files: Mapping[str, CodeFile]
    ) -> dict[str, Json]:
        """Return the content of the package file that an output is."""
        content = mapping(without_nulls({**output}))
        if agent == "HookAgent":
            content = {"hooks": content.get("hooks") or _hooks_of(files)}
        if agent == "ToolsManagerAgent" and content.pop("mcp_servers", None):
            self._report("GEN004", "tools.json", "tool servers are not part of generated packages")
        fault = next(filter(None, map(invisible_sign, texts_in(content))), None)
        if fault:
            self._report("GEN006", agent, f"a text of {agent} is refused: {fault}")
        return content

    def read_files(self) -> dict[str, CodeFile]:
        """Read the outputs that are files of code."""
        files: dict[str, CodeFile] = {}
        for agent, output in self.outputs.items():
            form = FORMS[agent]
            given: Json = output.get(form.files, []) if form.files else []
            if not isinstance(given, list):
                self._report("SCHEMA007", agent, f"{form.files} must be a list of files")
                continue
            for number, entry in enumerate(cast("list[Json]", given)):
                file = self._file(agent, f"{form.files}[{number}]", entry)
                if file and files.get(file.filename, file).content != file.content:
                    self._report("GEN006", file.filename, f"{file.filename} is written twice")
                elif file:
                    files[file.filename] = file
        return files

    def _file(self, agent: str, at: str, entry: Json) -> CodeFile | None:
        model = HookFile if agent == "HookAgent" else CodeFile
        try:
            return model.model_validate(without_nulls(entry))
        except ValidationError as error:
            for problem in [*find_problems(error, model)][:_MOST]:
                where = ".".join(filter(None, (at, path_text(problem.path))))
                self._report(problem.code, agent, f"{where}: {problem.message}")
            return None

    def _checked(self, spec: WorkflowSpec, path: str, file: CodeFile) -> str | None:
        """Return the text of a file as it is in the package; None if it is left out."""
        faults = code_faults(spec, path, file.content, file.requirements)
        if not faults:
            return file.content
        reason = "; ".join(faults[:3])
        if path.endswith(".jsx"):
            self.left_out.append(
                LeftOut(path, "the component; the form of the answer serves", reason)
            )
            return None
        functions = functions_in(spec, path)
        if functions and all(
            isinstance(declared, AgentTool | UiTool) for declared in functions.values()
        ):
            self.left_out.append(LeftOut(path, f"the code of {', '.join(functions)}", reason))
            return stub_file(spec, path, file.content, unwritten)
        self._report("GEN006", path, f"{path} is refused: {reason}")
        return None

    def _report(self, code: str, file: str, message: str) -> None:
        rule = CATALOGUE[code]
        place = Place(f"{self.name}/{file}")
        self.findings.append(Finding(code, rule.severity, message, place, hint=(rule.fix,)))


def unwritten(name: str, declared: Function | None, parameters: list[str]) -> str:
    """Return the body of a tool that is not written yet: it refuses, or asks with its arguments."""
    if isinstance(declared, UiTool):
        shown = ", ".join(f'"{parameter}": {parameter}' for parameter in parameters)
        return f'return await use_ui_tool("{name}", {{{shown}}})'
    purpose = declared.description if declared else name
    return f"raise Refuse({f'not written yet: {purpose}'!r})"


def _hooks_of(files: Mapping[str, CodeFile]) -> list[Json]:
    """Return the hooks that the files name themselves: the function is named like the file."""
    named = (file for file in files.values() if isinstance(file, HookFile) and file.trigger)
    return [
        {
            "hook_type": file.trigger,
            "file": (name := file.filename.removeprefix("hooks/")),
            "function": name.removesuffix(".py"),
            "integration": file.integration,
        }
        for file in named
    ]


def texts_in(value: Json) -> Iterator[str]:
    """Yield every text of a value, with the keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in mapping(cast("Json", value)).items():
            yield from (key, *texts_in(inner))
    elif isinstance(value, list):
        for inner in cast("list[Json]", value):
            yield from texts_in(inner)
