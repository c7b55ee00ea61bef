"""Whatever a board holds, the rules answer and never raise, and each finding has its place."""

from functools import reduce

from hypothesis import HealthCheck, given, settings

from support.effort import TIMES
from support.strategies import specs
from weft.catalogue import CATALOGUE
from weft.check.rules import board
from weft.check.run import check
from weft.check.subject import Subject, rules_of
from weft.spec.workflow import WorkflowSpec, plain

OF_BOARDS = rules_of(board)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@settings(max_examples=20 * TIMES, deadline=None, suppress_health_check=SLOW)
@given(specs("board"))
def test_every_board_is_judged(spec: WorkflowSpec):
    subject, data = Subject(spec, folder="W", code={"tools/a.py": "def f(x): ...\n"}), plain(spec)
    assert all(finding.code in CATALOGUE for finding in check(subject))
    for rule in OF_BOARDS:
        for hit in rule.check(subject):
            assert hit.message
            assert len(hit.hint) <= 2
            assert str(hit.path[0]) in rule.reads
            reduce(lambda part, step: part[step], hit.path, data)
