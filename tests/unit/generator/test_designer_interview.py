"""What a brief is taken to say, what answers change, and what comments direct."""

from time import process_time

import pytest

from support.designed import BRIEFS, design
from weft.generator.compile.starts import cron_of
from weft.generator.designer.brief import read_brief
from weft.generator.designer.interview import defaults
from weft.generator.designer.text import LONGEST_TEXT, Wording, plain_line
from weft.packages.reader import read_package
from weft.packages.workspace import shipped_folder

FIELDS = ["goal", "started_by", "approver", "data", "integrations", "specialists", "risks"]


def test_every_question_of_the_form_has_a_default():
    tools = read_package(shipped_folder() / "Generator").spec.tools
    form = next(tool for tool in tools if tool.function == "interview")
    assert list(form.response_schema["properties"]) == FIELDS
    assert list(defaults("")) == FIELDS
    assert all(defaults("").values())


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("Help me with my letters.", "chat"),
        ("Every night, write a report.", "schedule"),
        ("Our shop calls a webhook for each order.", "webhook"),
        ("When the stock falls below ten pieces, order more.", "database change"),
        ("An employee submits a request form.", "form"),
        ("Jede Nacht einen Bericht schreiben.", "schedule"),
        ("毎朝レポートを書いてください。", "schedule"),
    ],
)
def test_words_of_the_brief_say_what_starts_it(text: str, start: str):
    assert defaults(text)["started_by"] == start


@pytest.mark.parametrize(
    ("text", "when", "cron"),
    [
        ("Every Friday, sum up the sales.", "Every Friday", "0 6 * * FRI"),
        ("Send the figures each Monday.", "Every Monday", "0 6 * * MON"),
        ("We check the shelves. On Mondays.", "Every Monday", "0 6 * * MON"),
        ("Jeden Montag einen Bericht schreiben.", "Every Monday", "0 6 * * MON"),
        ("Escribe un informe cada lunes.", "Every Monday", "0 6 * * MON"),
        ("Sum up the news. It runs weekly.", "Every week", "0 6 * * MON"),
        ("Each Tuesday, sum up the news.", "Every week, on Tuesday", "0 6 * * TUE"),
        ("Sum up the news. It runs monthly.", "Every month", "0 6 1 * *"),
        ("Sum up the news at 6 am.", "Every day", "0 6 * * *"),
    ],
)
def test_the_time_of_a_schedule_reaches_the_start(text: str, when: str, cron: str):
    strategy = design(text).strategy
    assert strategy.trigger == "schedule"
    assert strategy.workflow_description.startswith(f"{when}, the workflow starts")
    assert cron_of(strategy.workflow_description) == cron
    answered = design("Sum up the news.", {"started_by": text})
    assert cron_of(answered.strategy.workflow_description) == cron


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("Hi,\nwe need help with tenders. Thanks!", "We need help with tenders"),
        ("Hello team\n\nCheck our tenders.", "Check our tenders"),
        ("Hello team! I hope you are well. Check our tenders.", "Check our tenders"),
        ("Hi there we check tenders.", "We check tenders"),
        ("Dear colleagues of Weft, check our tenders.", "Check our tenders"),
        ("Hi-tech tenders are checked.", "Hi-tech tenders are checked"),
        ("Say hello, and check our tenders.", "Say hello, and check our tenders"),
        ("Thank you all.", "Thank you all"),
        ("# Tender check\nAn agent reads the tender.", "Tender check"),
    ],
)
def test_the_goal_is_the_first_sentence_that_says_something(text: str, goal: str):
    assert defaults(text)["goal"] == goal


@pytest.mark.parametrize(
    ("text", "approver"),
    [
        ("Write a poem.", "nobody"),
        ("Invoices must be approved by the finance manager before payment.", "finance manager"),
        ("At the end the head of claims signs off.", "head of claims"),
        ("Their team manager then approves or declines.", "team manager"),
        ("Rechnungen werden von der Geschäftsführung freigegeben.", "geschäftsführung"),
        ("Somehow there must be a sign-off.", "person in charge"),
        ("No approval is needed.", "nobody"),
    ],
)
def test_approvals_are_planned_only_if_the_brief_asks_for_them(text: str, approver: str):
    assert defaults(text)["approver"] == approver


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("Ask a tax advisor and a security engineer.", "tax advisor, security engineer"),
        (
            "Send it to the billing, technical or account specialists.",
            "billing specialist, technical specialist, account specialist",
        ),
        ("Answer questions about invoices.", "invoice reader, purchase matcher, bookkeeper"),
    ],
)
def test_people_the_brief_names_win_over_those_of_the_domain(text: str, people: str):
    assert defaults(text)["specialists"] == people


def test_a_service_that_must_not_be_used_is_not_used():
    assert defaults("Post the result in Slack.")["integrations"] == "Slack"
    assert defaults("Results must never be sent by email.")["integrations"] == "none"


@pytest.mark.parametrize("name", BRIEFS)
def test_answering_with_the_defaults_changes_nothing(name: str):
    text = BRIEFS[name]
    assert read_brief(text, defaults(text)) == read_brief(text, {})


