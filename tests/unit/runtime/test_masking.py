"""Secrets are taken out of values, whole and in parts, however they are spelt."""

import json
from base64 import b64encode
from urllib.parse import quote, quote_plus

import pytest

from weft.runtime.variables.json_values import MASK, masked

KEY = 'a "key"\nof träge & slow/words'


@pytest.mark.parametrize(
    "spelt",
    [str, repr, json.dumps, quote, quote_plus, lambda text: b64encode(text.encode()).decode()],
    ids=["itself", "repr", "json", "address", "form", "login"],
)
def test_a_secret_is_hidden_in_every_spelling(spelt):
    told = masked({"said": [f"<{spelt(KEY)}>"]}, {"key": KEY})
    assert "slow" not in str(told)
    assert MASK in told["said"][0]


def test_parts_of_a_secret_that_is_an_object_are_secrets_too():
    secret = {"user": "ada", "keys": ["k3y-number-1", 9876543], "on": True, "size": 3}
    value = {"k3y-number-1": "it is k3y-number-1", "n": 9876543, "said": "9876543!", "size": 3}
    assert masked(value, {"login": secret}) == {
        MASK: f"it is {MASK}",
        "n": MASK,
        "said": f"{MASK}!",
        "size": 3,
    }
    assert masked([secret], {"login": secret}) == [MASK]


def test_short_secret_is_masked_as_a_whole_value():
    assert masked(["4711", "4711!", 4711], {"pin": "4711"}) == [MASK, "4711!", 4711]
    assert masked([4711, "4711"], {"pin": 4711}) == [MASK, "4711"]


@pytest.mark.parametrize("nothing", [None, "", {}, [], True, False])
def test_empty_text_is_not_a_secret(nothing):
    value = {"a": [None, "", {}, [], True, False, 0]}
    assert masked(value, {"none": nothing}) == value
