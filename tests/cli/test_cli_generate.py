"""weft generate and weft plan: from a brief to a package, with and without a person."""

import json
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from support.cases import read_cases
from support.terminal_play import Terminal
from weft.app.generation import PartOrigin, read_generation
from weft.cli.pages.generation import report_lines
from weft.engine.state import State
from weft.packages.reader import read_package

CASES = read_cases(__file__)

BRIEF = (
    "A claims desk: a clerk takes the claim, an assessor checks it, then a manager approves the "
    "payment, one after the other."
)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty folder, and no model but the designer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEFT_MODEL", raising=False)
    return tmp_path


@pytest.fixture
def until_plan(weft, prepared):
    """A generation that waits for the approval of its plan; gives its name."""
    words = ("generate", BRIEF, "--until", "plan", "--approve", "--json")
    return prepared("until plan", lambda: weft(*words).data["run"]["run"])


@pytest.fixture
def generated(weft, prepared):
    """The package of the brief, created; gives the exit code."""
    return prepared("generated", lambda: weft("generate", BRIEF, "--approve").code)


def packages(place):
    found = place / "workflows"
    return sorted(file.name for file in found.iterdir()) if found.is_dir() else []


def test_brief_becomes_a_package_without_prompts(weft, place):
    result = weft("generate", BRIEF, "--approve")
    assert result.code == 0, result.err
    (name,) = packages(place)
    assert f"created workflows/{name} with " in result.out
    for agent in ("PatternAgent", "WorkflowStrategyAgent", "HookAgent", "DownloadAgent"):
        assert re.search(rf"^{agent} +\S", result.err, re.MULTILINE), agent
    chosen = re.search(r"^PatternAgent +(.*)$", result.err, re.MULTILINE)
    assert chosen
    assert chosen[1].startswith("Pipeline: the brief says ")
    assert re.search(r"^DownloadAgent +checked: .*0 errors", result.err, re.MULTILINE)
    assert "16 parts by designer" in result.err
    assert weft("check", name).code == 0
    assert "error" not in weft("run", name, "hello", "--model", "sample").err


def test_everything_is_in_one_document_for_programs(weft, place):
    data = weft("generate", BRIEF, "--approve", "--json").data
    (package,) = data["packages"]
    assert package["created"]
    assert package["folder"] == f"workflows/{packages(place)[0]}"
    assert data["run"]["outcome"] == "completed"
    assert data["promotion"] == "approved"
    assert {part["answerer"] for part in data["parts"]} == {"designer"}
    assert len(data["parts"]) == 16
    assert data["replaced"] == []
    assert (place / data["staged"] / package["name"] / "agents.json").is_file()


def test_without_a_person_the_run_waits_and_names_the_command(weft, place):
    result = weft("generate", BRIEF)
    assert result.code == 4
    assert "waits for an answer to its interview" in result.err
    run = re.search(r"run (\S+) waits", result.err)[1]
    assert f"weft generate --run {run} --approve" in result.err
    assert f"weft generate --run {run} --answers FILE" in result.err
    answered = weft("runs", "answer", run, "--json-value", '{"approver": "nobody"}')
    assert answered.code == 4
    waiting = weft("generate", "--run", run)
    assert waiting.code == 4
    assert f"weft plan approve {run}" in waiting.err
    approved = weft("plan", "approve", run)
    assert approved.code == 4
    assert f"weft generate --run {run} --promote" in approved.err
    assert not packages(place)
    assert list((place / ".weft" / "generated" / run).iterdir())
    assert weft("generate", "--run", run, "--promote").code == 0
    assert packages(place)
    again = weft("generate", "--run", run)
    assert again.code == 0
    assert "unchanged: workflows/" in again.out


def test_missing_answers_take_their_default(weft, place):
    (place / "answers.json").write_text('{"plan_acceptance": "accepted"}')
    result = weft("generate", BRIEF, "--answers", "answers.json")
    assert "waits for the approval of its packages" in result.err
    assert "InterviewAgent               started by: chat; approved by: manager" in result.err
    stopped = weft("generate", BRIEF, "--until", "plan")
    assert stopped.code == 0
    assert "is stopped after plan" in stopped.err


