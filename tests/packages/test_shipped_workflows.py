"""Every package that comes with Weft: read, checked, explored, and its code tried out."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.shipped import BOARDS, FLOWS
from weft.check.explore import explore
from weft.check.subject import Subject
from weft.engine.compile import not_performed
from weft.engine.flow.plan import nodes_of
from weft.packages.reader import Package, read_package
from weft.packages.review import review
from weft.packages.workspace import (
    EVERYWHERE,
    EXAMPLES,
    example_files,
    shipped_folder,
    template_files,
)
from weft.packages.writer import file_texts
from weft.spec.patterns import PATTERNS

SHIPPED = sorted(path.name for path in shipped_folder().iterdir() if path.is_dir())
#: Those that are conversations.
CONVERSATIONS = [name for name in SHIPPED if name not in (*BOARDS, *FLOWS)]
SIX_FILES = {
    "orchestrator.json",
    "agents.json",
    "context_variables.json",
    "handoffs.json",
    "tools.json",
    "structured_outputs.json",
}


def shipped(name: str) -> Package:
    return read_package(shipped_folder() / name)


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    for name, raw in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)


def functions(package: str, file: str) -> SimpleNamespace:
    """Run a code file of a package; unlike an import, that leaves nothing beside the file."""
    return SimpleNamespace(**runpy.run_path(str(shipped_folder() / package / file)))


def support_tool(name: str):
    return getattr(functions("CustomerSupportRouter", f"tools/{name}.py"), name)


class Context(dict[str, object]):
    """Stands in for the live context that a run passes to tools."""

    def set(self, name: str, value: object) -> None:
        self[name] = value


def test_examples_and_one_template_for_each_pattern_are_shipped():
    templates = (pattern.name for pattern in PATTERNS)
    assert sorted([*EXAMPLES, *EVERYWHERE, *templates]) == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_reads_without_findings(name):
    package = shipped(name)
    assert package.findings == ()
    assert package.broken == frozenset()
    assert package.name == name


@pytest.mark.parametrize("profile", ["development", "production"])
@pytest.mark.parametrize("name", SHIPPED)
def test_checks_clean(name, profile):
    result = review(shipped_folder() / name, profile=profile)
    assert len(result.packages) == 1
    assert result.findings == ()


def test_checks_clean_as_one_workspace():
    result = review(shipped_folder())
    assert len(result.packages) == len(SHIPPED)
    assert result.findings == ()


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_an_end_can_be_reached_from_everywhere(name):
    package = shipped(name)
    code = {path: raw.decode() for path, raw in package.code.items()}
    found = explore(Subject(package.spec, folder=name, code=code))
    assert (found.status, found.unused_rules, found.unreachable_agents) == ("can end", (), ())


@pytest.mark.parametrize("name", SHIPPED)
def test_stands_in_the_written_spelling(name):
    package = shipped(name)
    folder = shipped_folder() / name
    on_disk = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    written = {file: text.encode() for file, text in file_texts(package.spec).items()}
    assert on_disk == written
    more = {"board.json"} if name in BOARDS else {"flow.json"} if name in FLOWS else set()
    assert on_disk.keys() == SIX_FILES | more


@pytest.mark.parametrize("name", SHIPPED)
def test_has_tools_and_says_what_it_is_for(name):
    package = shipped(name)
    orchestrator = package.spec.orchestrator
    assert package.spec.tools
    assert re.match(r"When .+, resulting in .+", orchestrator.description)
    assert all(variable.description for variable in package.spec.variables.values())


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_template_follows_its_pattern(pattern):
    orchestrator = shipped(pattern.name).spec.orchestrator
    assert orchestrator.orchestration_pattern == pattern.name
    assert orchestrator.workflow_name == pattern.name


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_template_is_clean_under_another_name(pattern, tmp_path):
    folder = tmp_path / "Renamed"
    write_files(folder, template_files(str(pattern.id), "Renamed"))
    result = review(folder)
    assert [package.name for package in result.packages] == ["Renamed"]
    assert result.findings == ()
    template = shipped_folder() / pattern.name
    assert {path.name for path in folder.rglob("*.py")} == {
        path.name for path in template.rglob("*.py")
    }


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_files_are_the_whole_package(name, tmp_path):
    write_files(tmp_path / name, example_files(name))
    assert read_package(tmp_path / name).digest == shipped(name).digest


@pytest.mark.parametrize("name", SHIPPED)
def test_declares_only_what_is_performed(name):
    assert not_performed(shipped(name).spec) == ()


def test_the_support_router_shows_every_part_of_a_package_that_is_performed():
    spec = shipped("CustomerSupportRouter").spec
    sources = {variable.source.type for variable in spec.variables.values()}
    assert sources == {"static", "environment", "derived"}
    triggers = {
        trigger.type
        for variable in spec.variables.values()
        if variable.source.type == "derived"
        for trigger in variable.source.triggers
    }
    assert triggers == {"tool_call", "tool_response", "ui_response", "user_text", "agent_text"}
    assert {tool.tool_type for tool in spec.tools} == {"Agent_Tool", "UI_Tool"}
    assert {handoff.condition_scope for handoff in spec.handoffs} == {"pre", "post"}
    assert any(variable.writers for variable in spec.variables.values())
    assert spec.registry


def test_the_news_desk_shows_what_a_board_is_made_of():
    spec = shipped("NewsDesk").spec
    reporter, checker, editor = spec.board.agents
    assert reporter.consumes[0].where == "tools.desk:is_newsworthy"
    assert checker.engines[0].kind == "function"
    assert editor.consumes[0].join is not None
    assert editor.context.kind == "redacting"
    assert editor.components[0].component == "tools.desk:HouseStyle"


def test_components_use_only_what_the_sandbox_offers():
    components = list(shipped_folder().glob("*/tools/*.jsx"))
    assert components
    for path in components:
        text = path.read_text("utf-8")
        assert set(re.findall(r'from "(.+?)"', text)) <= {"react", "@kit/ui"}
        assert f"export default function {path.stem}({{ payload, onResponse, onCancel }})" in text


def test_context_of_the_support_router():
    context = Context(refund_window_days=30, chat_id="chat-1")
    refund = support_tool("check_refund")
    assert [refund(60.0, days, context)["refund"] for days in (7, 15, 31)] == [60.0, 30.0, 0.0]
    find = support_tool("find_articles")
    assert find("How do I export a PDF?", context) == ["Export notes as PDF or Markdown"]
    assert find("account", Context(max_articles=1)) == ["Change the e-mail address of an account"]
    open_case = support_tool("open_case")
    case = open_case("no sync", context)
    assert case == open_case("no sync", context)
    assert (case["status"], context["case_number"]) == ("open", case["case_number"])


@pytest.mark.parametrize(
    ("user", "customer", "plan"),
    [
        ("me", "Ada, premium plan", "premium"),
        ("grace", "Grace, basic plan", "basic"),
        ("somebody", "a guest, basic plan", "basic"),
    ],
)
def test_the_support_router_knows_customers_by_who_is_signed_in(user, customer, plan):
    found = support_tool("look_up_customer")(Context(user_id=user))
    assert found == {"customer": customer, "plan": plan}


@pytest.mark.parametrize("plan", ["basic", "premium"])
@pytest.mark.parametrize("urgency", ["low", "normal", "high"])
def test_only_urgent_requests_of_premium_customers_have_priority(plan, urgency):
    analyze = support_tool("analyze_request")
    decision = analyze("tech", urgency, "No sync.", "One moment.", Context(customer_plan=plan))
    assert decision["has_priority"] == ((plan, urgency) == ("premium", "high"))


def test_code_of_the_news_desk():
    desk = functions("NewsDesk", "tools/desk.py")
    assert desk.is_newsworthy({"urgency": 2, "headline": "Bridge closed"})
    assert not desk.is_newsworthy({"urgency": 1, "headline": "Bridge closed"})
    assert not desk.is_newsworthy({"urgency": 5, "headline": " "})
    story = {"headline": "Bridge", "text": "Write to ada@example.org " + "now " * 200}
    inputs = SimpleNamespace(artifacts=(SimpleNamespace(payload=story),))
    assert desk.check_story(inputs) == {
        "headline": "Bridge",
        "sound": False,
        "remarks": ["an address is printed", "it is too long"],
    }
    inputs.artifacts[0].payload = {"headline": "Bridge", "text": "It is closed."}
    assert desk.check_story(inputs)["sound"]
    assert desk.without_address("a call of ada@example.org") == "a call of (an address)"
    ctx = SimpleNamespace(state={})
    desk.HouseStyle(longest_sentence=12).pre_consume(ctx, None)
    assert ctx.state["house_style"]["sentences"] == "at most 12 words each"
    archive = functions("NewsDesk", "tools/archive.py").search_archive
    assert archive("The harbour bridge is open again") == [
        "Harbour bridge closed for repairs",
        "New bus line to the harbour",
    ]


def test_the_order_processing_shows_what_a_flow_is_made_of():
    flow = shipped("OrderProcessing").spec.flow
    nodes = list(nodes_of(flow))
    assert {node.kind for node in nodes} == {"step", "branch", "fork", "repeat", "approval"}
    steps = {node.name: node for node in nodes if node.kind == "step"}
    assert {step.work.kind for step in steps.values()} == {"agent", "function"}
    assert steps["Ship"].retry is not None
    assert steps["Ship"].compensate is not None
    assert flow.finally_ is not None
    assert flow.on_failure is not None


def test_code_of_the_order_processing():
    orders = functions("OrderProcessing", "tools/orders.py")
    order = orders.Order(card="declined", items=["unicorn"], address="harbour")
    context = SimpleNamespace(attempt=1, paths={}, failure=None, undoes=None)
    with pytest.raises(ValueError, match="declined"):
        orders.charge_card(order)
    with pytest.raises(LookupError, match="unicorn"):
        orders.reserve_items(order)
    with pytest.raises(ConnectionError, match="busy"):
        orders.ship(order, context)
    context.attempt = 2
    assert orders.ship(order, context)["parcel"] == "parcel-A-1"
    assert orders.give_money_back(order, context) == {"paid_by": "", "log": []}
    context.undoes = SimpleNamespace(state=orders.Order(paid_by="card-A-1"))
    assert orders.give_money_back(order, context)["log"] == ["card-A-1 given back"]
    assert not orders.check_message(order)["message_fits"]
    context.paths = {"goods": SimpleNamespace(status="failed")}
    with pytest.raises(LookupError, match="nothing to pack"):
        orders.pack(order, context)
    assert functions("OrderProcessing", "tools/delivery.py").delivery_days("harbour") == 3


def test_figures_of_the_templates():
    best = functions("Redundant", "tools/choose_best.py").choose_best
    assert best([3, 3, 3], [5, 4, 4], [1, 1, 1])["best_answer"] == "second"
    assert best([1, 1, 1], [2, 2, 2], [1, 1, 1])["best_answer"] == "none"
    assert (
        functions("Pipeline", "tools/check_notes.py").check_notes("too few")["state"] == "too_short"
    )
    assert functions("ContextAwareRouting", "tools/prorate.py").prorate(30.0, 12) == {
        "used": 12.0,
        "left": 18.0,
    }
    assert functions("Star", "tools/room_size.py").room_size(50, "tables") == {"square_metres": 121}
    fix = functions("Escalation", "tools/find_known_fix.py").find_known_fix
    assert fix("The Wi-Fi is gone")["fix"].startswith("Forget the network")
    submitted = functions("FeedbackLoop", "tools/submit_draft.py").submit_draft("One two. Three!")
    assert (submitted["words"], submitted["longest_sentence"]) == (3, 2)
    assert functions("HelloWorld", "tools/greet.py").greet(" Ada ", "French") == "Bonjour, Ada!"
