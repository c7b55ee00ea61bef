"""weft run --input: a run that a form, a webhook or a changed document begins, begun by hand."""

import json

import pytest

FORM = {"type": "form_submit", "form": "Claim"}
MODELS = {
    "models": [{"name": "Claim", "fields": {"amount": {"type": "int"}, "why": {"type": "str"}}}],
    "registry": [],
}


@pytest.fixture
def claims(workspace, make_package, write):
    folder = make_package(workspace / "workflows" / "Claims", trigger=FORM)
    write(folder, "structured_outputs.json", MODELS)
    return folder


def begun(outcome):
    return next(
        entry["event"]["data"]["input"]
        for entry in map(json.loads, outcome.out.splitlines())
        if entry.get("event", {}).get("kind") == "RunStarted"
    )


def test_fields_are_given_one_by_one_or_in_a_file(weft, claims, tmp_path):
    one_by_one = weft("run", "Claims", "--input", "amount=12", "--input", "why=taxi", "--json")
    assert begun(one_by_one) == {"amount": 12, "why": "taxi"}
    file = tmp_path / "claim.json"
    file.write_text('{"amount": 3, "why": "7"}')
    assert begun(weft("run", "Claims", "--input", str(file), "--json")) == {
        "amount": 3,
        "why": "7",
    }


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ([], 2, "the fields of its form: amount, why"),
        (["--input", "amount=much", "--input", "why=taxi"], 2, "amount"),
        (["--input", "nowhere.json"], 6, "cannot read nowhere.json"),
        (["--input", "amount=1", "--input", "why"], 2, 'invalid value "why" for --input'),
    ],
)
def test_invalid_value_gets_a_hint(weft, claims, given, code, said):
    outcome = weft("run", "Claims", *given)
    assert outcome.code == code
    assert said in outcome.err
    assert "--input" in outcome.err or "JSON" in outcome.err


def test_a_file_must_hold_an_object(weft, claims, tmp_path):
    for text in ("[1]", "{"):
        file = tmp_path / "claim.json"
        file.write_text(text)
        outcome = weft("run", "Claims", "--input", str(file))
        assert outcome.code == 2
        assert "claim.json" in outcome.err