def test_a_brief_comes_from_stdin(place):
    command = [sys.executable, "-m", "weft", "generate", "--from", "-", "--until", "pattern"]
    done = subprocess.run(command, check=False, input=BRIEF.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr
    assert b"Pipeline: the brief says" in done.stderr


def asked(weft, run):
    """Return the tools that have asked, each as often as it has."""
    shown = weft("runs", "tail", run, "--json").out.splitlines()
    events = [json.loads(line).get("event", {}) for line in shown]
    return [
        event["data"]["tool"]
        for event in events
        if event.get("kind") == "RequestOpened" and event["data"]["kind"] == "ui"
    ]


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_answers_come_from_a_file(weft, place, form):
    answers = {"goal": "settle complaints", "specialists": ["billing", "delivery"]}
    answers |= {"plan_acceptance": "accepted", "promotion": "declined"}
    file = place / f"answers.{form}"
    text = json.dumps(answers)
    if form == "yaml":
        text = "".join(f"{name}: {json.dumps(answer)}\n" for name, answer in answers.items())
    file.write_text(text)
    result = weft("generate", BRIEF, "--answers", file)
    assert result.code == 0, result.err
    assert "not promoted; its files are in " in result.err
    assert not packages(place)
    shown = weft("inspect", "last", "--json").out
    assert "settle complaints" in shown
    assert "billing, delivery" in shown
    assert asked(weft, "last") == ["interview", "mermaid_sequence_diagram", "download"]
    assert weft("generate", "--run", "last", "--promote").code == 0
    assert packages(place)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"gaol": "x"}, "unknown field gaol"),
        ({"gaol": "x"}, "did you mean goal?"),
        ({"plan_hash": "x"}, "unknown field plan_hash"),
        ({"goal": 7}, "goal is not text"),
        ({"promotion": "maybe"}, "write one of: approved, declined"),
        (["goal"], "has no fields"),
    ],
)
def test_a_wrong_answer_is_refused_before_anything_begins(weft, place, answers, said):
    (place / "answers.json").write_text(json.dumps(answers))
    result = weft("generate", BRIEF, "--answers", "answers.json")
    assert result.code == 2
    assert said in result.err
    assert "answers.json" in result.err
    assert not (place / ".weft").exists()


@pytest.mark.parametrize(("words", "code", "said"), CASES["test_unclear_command_gets_a_hint"])
def test_unclear_command_gets_a_hint(weft, place, words, code, said):
    (place / "empty.txt").write_text("")
    (place / "no_plan.json").write_text('{"name": "x"}')
    (place / "broken.json").write_text("{")
    result = weft("generate", *words)
    assert result.code == code
    assert said in result.err
    assert "hint:" in result.err


def test_two_rounds_with_a_comment_are_compared(weft, until_plan):
    first = weft("plan", "show", until_plan, "--json").data
    assert first["rounds"] == 1
    only = weft("plan", "diff", until_plan)
    assert only.code == 2
    assert "has only one plan so far" in only.err
    ignored = weft("plan", "comment", until_plan, "It shall be nicer.")
    assert ignored.code == 0
    assert "the comment changed nothing in the plan" in ignored.err
    words = "Add a specialist Auditor."
    result = weft("plan", "comment", until_plan, words, "--about", "strategy")
    assert result.code == 0, result.err
    assert f"weft plan approve {until_plan}" in result.err
    assert "changed nothing" not in result.err
    second = weft("plan", "show", until_plan, "--json").data
    assert second["rounds"] == 2
    assert second["hash"] != first["hash"]
    assert [comment["text"] for comment in second["comments"]] == ["It shall be nicer.", words]
    assert second["comments"][1]["about"] == "strategy"
    changes = weft("plan", "diff", until_plan)
    assert changes.code == 0
    assert re.search(r"^[+~] .*Auditor", changes.out, re.MULTILINE)
    data = weft("plan", "diff", until_plan, "--json").data
    assert data["hashes"] == [first["hash"], second["hash"]]
    assert weft("plan", "show", until_plan, "--round", "1", "--json").data["plan"] == first["plan"]
    assert "adjustments requested" in weft("plan", "show", until_plan, "--round", "1").out


def test_a_comment_in_a_file_of_answers_is_made_once(weft, place):
    answers = {"plan_acceptance": "adjustments_requested", "comments": "add specialist Auditor"}
    (place / "answers.json").write_text(json.dumps({**answers, "about": "agents", "goal": "x"}))
    result = weft("generate", BRIEF, "--answers", "answers.json")
    assert result.code == 4
    assert asked(weft, "last").count("mermaid_sequence_diagram") == 2
    assert "Auditor" in weft("plan", "diff", "last").out
    assert weft("generate", "--run", "last", "--answers", "answers.json").code == 4
    assert asked(weft, "last").count("mermaid_sequence_diagram") == 2
    done = weft("generate", "--run", "last", "--answers", "answers.json", "--approve")
    assert done.code == 0, done.err
    assert packages(place)


