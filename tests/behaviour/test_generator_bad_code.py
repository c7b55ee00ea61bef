"""Code that a model writes for a package: read, never run, and replaced where it does not pass."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.generator_play import BRIEFS, generate, only, sound, twisted
from weft.cli.app import main
from weft.findings import Finding, Place
from weft.generator import offer
from weft.generator.guarantee import PackageVerdict, Verdict, verify
from weft.generator.simulation import Simulation
from weft.ports.model import ModelRequest
from weft.testing.models import Line, call

TOOLS, UI = "AgentToolsFileGenerator", "UIFileGenerator"


Change = Callable[[str], str]


def before(line: str) -> Change:
    return lambda code: f"{line}\n{code}"


def inside(line: str) -> Change:
    """Return what makes a line the last but one of the function."""

    def put(code: str) -> str:
        head, found, tail = code.rpartition("    return")
        return f"{head}    {line}\n{found}{tail}"

    return put


def after(text: str) -> Change:
    return lambda code: f"{code}\n\n{text}\n"


CANARY = "CANARY"
WRITE = f"open({CANARY!r}, 'w').close()"
#: Every file of the package gets another one of these.
HOSTILE_PYTHON = {
    "broken": after("def ("),
    "writes when imported": before(WRITE),
    "opens a socket": before("import socket; socket.create_connection(('127.0.0.1', 9))"),
    "runs a command": before(f"import os; os.system('touch {CANARY}')"),
    "writes when called": inside(WRITE),
    "default": after(f"def _x(a={WRITE}):\n    return a"),
    "decorator": after(f"@{WRITE}\ndef _x():\n    return 1"),
    "class body": after(f"class X:\n    {WRITE}"),
    "f-string": after(f'X = f"{{{WRITE}}}"'),
    "type hint": after(f"def _x(a: '{WRITE}') -> None:\n    return None"),
    "base": after(f"class X({WRITE}):\n    pass"),
    "inner ways": inside(f"().__class__.__base__.__subclasses__()[0]; eval({WRITE!r})"),
    "import by name": inside(f"__import__('os').system('touch {CANARY}')"),
    "comprehension": after(f"X = [{WRITE} for _ in 'x']"),
    "nested": inside("x = " + "+".join("1" * 2_000)),
    "endless": inside("while True: pass"),
    "long": after("# " + "x" * 30_000),
    "nothing": lambda _: "",
}


def test_python_of_a_model_is_read_and_never_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    kinds = dict(HOSTILE_PYTHON)
    plain_files: dict[str, str] = {}
    while kinds:
        used: dict[str, str] = {}

        def twist(
            request: ModelRequest, plain: dict[str, Any], used: dict[str, str] = used
        ) -> Line | None:
            if request.agent not in (TOOLS, UI):
                return None
            for item in plain["tools"]:
                if item["filename"].endswith(".py") and kinds:
                    kind, change = kinds.popitem()
                    plain_files[item["filename"]] = item["content"]
                    item["content"] = change(item["content"])
                    assert item["content"] != plain_files[item["filename"]]
                    used[item["filename"]] = kind
            return plain

        made = generate(twisted(twist))
        for path, kind in used.items():
            assert made.files[path] == plain_files[path], kind
            told = [why for what, why in made.replaced.items() if what.endswith(f" {path}")]
            assert told, kind
    (folder,) = sound(made, tmp_path / "workspace")
    assert passed_on(folder, tmp_path / "other") == [0, 0, 0]
    assert not [*tmp_path.rglob(CANARY)]


def passed_on(folder: Path, other: Path) -> list[int]:
    """Check a package, export it and import it elsewhere, as people do."""
    (other / "workflows").mkdir(parents=True)
    archive = other / "it.zip"
    return [
        main(["check", str(folder)]),
        main(["export", str(folder), "-o", str(archive)]),
        main(["import", str(archive), "--workspace", str(other)]),
    ]


def test_nothing_runs_where_a_package_is_passed_on(tmp_path, monkeypatch, capsys):
    """Even if such code came into a package, by whatever way."""
    monkeypatch.chdir(tmp_path)
    made = generate(twisted(lambda *_: None))
    (folder,) = sound(made, tmp_path / "workspace")
    for path in folder.glob("tools/*.py"):
        path.write_text(before(WRITE)(path.read_text(encoding="utf-8")), encoding="utf-8")
    passed_on(folder, tmp_path / "other")
    assert "No findings" in capsys.readouterr().out
    assert not [*tmp_path.rglob(CANARY)]


def test_code_that_passes_is_not_run_either(tmp_path):
    """Simulated runs use the plain version: nobody has read the other one yet."""

    def raising(plain: dict[str, Any]) -> dict[str, Any]:
        for item in plain["tools"]:
            item["content"] = inside('raise RuntimeError("called")')(item["content"])
        return plain

    made = generate(only(TOOLS, raising))
    sound(made, tmp_path)
    assert made.replaced == {}
    assert 'RuntimeError("called")' in made.files["tools/check_invoice_limit.py"]


# Components --------------------------------------------------------------------------------------

SEND = "onResponse({ decision: values.decision, comment: values.comment });"
HOSTILE_JSX = {
    "fetch": (SEND, f'fetch("/x", {{ method: "POST" }}); {SEND}'),
    "markup from text": ("<section>", '<section dangerouslySetInnerHTML={{ __html: "x" }}>'),
    "import": (SEND, f'import("/evil.js"); {SEND}'),
    "script": ("<section>", "<section><script>alert(1)</script>"),
    "two exports": ("export default", "export default function Other() {}\nexport default"),
    "broken": ("</section>", ""),
}


@pytest.mark.parametrize("kind", HOSTILE_JSX)
def test_components_of_a_model_are_parsed_and_never_run(kind, tmp_path):
    old, new = HOSTILE_JSX[kind]
    path = "tools/InvoiceApproval.jsx"
    plain: dict[str, str] = {}

    def hostile(part: dict[str, Any]) -> dict[str, Any]:
        entry = next(item for item in part["tools"] if item["filename"] == path)
        plain[path] = entry["content"]
        entry["content"] = entry["content"].replace(old, new, 1)
        assert entry["content"] != plain[path]
        return part

    made = generate(only(UI, hostile))
    sound(made, tmp_path)
    assert made.files[path] == plain[path]
    assert [*made.replaced] == [f"{UI} {path}"]


# Names of files and libraries --------------------------------------------------------------------

STRANGE = ["tools/../../x.py", "/tmp/x.py", "..\\x.py", "tools/new.py", "agents.json", ""]
LIBRARIES = ["evil", "httpx; rm -rf /", "-r /etc/passwd", "git+https://host/x", "python-dateutil"]


def test_files_and_libraries_are_those_that_may_be(tmp_path):
    def twist(request: ModelRequest, plain: dict[str, Any]) -> Line | None:
        if request.agent not in (TOOLS, UI):
            return None
        for item in plain["tools"]:
            item["installRequirements"] = LIBRARIES
        plain["tools"] += [
            {"filename": item, "content": "X = 1", "installRequirements": []} for item in STRANGE
        ]
        return plain

    made = generate(twisted(twist))
    (folder,) = sound(made, tmp_path)
    plain = generate(twisted(lambda *_: None))
    assert made.files.keys() == plain.files.keys(), "no file is new, nor is anything installed"
    assert {item.name for item in tmp_path.iterdir()} == {"workflows"}
    assert [item.name for item in (tmp_path / "workflows").iterdir()] == [folder.name]
    for name in STRANGE:
        assert made.replaced[f"{TOOLS} {name}"] == "there is no such file"
    assert (
        "nothing is installed"
        in made.replaced[f"{UI} tools/InvoiceApproval.jsx: installRequirements"]
    )
    told = made.replaced[f"{TOOLS} tools/check_invoice_limit.py: evil"]
    assert told == "this library may not be required"


# A good model ------------------------------------------------------------------------------------


GREETING = "Good morning. Which one is it?"


def improved(request: ModelRequest, plain: dict[str, Any]) -> Line | None:
    """Return the plain part with better words and better code."""
    change = BETTER.get(request.agent)
    if change is None:
        return None
    change(plain)
    return plain


def better_tools(part: dict[str, Any]) -> None:
    for item in part["tools"]:
        item["description"] = f"Improved: {item['description']}"[:140]


def better_variables(part: dict[str, Any]) -> None:
    for value in part["ContextVariablesPlan"]["definitions"].values():
        value["description"] = "An improved description."


def better_prompts(part: dict[str, Any]) -> None:
    for section in (item for agent in part["agents"] for item in agent["prompt_sections"]):
        section["content"] += "\nBe brief, and say what you are not sure of."


def better_greeting(part: dict[str, Any]) -> None:
    if part["initial_message_to_user"]:
        part["initial_message_to_user"] = GREETING


def better_components(part: dict[str, Any]) -> None:
    for item in part["tools"]:
        item["content"] = item["content"].replace("<section>", '<section className="card">')


def better_code(part: dict[str, Any]) -> None:
    for item in part["tools"]:
        item["content"] = inside("noted = len(str(1))")(item["content"])


BETTER = {
    "ToolsManagerAgent": better_tools,
    "ContextVariablesAgent": better_variables,
    "AgentsAgent": better_prompts,
    "OrchestratorAgent": better_greeting,
    UI: better_components,
    TOOLS: better_code,
}


@pytest.mark.parametrize("brief", ["02-invoice-approval.txt", "16-hiring-pack.txt"])
def test_additions_of_a_good_model_are_in_the_package(brief, tmp_path):
    made = generate(twisted(improved), (BRIEFS / brief).read_text(encoding="utf-8"))
    sound(made, tmp_path)
    assert made.replaced == {}
    assert made.stood_in() == {}
    for number, files in enumerate(made.packages.values()):
        said = [
            section
            for entry in json.loads(files["agents.json"])["agents"]
            for section in entry["prompt_sections"]
        ]
        assert all(item["content"].endswith("not sure of.") for item in said)
        tools = json.loads(files["tools.json"])["tools"]
        assert all(tool["description"].startswith("Improved: ") for tool in tools)
        assert "An improved description." in files["context_variables.json"]
        assert all(
            'className="card"' in text for path, text in files.items() if path.endswith("jsx")
        )
        greeting = json.loads(files["orchestrator.json"]).get("initial_message_to_user")
        assert not greeting or (greeting == GREETING) == (number == 0)
    assert any("noted = len" in text for files in made.packages.values() for text in files.values())


def test_errors_of_every_workflow_are_reported(tmp_path):
    def twist(request: ModelRequest, plain: dict[str, Any]) -> Line | None:
        if request.agent == "AgentsAgent":
            plain["agents"][-1]["prompt_sections"][0]["content"] = "{secret}"
        elif request.agent == TOOLS:
            plain["tools"][-1]["content"] = "import os"
            plain["tools"].append({"filename": "new.py", "content": "", "installRequirements": []})
        elif request.agent == "HandoffsAgent":
            plain["handoff_rules"].pop()
        return plain if request.output else None

    made = generate(twisted(twist), (BRIEFS / "15-customer-lifecycle-pack.txt").read_text("utf-8"))
    sound(made, tmp_path)
    told = sorted(made.replaced.values())
    assert len(told) == 4
    assert told[0].startswith("it does not define")
    assert told[1:] == [
        "it puts in secret, which is not shown here",
        "it was left out",
        "there is no such file",
    ]


# What only the whole package shows ---------------------------------------------------------------

MARK = "Only the whole shows that this is wrong."


def picky(files, plain_code, simulate, pack=None) -> Verdict:
    """Find a fault in the whole that no check of a part knows."""
    verdict = verify(files, plain_code, simulate, pack)
    found = tuple(
        Finding("REF001", "error", "it has the mark", Place(f"{name}/agents.json", 1))
        for name, texts in files.items()
        if MARK in texts["agents.json"]
    )
    wrong = tuple(
        PackageVerdict(package.name, package.digest, found, Simulation())
        for package in verdict.packages
    )
    return Verdict(wrong) if found else verdict


def marking(times: int) -> tuple[list[list[str]], Callable[..., Line | None]]:
    """Return what a model is told, and a model that writes the mark so many times."""
    told: list[list[str]] = []

    def twist(request: ModelRequest, plain: dict[str, Any]) -> Line | None:
        if request.agent == "AgentsAgent":
            told.append(
                [
                    message["content"] or ""
                    for message in request.messages
                    if message["role"] == "system"
                ]
            )
            if len(told) <= times:
                plain["agents"][0]["prompt_sections"][0]["content"] += f" {MARK}"
            else:
                plain["agents"][0]["prompt_sections"][0]["content"] += " Be brief."
            return plain
        return improved(request, plain)

    return told, twist


def test_findings_of_the_whole_go_back_to_who_is_responsible(tmp_path, monkeypatch):
    monkeypatch.setattr(offer, "verify", picky)
    told, twist = marking(2)
    made = generate(twisted(twist))
    sound(made, tmp_path)
    assert made.state.variables["repair_round"] == 2
    assert ["it has the mark" in "".join(item) for item in told] == [False, True, True]
    assert made.replaced == {}
    assert "Be brief." in made.files["agents.json"]


def test_after_three_times_the_part_is_plain(tmp_path, monkeypatch):
    monkeypatch.setattr(offer, "verify", picky)
    told, twist = marking(99)
    made = generate(twisted(twist))
    sound(made, tmp_path)
    assert made.state.variables["repair_round"] == 3
    assert len(told) == 4
    assert MARK not in made.files["agents.json"]
    assert [*made.replaced] == ["AgentsAgent the whole part"]
    assert "REF001 it has the mark" in made.replaced["AgentsAgent the whole part"]
    assert "Improved: " in made.files["tools.json"], "what the others did stays"
    asked = next(item for item in made.asked if item.tool == "download")
    assert "the package does not hold" in asked.payload["replaced"][0]


# All of it ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_everything_at_once(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = Random(seed)

    def twist(request: ModelRequest, plain: dict[str, Any]) -> Line | None:
        whole = json.dumps(plain)
        lines: list[Any] = [
            None,
            "",
            "NEXT",
            whole[: len(whole) // 2],
            [plain],
            "x" * 300_000,
            call("rm_rf"),
            ValueError("on fire"),
            whole.replace("a", "{secret}"),
            whole.replace("def ", f"{WRITE}\\ndef "),
            {**plain, "evil": True},
            dict.fromkeys(plain),
        ]
        line = random.choice(lines)
        return json.dumps(line) if isinstance(line, list) else line

    brief = random.choice(sorted(BRIEFS.glob("0*.txt")))
    made = generate(twisted(twist), brief.read_text(encoding="utf-8"))
    sound(made, tmp_path / "workspace")
    assert made.stood_in() or made.replaced
    assert not [*tmp_path.rglob(CANARY)]


def test_a_plan_that_gives_no_package_that_holds_is_asked_about_again(tmp_path, monkeypatch):
    """The run goes on: whoever has approved the plan is told why, and decides anew."""
    judged: list[Verdict] = []

    def once_wrong(files, plain_code, simulate, pack=None) -> Verdict:
        verdict = verify(files, plain_code, simulate, pack)
        judged.append(verdict)
        if len(judged) > 1:
            return verdict
        found = (Finding("GEN001", "error", "a run failed", Place("W/tools.json")),)
        first = verdict.packages[0]
        return Verdict((PackageVerdict(first.name, first.digest, found, Simulation()),))

    monkeypatch.setattr(offer, "verify", once_wrong)
    made = generate(twisted(lambda *_: None))
    sound(made, tmp_path)
    assert len(judged) == 2
    told = [
        item.payload["message"] for item in made.asked if item.tool == "mermaid_sequence_diagram"
    ]
    why = "the plan gives no package that holds: W/tools.json: GEN001 a run failed"
    assert [why in item for item in told] == [False, True]
    assert made.state.variables["package_findings"] == []
    assert made.state.variables["repair_target"] == "nobody"
