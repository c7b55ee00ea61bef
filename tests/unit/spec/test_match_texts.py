"""What triggers look for in a text."""

import pytest
from pydantic import ValidationError

from weft.spec.triggers import UserTextTrigger


@pytest.mark.parametrize("mode", ["equals", "exact", "contains", "regex"])
@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_a_blank_text_is_refused(mode: str, text: str):
    with pytest.raises(ValidationError, match="is blank: write what must be said"):
        UserTextTrigger.model_validate({"match": {mode: text}})


@pytest.mark.parametrize("mode", ["equals", "exact", "contains", "regex"])
@pytest.mark.parametrize("text", ["DONE", " a ", "\n."])
def test_any_other_text_is_kept_as_it_is(mode: str, text: str):
    trigger = UserTextTrigger.model_validate({"match": {mode: text}})
    assert trigger.match.model_dump() == {mode: text}
    assert UserTextTrigger.model_validate(trigger.model_dump()) == trigger


def test_a_value_that_is_not_text_is_refused():
    with pytest.raises(ValidationError, match="valid string"):
        UserTextTrigger.model_validate({"match": {"equals": 3}})