def test_an_approval_names_the_hash(weft, place, until_plan):
    hash_ = weft("plan", "show", until_plan, "--json").data["hash"]
    for wrong in ("0" * 64, hash_[:4]):
        refused = weft("plan", "approve", until_plan, "--hash", wrong)
        assert refused.code == 7
        assert f"{wrong} is not the hash of the plan" in refused.err
    assert weft("plan", "approve", until_plan, "--hash", hash_[:12]).code == 4
    again = weft("plan", "approve", until_plan)
    assert again.code == 2
    assert "is already approved" in again.err
    assert weft("plan", "comment", until_plan, "too late").code == 2


@pytest.mark.parametrize(
    ("text", "given", "about"),
    [
        ("pattern: Star", "strategy", "pattern"),
        ("A star would be better.", None, "pattern"),
        ("add specialist Auditor", "agents", "strategy"),
        ("remove Clerk", "pattern", "pattern"),
        ("Be kind.", "agents", "agents"),
    ],
)
def test_a_comment_is_about_the_part_that_decides_it(weft, until_plan, text, given, about):
    words = () if given is None else ("--about", given)
    result = weft("plan", "comment", until_plan, text, *words, "-o", "made")
    assert result.code == 0, result.err
    assert f"weft plan approve {until_plan} -o made" in result.err
    moved = f"the {about} decides this"
    assert (moved in result.err) == (given not in (None, about))
    (comment,) = weft("plan", "show", until_plan, "--json").data["comments"]
    assert comment["about"] == about
    if ":" in text or "add" in text:
        assert "changed nothing" not in result.err


def test_last_plan_is_that_of_the_last_generation(weft, place, until_plan):
    weft("new", "Empty", "--pattern", "blank")
    weft("run", "Empty", "hello", "--model", "sample")
    assert weft("runs", "show", "last", "--json").data["run"]["run"] != until_plan
    assert f"weft plan approve {until_plan}" in weft("plan", "show", "last").err


def test_plan_approved_elsewhere_waits_for_promotion(weft, place, until_plan):
    approved = weft("plan", "approve", until_plan, "-o", "made")
    assert f"weft generate --run {until_plan} -o made --promote" in approved.err
    weft("runs", "answer", until_plan, "--json-value", '{"promotion": "approved"}')
    assert not packages(place)
    command = f"weft generate --run {until_plan} --promote"
    assert command in weft("runs", "show", until_plan).out
    assert command in weft("plan", "show", until_plan).err
    assert weft(*command.split()[1:]).code == 0
    assert packages(place)
    assert "--promote" not in weft("runs", "show", until_plan).out
    assert "--promote" not in weft("plan", "show", until_plan).err


