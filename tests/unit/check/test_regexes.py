import pytest

from weft.check.regexes import MAX_LENGTH, regex_fault


@pytest.mark.parametrize(
    ("pattern", "offset"),
    [
        ("(a+)+", 0),
        ("(a*)*b", 0),
        (r"^(\w+\s?)*$", 1),
        ("((a+))+", 0),
        ("x(?:a|b+)+", 1),
        ("(a{2,})+", 0),
        ("(a{,})*", 0),
        ("(?P<x>.*)+", 0),
        ("(^a+)+", 0),
        ("(?i:a+)*", 0),
        ("(?=x(a+)+)", 4),
        ("(?#note)(a+)+", 8),
        ("((ab)*)*", 0),
        ("(a+b*)+", 0),
        ("(a*?)+", 0),
        ("([)(]+)+", 0),
        (r"\((a+)+\)", 2),
    ],
)
def test_repetition_inside_a_repetition(pattern, offset):
    fault = regex_fault(pattern)
    assert fault is not None
    assert "repetition" in fault.fact
    assert fault.offset == offset


@pytest.mark.parametrize(
    "pattern",
    [
        "", "NEXT", "a+", "(a+)?", "(a+){2}", "(a?)*", "(a|b)*", r"(\w+,)*", "([a-z]+ )+",
        "(a+b+)+",
        "(a++)+", "(a+)++", "(?>a+)+", "(?=a+)+", "(?:(?=a*)b)+", "(.*)(.*)", "(?i)next",
        "^(ab*)*$",
        "(?P<x>a)(?P=x)+", r"(a)\1*", "a{}", "a{,5}", "(a{1,5})*", "[](]+", r"\(a+\)+", "(?x)a # )",
        "(a)(?(1)b|c)", "(?:(?<=a)b)*", "(?:)*",
    ],
)  # fmt: skip
def test_usable_patterns(pattern):
    assert regex_fault(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "offset", "fact"),
    [
        ("done(", 4, "does not compile"),
        ("[a-", 0, "does not compile"),
        ("*", 0, "nothing to repeat"),
        ("[[a]", 0, "cannot be used: Possible nested set"),
        ("a{99999999999}", 0, "cannot be used"),
        ("(" * 900 + ")" * 90, 0, "nested too deeply"),
        ("x" * (MAX_LENGTH + 1), MAX_LENGTH, "longer than"),
    ],
)
def test_patterns_that_cannot_be_used(pattern, offset, fact):
    fault = regex_fault(pattern)
    assert fault is not None
    assert (fault.offset, fact in fault.fact) == (offset, True)
    assert fault.hint
