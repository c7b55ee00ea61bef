"""weft test and weft runs save-test."""

import pytest

SCENARIO = """message: I am Ada
replies: {GreeterAgent: ["Hello, Ada!"]}
expect: {shown: ["Hello, Ada!"], outcome: waiting}
"""


@pytest.fixture
def shop(weft, tmp_path, monkeypatch):
    """A workspace with the examples, as the current folder."""
    monkeypatch.chdir(tmp_path)
    weft("init", "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def write(shop, text=SCENARIO, name="greets"):
    (shop / "workflows" / "HelloWorld" / "tests" / f"{name}.yaml").write_text(text)


def test_examples_of_a_new_workspace_pass(weft, shop):
    done = weft("test")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("12 scenarios passed (")


def test_difference_is_printed_with_its_place_and_exits_with_1(weft, shop):
    write(shop, SCENARIO.replace("waiting", "completed"))
    done = weft("test", "HelloWorld", "--no-color")
    assert done.code == 1
    assert done.out.splitlines()[:9] == [
        "failed: HelloWorld greets",
        "",
        "error[TEST001]: the outcome differs",
        "  --> workflows/HelloWorld/tests/greets.yaml:3:43",
        "  |",
        '3 | expect: {shown: ["Hello, Ada!"], outcome: completed}',
        "  |                                           ^^^^^^^^^",
        "  cause: expected: completed",
        "  cause: got: waiting",
    ]
    assert "1 scenario passed, 1 failed (" in done.out


def test_json_has_every_result(weft, shop):
    write(shop, SCENARIO.replace('Hello, Ada!"], o', 'Bye"], o'))
    done = weft("test", "HelloWorld", "--json")
    failed, passed = done.data["results"]
    assert (done.code, done.data["failed"]) == (1, 1)
    assert (failed["package"], failed["name"], failed["passed"]) == ("HelloWorld", "greets", False)
    assert (passed["name"], passed["passed"], passed["findings"]) == ("says_goodbye", True, [])
    [finding] = failed["findings"]
    assert (finding["path"], finding["line"]) == (["expect", "shown", 0], 3)


def test_bad_file_fails_with_its_findings_and_check_reports_them_too(weft, shop):
    write(shop, "mesage: hello\n")
    for words in (("test", "HelloWorld"), ("check", "HelloWorld")):
        done = weft(*words)
        assert done.code == 1
        assert 'error[SCHEMA008]: unknown key "mesage"' in done.out
        assert 'hint:  did you mean "message"?' in done.out


def test_one_scenario_is_chosen_by_name(weft, shop):
    write(shop, "mesage: hello\n")
    assert weft("test", "--scenario", "says_goodbye").out.startswith("1 scenario passed")
    unknown = weft("test", "HelloWorld", "--scenario", "says_godbye")
    assert (unknown.code, "did you mean says_goodbye?" in unknown.err) == (6, True)


def test_package_with_errors_and_one_without_scenarios(weft, shop):
    weft("new", "Returns", "--pattern", "blank")
    none = weft("test", "Returns")
    assert (none.code, none.out) == (0, "no scenarios\n")
    assert "write one in the folder tests" in none.err
    (shop / "workflows" / "HelloWorld" / "agents.json").write_text("{")
    broken = weft("test", "HelloWorld")
    assert (broken.code, "HelloWorld has 1 error and cannot run" in broken.err) == (1, True)


def test_progress_bar_in_a_terminal(weft, shop, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    bar = weft("test", "HelloWorld").err
    assert "[##############################] 1 of 1 scenario" in bar


def test_run_is_saved_as_a_test_that_passes(weft, shop):
    weft("run", "HelloWorld", "I am Ada", "--model", "sample")
    saved = weft("runs", "save-test", "last", "--name", "ada")
    assert (saved.code, saved.out) == (0, "created workflows/HelloWorld/tests/ada.yaml\n")
    assert saved.err == "run it: weft test HelloWorld --scenario ada\n"
    assert weft("test", "HelloWorld", "--scenario", "ada").code == 0
    text = (shop / "workflows" / "HelloWorld" / "tests" / "ada.yaml").read_text()
    assert "message: I am Ada\n" in text
    again = weft("runs", "save-test", "last", "--name", "ada")
    assert (again.code, "already exists" in again.err) == (7, True)
    assert weft("runs", "save-test", "last", "--name", "a/b").code == 2
    assert weft("runs", "save-test", "last", "--json").data["volatile"] == []


def test_network_is_refused_in_tests(weft, shop):
    tool = shop / "workflows" / "HelloWorld" / "tools" / "greet.py"
    tool.write_text(
        "import socket\n\n\ndef greet(name: str, language: str) -> str:\n"
        '    """Greet."""\n    socket.create_connection(("greetings.example", 80), timeout=1)\n'
    )
    call = "[[{greet: {name: Ada, language: English}}], Hello]"
    write(shop, f"{{message: hi, replies: {{GreeterAgent: {call}}}, expect: {{outcome: failed}}}}")
    done = weft("test", "--scenario", "greets")
    assert "a test tried to connect to greetings.example" in done.out
