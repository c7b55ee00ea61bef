"""What programs read: the JSON shape of failures and of runs with their open requests."""

from dataclasses import replace

from weft.engine.rows import OpenRequest, RunRow
from weft.findings import Finding, Place
from weft.wire.findings import Problem, problem_data
from weft.wire.rows import request_data, run_data

ROW = RunRow(
    run="r1",
    app="local",
    user="me",
    workflow="Desk",
    digest="0" * 64,
    status="waiting",
    seq=3,
    started_at=0,
    changed_at=0,
    turns=1,
    calls=2,
    input_tokens=1,
    output_tokens=2,
    cost_usd=0.5,
    unpriced_calls=0,
    preview="hi",
    outcome=None,
    reason="",
    parent="",
)
ASKED = OpenRequest("r1:1:0", "r1", "local", "me", "ui", "Clerk", "approve", {}, 0, None)


def test_a_problem_names_its_run_only_where_it_has_one():
    finding = Finding("NAME001", "error", "no such agent", Place("handoffs.json", 3))
    problem = Problem(
        "CLI003", "stopped", cause=("full",), hint=("make room",), findings=(finding,)
    )
    data = problem_data(problem)
    assert list(data) == ["code", "message", "cause", "hint", "findings"]
    assert (data["cause"], data["hint"]) == (["full"], ["make room"])
    assert data["findings"][0]["code"] == "NAME001"
    assert problem_data(replace(problem, run="r1")) == {**data, "run": "r1"}


def test_sums_that_lack_a_part_are_null():
    assert run_data(ROW, [])["cost_usd"] == 0.5
    assert run_data(ROW._replace(unpriced_calls=1), [])["cost_usd"] is None
    tokens = run_data(ROW._replace(unmetered_calls=1), [])
    assert (tokens["input_tokens"], tokens["output_tokens"]) == (None, None)


def test_each_run_of_a_page_gets_its_own_requests():
    second = ASKED._replace(id="r2:1:0", run="r2")
    elsewhere = ASKED._replace(id="r9:1:0", run="r9")
    rows = [ROW._replace(run=run) for run in ("r2", "r1", "r0")]
    page = [run_data(row, [ASKED, elsewhere, second]) for row in rows]
    assert [entry["run"] for entry in page] == ["r2", "r1", "r0"]
    assert [entry["requests"] for entry in page] == [
        [request_data(second)],
        [request_data(ASKED)],
        [],
    ]