def test_answers_win_over_what_the_brief_says():
    answers = {
        "goal": "Check tenders",
        "started_by": "webhook",
        "approver": "the purchasing lead",
        "data": "tender, supplier list",
        "integrations": "jira and our own crm",
        "specialists": "cost analyst, site engineer",
        "risks": "a tender is lost",
    }
    brief = read_brief(BRIEFS["01-support-desk"], answers)
    assert (brief.goal, brief.trigger, brief.initiated_by) == (
        "Check tenders",
        "webhook",
        "external_event",
    )
    assert brief.approver == "purchasing lead"
    assert brief.data == ("tender", "supplier list")
    assert brief.integrations == ("Jira", "OwnCrm")
    assert brief.specialists == ("cost analyst", "site engineer")
    assert brief.risks == "a tender is lost"


def test_blank_answers_count_as_missing():
    text = BRIEFS["02-invoice-approval"]
    assert read_brief(text, {"approver": "  "}).approver == "finance manager"
    assert read_brief(text, {"approver": "Nobody"}).approver is None
    assert read_brief(text, {"integrations": "none"}).integrations == ()


def test_a_brief_is_read_up_to_a_limit():
    text = "route it. " * LONGEST_TEXT
    assert len(read_brief(text, {}, [text]).text) == LONGEST_TEXT
    assert len(read_brief("", {"goal": text}).goal) <= 160


def test_free_text_becomes_one_plain_line():
    line = plain_line("a {b}\n`c`\x00\x1b[31m \u202eevil <d>\ud800", 40)
    assert line == "a (b) 'c' [31m evil (d)"
    assert line.isprintable()
    assert plain_line("word " * 100, 20) == "word word word..."


def test_words_are_found_whole_without_accents_and_within_a_sentence():
    wording = Wording("Wir prüfen das. Sign-off folgt; escalates quickly.")
    assert wording.find("prufen") == "prüfen"
    assert wording.find("sign off") == "Sign-off"
    assert wording.find("escalat*") == "escalates"
    assert wording.find("das sign") is None
    assert wording.find("quick") is None


DESK = BRIEFS["01-support-desk"]


def test_comments_can_direct_pattern_start_and_approval():
    plain = design(DESK)
    assert plain.strategy.pattern == ("ContextAwareRouting",)
    directed = design(DESK, comments=["pattern: feedback loop, trigger: webhook"])
    assert directed.choice.selection.workflows[0].pattern_name == "Feedback Loop"
    assert "pattern: Feedback Loop" in directed.choice.reasons[0]
    assert directed.strategy.trigger == "webhook"
    approved = design(DESK, comments=["approval by the desk manager please"])
    assert "DeskManagerApproval" in approved.names
    assert approved.brief.approver == "desk manager"
    undone = design(DESK, comments=["approval by the desk manager", "Sorry: no approval."])
    assert undone.names == plain.names


def test_comments_can_add_remove_and_rename_people():
    comments = ["Please add specialist network engineer and remove the billing specialist."]
    changed = design(DESK, comments=comments)
    assert "NetworkEngineer" in changed.names
    assert "BillingSpecialist" not in changed.names
    renamed = design(DESK, comments=["rename SupportRequestRouter to FrontDesk"])
    assert renamed.names[0] == "FrontDesk"
    assert renamed.agents[0].agent_type == "router"
    assert renamed.strategy.modules[0].agents_needed[0] == "FrontDesk"


def test_comments_do_not_change_what_is_worked_on():
    plain = design(DESK)
    comments = ["remove the billing specialist, and no approval please", "Mind invoices, payments."]
    changed = design(DESK, comments=comments)
    assert changed.brief.domain == plain.brief.domain
    assert changed.choice.selection == plain.choice.selection
    assert changed.names == [name for name in plain.names if name != "BillingSpecialist"]


def test_words_of_directives_speak_for_no_pattern():
    plain = design("Answer letters.")
    directed = design("Answer letters.", comments=["add specialist triage coordinator"])
    assert directed.choice.scores == plain.choice.scores
    assert "TriageCoordinator" in directed.names


def test_name_does_not_change_the_task():
    text = "Check invoices one after the other."
    plain = {agent.agent_name: agent for agent in design(text).agents}["Bookkeeper"]
    comments = ["rename the bookkeeper to Clerk", "rename Clerk to ledger keeper"]
    renamed = {agent.agent_name: agent for agent in design(text, comments=comments).agents}
    assert renamed["LedgerKeeper"].objective == plain.objective
    assert renamed["LedgerKeeper"].agent_tools == plain.agent_tools


def test_removed_agent_does_not_return_to_the_team():
    comments = ["remove technical specialist", "remove billing specialist"]
    names = design(DESK, comments=comments).names
    assert len(names) >= 3
    assert {"TechnicalSpecialist", "BillingSpecialist"}.isdisjoint(names)


def test_directives_that_name_nothing_known_change_nothing():
    comments = ["pattern: zigzag", "remove everything", "rename Nobody to Somebody"]
    assert design(DESK, comments=comments).names == design(DESK).names


def test_a_name_without_an_end_is_read_at_once():
    start = process_time()
    design(DESK, comments=[f"rename {'a' * LONGEST_TEXT}"])
    assert process_time() - start < 1


def test_directives_count_in_comments_only():
    assert design(f"{DESK} pattern: Star").strategy.pattern == ("ContextAwareRouting",)