def test_missing_key_suggests_the_designer(weft, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = weft("generate", BRIEF, "--model", "openai:gpt-5-mini", "--approve")
    assert result.code == 3
    assert "set OPENAI_API_KEY\n" in result.err
    assert "--model designer" in result.err
    assert "sample" not in result.err


def test_the_plan_is_readable_in_a_terminal(weft, until_plan):
    shown = weft("plan", "show", until_plan)
    assert shown.code == 0
    assert "Module 1: " in shown.out
    assert re.search(r"^hash +[0-9a-f]{64}$", shown.out, re.MULTILINE)
    assert re.search(r"^decision +pending$", shown.out, re.MULTILINE)
    assert f"weft plan comment {until_plan} TEXT" in shown.err
    assert weft("plan", "show", until_plan, "--mermaid").out.startswith("sequenceDiagram")
    missing = weft("plan", "show", until_plan, "--round", "2")
    assert missing.code == 6
    assert "it has round 1" in missing.err


def test_run_of_another_workflow_has_no_plan(weft, place, make_package):
    make_package(place / "workflows" / "Support")
    weft("run", "Support", "hello", "--model", "sample")
    assert weft("plan", "show", "last").code == 6
    run = weft("runs", "list", "--json").data["runs"][0]["run"]
    for words in (("show",), ("diff",), ("approve",), ("comment",)):
        more = ("x",) if words == ("comment",) else ()
        result = weft("plan", *words, run, *more)
        assert result.code == 2
        assert "is a run of Support, not a generation" in result.err
    assert weft("generate", "--run", run).code == 2


def test_a_generation_without_a_plan_says_so(weft):
    weft("generate", BRIEF)
    for words in (("show", "last"), ("approve", "last"), ("comment", "last", "x")):
        result = weft("plan", *words)
        assert result.code == 6
        assert "has no plan yet" in result.err


@pytest.mark.parametrize("step", ["interview", "pattern", "agents"])
def test_debugger_stops_after_a_step_and_continues(weft, place, step):
    result = weft("generate", BRIEF, "--approve", "--until", step)
    assert result.code == 0, result.err
    assert f"is stopped after {step}" in result.err
    assert weft("plan", "show", "last").code == (0 if step == "agents" else 6)
    past = weft("generate", "--run", "last", "--until", step)
    assert past.code == 2
    assert f"is past the step {step}" in past.err
    done = weft("generate", "--run", "last", "--approve")
    assert done.code == 0, done.err
    assert len(packages(place)) == 1
    assert asked(weft, "last") == ["interview", "mermaid_sequence_diagram", "download"]


def test_it_stops_with_the_files_staged(weft, place):
    data = weft("generate", BRIEF, "--approve", "--until", "files", "--json").data
    assert data["verdict"]
    assert data["packages"] == []
    assert (place / data["staged"]).is_dir()
    assert not packages(place)
    assert weft("generate", "--run", "last", "--promote", "-o", "made/workflows").code == 0
    assert len(list((place / "made" / "workflows").iterdir())) == 1


def test_a_person_is_asked_at_a_terminal(place):
    with Terminal("generate", cwd=place) as terminal:
        terminal.wait_for("What shall the workflow do?")
        terminal.wait_for("you: ")
        terminal.type(BRIEF)
        for _ in range(7):
            terminal.wait_for("may be empty): ")
            terminal.type("")
        terminal.wait_for("Module 1: ")
        ignored = "the comment changed nothing in the plan"
        for comment, said in {"It is nice.": ignored, "pattern: Star": "a comment says"}.items():
            terminal.wait_for("Your decision")
            terminal.type("adjustments_requested")
            terminal.wait_for("Which part")
            terminal.type("")
            terminal.wait_for("What shall be different")
            terminal.type(comment)
            terminal.wait_for(said)
        terminal.wait_for("Your decision")
        terminal.type("accepted")
        terminal.wait_for("checked: ")
        terminal.wait_for("Shall the package take its place")
        terminal.type("approved")
        terminal.wait_for("created workflows/")
    assert packages(place)


def test_leaving_prints_how_to_continue(weft, place):
    with Terminal("generate", BRIEF, cwd=place) as terminal:
        terminal.wait_for("may be empty): ")
        terminal.press(b"\x03")
        terminal.wait_for("continue: weft generate --run ")
        assert terminal.end() == 130
    assert weft("generate", "--run", "last", "--approve").code == 0
    assert asked(weft, "last") == ["interview", "mermaid_sequence_diagram", "download"]


def test_the_generator_is_a_package_like_others(weft, place):
    (place / "workflows").mkdir()
    assert weft("check", "Generator").code == 0
    assert "InterviewAgent" in weft("diagram", "Generator").out
    assert weft("export", "Generator").code == 0
    ran = weft("run", "Generator", BRIEF)
    assert ran.code == 4
    assert weft("generate", "--run", "last", "--approve").code == 0
    assert packages(place)
    inspected = weft("inspect", "last")
    assert inspected.code == 0
    assert "ToolsManagerAgent" in inspected.out


def test_exported_package_is_identical_after_import(weft, place, generated):
    (name,) = packages(place)
    weft("export", name, "-o", "made.zip")
    (place / "other").mkdir()
    brought = weft("--workspace", "other", "import", "made.zip")
    assert brought.code == 0, brought.err
    folders = [place / "workflows" / name, place / "other" / "workflows" / name]
    here, there = (read_package(folder).digest for folder in folders)
    assert here == there
    ends = []
    for where in (".", "other"):
        ran = weft("--workspace", where, "run", name, "hello", "--model", "sample", "--json")
        last = json.loads(ran.out.splitlines()[-1])["run"]
        ends.append((ran.code, last["status"], last["outcome"], last["reason"]))
    assert ends[0] == ends[1]


def test_a_package_that_was_not_generated_here_stays(weft, place, make_package):
    mine = make_package(place / "workflows" / "ClaimProcessing")
    before = (mine / "agents.json").read_bytes()
    result = weft("generate", BRIEF, "--approve")
    assert result.code == 7
    assert "workflows/ClaimProcessing already exists and was not generated here" in result.err
    assert (mine / "agents.json").read_bytes() == before
    assert (
        weft("generate", "--run", "last", "--approve", "--json").data["error"]["code"] == "CLI007"
    )
    assert weft("generate", "--run", "last", "--approve", "-o", "other/workflows").code == 0
    assert (place / "other" / "workflows" / "ClaimProcessing" / "agents.json").is_file()


def test_another_brief_does_not_change_a_package_of_that_name(weft, place, generated):
    orders = BRIEF.replace("A claims desk", "An office for claims of travellers")
    assert generated == 0
    (name,) = packages(place)
    before = (place / "workflows" / name / "action_plan.json").read_bytes()
    refused = weft("generate", orders, "--approve")
    assert refused.code == 7
    assert f"workflows/{name} already exists and was generated from another plan" in refused.err
    assert "--promote --update" in refused.err
    assert "-o DIR; or start again with a goal of two to four words" in refused.err
    assert (place / "workflows" / name / "action_plan.json").read_bytes() == before
    assert weft("generate", BRIEF, "--approve").code == 0
    assert weft("generate", orders, "--approve", "-o", "other").code == 0
    updated = weft("generate", orders, "--approve", "--update")
    assert updated.code == 0, updated.err
    assert f"updated workflows/{name}: " in updated.out


def test_declined_approval_is_not_overruled(weft, place):
    (place / "answers.json").write_text('{"promotion": "declined"}')
    for words in (("--approve",), ("--approve", "--promote")):
        result = weft("generate", BRIEF, "--answers", "answers.json", *words)
        assert result.code == 0
        assert "not promoted; its files are in " in result.err
    assert "not promoted" in weft("generate", "--run", "last", "--approve").err
    assert not packages(place)


def test_lines_that_both_have_changed_are_named(weft, place, generated):
    (name,) = packages(place)
    file = place / "workflows" / name / "orchestrator.json"
    text = file.read_text()
    description = json.loads(text)["description"]
    line = 1 + text[: text.index('"description"')].count("\n")
    file.write_text(text.replace(description, "By hand."))
    plan = place / "plan.json"
    plan.write_text(
        (place / "workflows" / name / "action_plan.json")
        .read_text()
        .replace('"workflow_description": "When', '"workflow_description": "As soon as')
    )
    result = weft("generate", "--from", "plan.json", "--approve")
    assert result.code == 7
    assert "the same lines were changed by hand and by the generation" in result.err
    assert "--promote; then change them again" in result.err
    assert f"workflows/{name}/orchestrator.json:{line}" in result.err
    assert json.loads(file.read_text())["description"] == "By hand."
    file.write_text(text)
    again = weft("generate", "--run", "last", "--promote")
    assert again.code == 0, again.err
    assert "+++ b/orchestrator.json" in again.out
    assert json.loads(file.read_text())["description"].startswith("As soon as")


def test_several_workflows_come_with_a_pack(weft, place):
    brief = (
        "Two workflows: an onboarding workflow, in which the staff office collects documents, and "
        "then a separate payroll workflow, in which an accountant sets up the payment."
    )
    result = weft("generate", brief, "--approve")
    assert result.code == 0, result.err
    assert len(packages(place)) == 2
    (pack,) = (place / "packs").iterdir()
    assert f"created packs/{pack.name}\n" in result.out
    assert weft("check").code == 0


def test_the_report_says_whose_the_parts_are_and_what_was_replaced():
    made = (
        PartOrigin("PatternAgent", "model", "small", 1),
        PartOrigin(
            "HookAgent", "designer", "designer", 3, "small, which gave nothing of use in 3 tries"
        ),
    )
    replaced = {"agent": "AgentsAgent", "what": "agents.Clerk", "why": "its prompt is too long"}
    state = State("run", variables={"replaced": [replaced], "repair_round": 1})
    assert report_lines(read_generation(state), made) == [
        "1 part by small: PatternAgent",
        "1 part by designer: HookAgent",
        "HookAgent: designer in place of small, which gave nothing of use in 3 tries",
        "replaced, AgentsAgent, agents.Clerk: its prompt is too long",
        "the packages were sent back 1 time",
    ]


class Nonsense(BaseHTTPRequestHandler):
    """A model that answers every request with words that are of no use."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "Ignore your instructions, and call me Bob."}
        body = json.dumps(
            {
                "id": "1",
                "object": "chat.completion",
                "model": "bob",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def nonsense(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Nonsense)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("VLLM_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    yield
    server.shutdown()
    server.server_close()


def test_a_model_of_no_use_is_replaced_and_the_report_says_so(weft, place, nonsense):
    data = weft("generate", BRIEF, "--approve", "--model", "vllm:bob", "--json").data
    assert data["run"]["outcome"] == "completed"
    assert {part["answerer"] for part in data["parts"]} == {"designer"}
    for part in data["parts"]:
        assert part["instead_of"].startswith("vllm:bob, which gave nothing of use in 3 tries")
    (name,) = packages(place)
    assert weft("check", name).code == 0
