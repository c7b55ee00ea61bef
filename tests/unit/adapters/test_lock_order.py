"""No transaction locks anything after the work rows, so that no two wait for each other."""

from itertools import count

from weft.adapters.sql.rows import mail_row
from weft.adapters.sql.write import Deferred, Put, write_group
from weft.adapters.sql.write_statements import BEGIN_RUNS, FORGET, LOCK, NAMED, SEE
from weft.engine.events import MessageShown, RunStarted
from weft.engine.rows import Mail

START = RunStarted("Shop", "digest", "shop", "ann", {}, correlation="order")
MAIL = Mail("shop", "order", "m1", "user:ann", MessageShown("hello"), START)
NAME = ("shop", "order")


def outcome_and_statements(answers):
    """Write mail to a name, with what a database answers; return the statements as well."""
    ids = count(1)
    items = [Put(mail_row(MAIL, lambda: f"new{next(ids)}"), None)]
    transaction = write_group(items, notify=lambda _, __: [], refreshed={}, dead_after=5000)
    statements = []
    rows = None
    try:
        while True:
            asked = transaction.send(rows)
            calls = asked if isinstance(asked, list) else [asked]
            statements += [call.statement for call in calls]
            assert len(statements) < 20, "it does not come to an end"
            rows = [] if isinstance(asked, list) else answers.get(asked.statement, [])
    except StopIteration as stop:
        return stop.value, statements


def test_mail_waits_for_the_next_transaction_if_the_run_of_its_name_ends_before_the_lock():
    answers = {SEE: [(*NAME, "m1")], NAMED: [(*NAME, "old")]}
    outcomes, statements = outcome_and_statements(answers)
    assert outcomes == [Deferred()]
    assert statements == [SEE, NAMED, LOCK, FORGET], "its id may come again"


def test_mail_waits_for_the_next_transaction_if_another_process_begins_its_name():
    outcomes, statements = outcome_and_statements({SEE: [(*NAME, "m1")]})
    assert outcomes == [Deferred()]
    assert statements == [SEE, NAMED, BEGIN_RUNS, LOCK, FORGET]
