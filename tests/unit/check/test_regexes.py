import re
from time import perf_counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

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
        "(a|aa)+$", "(a|a)*$", "(.*a){12}$", "(x+x+)+y", r"(\s|.)*end", "(a+){2}", "(a{1,5})*",
        "(cat|car)+", "(a+)++", "(?>(a|aa)+$)", "(?:a|A)*", r"(\x41|A)*",
        "(?!(a|aa)+$)", "(a|b|[bc])*", r"(\w|\d)+",
    ],
)  # fmt: skip
def test_rounds_that_can_be_cut_in_several_ways(pattern):
    assert "cut in several ways" in regex_fault(pattern).fact


@pytest.mark.parametrize(
    "pattern",
    ["(a?){30}a{30}$", "(a?)*", "(?=a+)+", "(?:)*", "(a)(\\1)+", "(?P<x>a)(?P=x)+", "(a|)*"],
)  # fmt: skip
def test_repetition_of_what_may_be_empty(pattern):
    assert "may be empty" in regex_fault(pattern).fact


@pytest.mark.parametrize(
    "pattern",
    [
        "a*" * 8 + "b", "a*a*a*a*b", ".*a.*b.*c", "a?" * 30 + "a" * 30, "(a|a)" * 30 + "b",
        "(a|)" * 30 + "a", "(|a)" * 30 + "a", "a{1,500}" * 4 + "b", "(ba*){2}a*(ba*){2}a*a*b",
        "(?=.*a.*b.*c)",
    ],
)  # fmt: skip
def test_too_many_ways_outside_of_repetitions(pattern):
    assert "too many ways" in regex_fault(pattern).fact


@pytest.mark.parametrize("pattern", ["(?x)a # )", "(?x: a* a*)", "(?xi)a"])
def test_blanks_that_do_not_count_are_refused(pattern):
    assert "blanks and comments" in regex_fault(pattern).fact


@pytest.mark.parametrize(
    "pattern",
    [
        "", "NEXT", "a+", "(a+)?", "(a|b)*", r"(\w+,)*", "([a-z]+ )+", "(a+b+)+", "(a++)+",
        "(?>a+)+", "(?:(?=a*)b)+", "(.*)(.*)", "(?i)next", "^(ab*)*$", "(?P<x>a)(?P=x)", "a{}",
        "a{,5}", "[](]+", r"\(a+\)+", "(a)(?(1)b|c)", "(?:(?<=a)b)*", r"(\d{3})+", "(?#x)a", "a{0}",
        "(?-x:a+)", r"\x41+\u0042", ".*+.*+.*+.*+", r"order.*number.*\d+", r"https?://\S+",
        r"(?:order|ticket)\s*(?:number|no\.?)?\s*[:#]?\s*(\d+)",
        r"\b(cancel|close|check|call|cost|can|could)\b.*\b(order|orders|offer)\b",
        r"^\s*(yes|yep|y)\s*[.!]?\s*$", r"[\w.+-]+@[\w-]+(\.[\w-]+)+",
    ],
)  # fmt: skip
def test_usable_patterns(pattern):
    assert regex_fault(pattern) is None


_PATTERNS = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "a?", "b*", "ab"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{2,9}", "*?"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=6,
)


@given(_PATTERNS)
@settings(max_examples=300, deadline=None)
def test_a_pattern_that_is_let_through_is_never_exponential(pattern):
    assume(regex_fault(pattern) is None)
    for letter in ("a", "b", "ab"):
        text = letter * (24 // len(letter))
        started = perf_counter()
        re.match(f"(?:{pattern})!", text)
        assert perf_counter() - started < 0.5


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
