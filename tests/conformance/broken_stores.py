"""Stores that are wrong in one respect each: what the suite must notice.

A mutant of the store over SQLite is a text of SQL that is replaced, a rule of `Group` that is
replaced, or a method of the store that is replaced.
"""

import asyncio
import sqlite3

from pydantic_core import to_json

from weft.adapters.memory import MemoryStore
from weft.adapters.sql import SqliteStore, board, sqlite_database
from weft.adapters.sql.write import Group
from weft.ports.scope import Scope
from weft.testing.clock import ManualClock
from weft.testing.store import work


async def open_memory(path=None, **options):
    return MemoryStore(**options)


async def open_sqlite(path, **options):
    return await SqliteStore.open(path, durability="normal", **options)


class BrokenConnection:
    """A connection that runs other statements than it is asked to."""

    def __init__(self, connection, old, new):
        self._connection, self._old, self._new = connection, old, new

    def execute(self, sql, values=()):
        try:
            return self._connection.execute(sql.replace(self._old, self._new), values)
        except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:
            raise RuntimeError(f"the mutant is not a statement: {error}") from error


def sql(old, new):
    """Return a function that opens stores which run `new` where the statements say `old`."""

    def make(monkeypatch):
        kept = sqlite_database.execute

        def execute(connection, call, now):
            return kept(BrokenConnection(connection, old, new), call, now)

        monkeypatch.setattr(sqlite_database, "execute", execute)
        return open_sqlite

    return make


def rule(name, broken):
    """Return a function that opens stores in which a rule of the group is another."""

    def make(monkeypatch):
        kept = getattr(Group, name)
        monkeypatch.setattr(Group, name, lambda self, *given: broken(kept, self, *given))
        return open_sqlite

    return make


def method(name, broken):
    """Return a function that opens stores in which a method is another."""

    def make(_monkeypatch):
        kept = getattr(SqliteStore, name)

        def replaced(self, *given, **named):
            return broken(kept, self, *given, **named)

        kind = type("BrokenStore", (SqliteStore,), {name: replaced})

        async def open_broken(path, **options):
            return await kind.open(path, durability="normal", **options)

        return open_broken

    return make


def timed(mutant):
    """Return a function that opens stores whose clock stands still except while they wait."""

    def make(monkeypatch):
        opened = mutant(monkeypatch)

        async def open_timed(path, **options):
            clock = ManualClock()
            store = await opened(path, clock=clock, **options)
            store.wait = clock.advance
            return store

        return open_timed

    return make


def alone(_monkeypatch):
    """Return a function that opens stores which no other process sees."""
    return open_memory


def never_closed(_monkeypatch):
    """Return a function that opens stores which do not notice that they are closed."""

    class NeverClosed(MemoryStore):
        @property
        def _opened(self):
            return self._all

    async def open_never_closed(path=None, **options):
        return NeverClosed(**options)

    return open_never_closed


def everyone(scope):
    return Scope.operator(scope.app)


def _any_seq(kept, group, number, item):
    stand = group._stands.get(item.written.key)
    if stand is not None:
        stand.seq = item.written.batch.expected
    return kept(group, number, item)


def _keep_seen(kept, group, number, parcel, error):
    group._outcomes[number] = error


async def _follow_what_is_there(kept, store, scope, run, *, after=0):
    for event in await store.read(scope, run, after=after):
        yield event


async def _forget_version(kept, store, asked, *, count=False):
    page = await kept(store, asked, count=count)
    return page._replace(items=[item._replace(version=1) for item in page.items])


async def _count_hidden(kept, store, asked, *, count=False):
    page = await kept(store, asked, count=count)
    if not count:
        return page
    return page._replace(total=(await kept(store, asked._replace(reader=None), count=True)).total)


async def _cut_off(kept, store, batch, *, owner):
    await asyncio.sleep(0.01)
    return await kept(store, batch, owner=owner)


async def _prune_mail(kept, store, scope, **options):
    pruned = await kept(store, scope, **options)
    store._database._connection.execute("DELETE FROM mail")
    return pruned


async def _open_run_with_events(kept, store, app, name):
    row = await store.named(app, name)
    return row.run if row is not None else None


def _begin_for_each(kept, group, parcel):
    """Begin a run for each mail that a run which ends sends to its own name."""
    group._next_runs.clear()
    return kept(group, parcel)


async def _free_own_runs(kept, store, owner):
    beat = await kept(store, owner)
    if not beat.alive:
        store._database._connection.execute("UPDATE work SET owner = '' WHERE owner = ?", (owner,))
    return beat


def _mind_the_case(monkeypatch):
    monkeypatch.setattr(board, "payload_holds", lambda value, text: text in to_json(value).decode())
    return open_sqlite


def _wait_for_ever(monkeypatch):
    monkeypatch.setattr(work, "PATIENCE", 0.2)
    return method("wait", lambda kept, store, seconds: asyncio.sleep(99))(monkeypatch)


OWNER_CHECK_OFF = rule("is_stale", lambda kept, group, owner, writer: False)
NO_LOOK_AT_MAIL = rule("is_unread", lambda kept, group, mail: False)
MAIL_KEY_ONLY = sql(
    "ON CONFLICT DO NOTHING RETURNING app, receiver, id",
    "ON CONFLICT (app, receiver, id) DO UPDATE SET at = excluded.at RETURNING app, receiver, id",
)
ANY_SEQ = rule("_decide", _any_seq)

#: By check: stores that it must refuse.
NOTICED = {
    "events_come_back": [sql("ORDER BY e.seq", "ORDER BY e.seq DESC")],
    "conflict_writes_nothing": [ANY_SEQ],
    "one_writer_wins": [ANY_SEQ],
    "batches_of_one_run_queue": [
        sql("DELETE FROM requests WHERE", "DELETE FROM requests WHERE 0 AND"),
    ],
    "text_comes_back": [sql("r.workflow,", "trim(r.workflow),")],
    "long_runs_come_back": [sql("LIMIT ?4", "LIMIT min(?4, 5000)")],
    "packages_and_snapshots_are_kept": [
        sql("WHERE snapshots.seq <= excluded.seq", ""),
        sql("WHERE app = ?1 AND run = ?2", "WHERE ?1 = ?1 AND run = ?2"),
    ],
    "followers_get_events": [method("follow", _follow_what_is_there)],
    "same_digest_other_tenant": [
        sql("FROM packages WHERE app = ?1", "FROM packages WHERE ?1 = ?1"),
    ],
    "rows_are_the_latest": [sql("turns = excluded.turns", "turns = runs.turns")],
    "runs_newest_first": [
        sql("ORDER BY r.started_at DESC, r.run DESC", "ORDER BY r.run DESC"),
        sql("r.status = ?2", "?2 = ?2"),
    ],
    "requests_oldest_first": [
        sql("ORDER BY opened_at, run, id", "ORDER BY run, id"),
        sql("(opened_at, run, id) >", "(opened_at, run, id) >="),
    ],
    "requests_find_their_people": [
        method("requests", lambda kept, store, scope, **options: kept(store, everyone(scope))),
        method("requests", lambda kept, store, scope, **options: kept(
            store, scope if scope.user is None else Scope(scope.app, scope.user), **options)),
    ],
    "values_wait_for_later_runs": [
        sql("DO UPDATE SET value = excluded.value", "DO NOTHING"),
        sql("AND workflow = ?3", "AND ?3 = ?3"),
    ],
    "completed_workflows": [
        method("completed", lambda kept, store, scope, given: kept(store, everyone(scope), given)),
    ],
    "scopes_do_not_leak": [
        sql("AND r.user_id = ?5", "AND ?5 = ?5"),
        sql("r.user_id = ?2", "?2 = ?2"),
    ],
    "mail_waits_until_it_is_taken": [
        sql("ORDER BY number", "ORDER BY id"),
        sql("DELETE FROM mail", "UPDATE mail SET name = name"),
    ],
    "ids_count_once": [MAIL_KEY_ONLY],
    "direct_batches_and_ends_wait_for_mail": [NO_LOOK_AT_MAIL],
    "mail_is_counted_exactly": [
        sql("SELECT count(*) FROM mail m", "SELECT min(count(*), 100) FROM mail m"),
        rule("is_unread", lambda kept, group, mail: mail > 1),
    ],
    "answers_count_once": [
        sql("AND answered = 0 RETURNING", "RETURNING"),
        sql(", answered = 0", ""),
        rule("_refuse", _keep_seen),
    ],
    "names_do_not_split": [
        method(
            "put",
            lambda kept, store, mail, **options: kept(
                store, mail._replace(to=mail.to + mail.id), **options
            ),
        ),
        sql("r.seq > 0", "r.seq >= 0"),
        method("open_run", _open_run_with_events),
        method("open_run", lambda kept, store, app, name: kept(store, "shop", name or "c1")),
    ],
    "runs_send_mail": [method("prune", _prune_mail), rule("_send", _begin_for_each)],
    "no_mail_is_left_behind": [NO_LOOK_AT_MAIL, MAIL_KEY_ONLY],
    "runs_are_claimed_when_due": [
        timed(sql("owner = '' AND due_at <=", "owner = '' AND 0 <=")),
        timed(sql("owner = '' AND due_at <=", "owner = '' AND due_at <")),
        timed(sql("WHERE owner = ?1 AND due_at <=", "WHERE owner = ?1 AND due_at <")),
        timed(sql("SET owner = ?1 FROM d", "SET owner = ?1, due_at = due_at + 9999999 FROM d")),
    ],
    "owners_are_fenced": [OWNER_CHECK_OFF, sql("owner IN ('', ?1)", "owner <> 'x'")],
    "owners_without_heartbeat_are_dead": [sql("LEFT JOIN workers k", "JOIN workers k")],
    "dead_owners_lose_their_runs": [
        OWNER_CHECK_OFF,
        sql("WHERE workers.seen_at >= excluded.seen_at -", "WHERE 0 <="),
    ],
    "late_owners_keep_what_is_left": [
        OWNER_CHECK_OFF,
        sql("SET owner = ?2 WHERE owner = ?1", "SET owner = ?2 WHERE owner > ''"),
        sql("SET owner = ?2 WHERE owner = ?1", "SET owner = ?2 WHERE 0"),
        method("beat", _free_own_runs),
    ],
    "paused_writers_are_refused": [OWNER_CHECK_OFF],
    "lost_answers_are_repeated": [sql("r.seq, r.batch, r.status", "r.seq, '', r.status")],
    "workload_is_counted": [
        sql("SELECT count(*), ", "SELECT count(*) + 1, "),
        sql("OR max(o.seen_at) >=", "OR 0 * max(o.seen_at) >="),
    ],
    "waiting_ends_by_itself": [_wait_for_ever],
    "ended_runs_go": [sql("changed_at <", "changed_at <=")],
    "dry_run_only_counts": [
        method("prune", lambda kept, store, scope, ended_before, dry_run: kept(
            store, scope, ended_before=ended_before, dry_run=False)),
        sql("DELETE FROM packages WHERE", "DELETE FROM packages WHERE 0 AND"),
    ],
    "only_the_scope_is_pruned": [
        method("prune", lambda kept, store, scope, **options: kept(
            store, everyone(scope), **options)),
    ],
    "artifacts_come_back": [method("artifacts", _forget_version)],
    "artifacts_fit_what_is_asked": [
        sql("NOT EXISTS (SELECT 1 FROM artifact_tags", "EXISTS (SELECT 1 FROM artifact_tags"),
        sql("a.created_at <", "a.created_at <="),
        sql("a.partition = ", "a.partition <> "),
    ],
    "text_is_found_in_any_case": [_mind_the_case],
    "artifacts_come_in_order_and_pages": [
        sql("ORDER BY 1 DESC, 2 DESC, 3 DESC", "ORDER BY 1 DESC"),
        sql("OFFSET", "OFFSET 0 *"),
    ],
    "artifacts_appear_in_order": [
        sql("a.visible_at <= a.created_at", "?1 = ?1"),
        sql("AND a.visible_at <= ?", "AND 0 <= ?"),
        sql("(a.visible_at, a.run, a.seq) >", "(a.created_at, a.run, a.seq) >"),
    ],
    "pages_go_on_at_a_place": [
        sql("(a.created_at, a.run, a.seq) <", "(a.created_at, a.run, a.seq) <="),
        sql("(a.created_at, a.run, a.seq) >", "(a.created_at, a.run) >= (?1, ?1) OR (1, 1, 1) >"),
    ],
    "only_readers_who_may_see": [
        sql("a.visible_at <=", "0 <="),
        sql("a.visibility = 'public'", "a.visibility <> 'x'"),
    ],
    "hidden_is_as_missing": [method("artifacts", _count_hidden)],
    "boards_and_tenants_are_apart": [sql("a.board = ?4", "?4 = ?4"), sql("AND board = ?2", "")],
    "owners_are_apart": [
        method("artifacts", lambda kept, store, asked, **options: kept(
            store, asked._replace(owners=None), **options)),
        method("consumed", lambda kept, store, *place, owners, **options: kept(
            store, *place, owners=None, **options)),
    ],
    "consumption_newest_first": [sql("ORDER BY at DESC,", "ORDER BY")],
    "artifacts_are_those_of_batches": [
        sql("DELETE FROM artifacts WHERE", "DELETE FROM artifacts WHERE 0 AND"),
    ],
    "records_are_kept_apart": [
        sql("kind = ?2 AND key = ?3", "?2 = ?2 AND key = ?3"),
        sql("AND version = ?5", "AND ?5 = ?5"),
        sql("DELETE FROM records WHERE app = ?1", "DELETE FROM records WHERE ?1 = ?1"),
    ],
    "one_of_several_adds_a_record": [
        sql("ON CONFLICT DO NOTHING RETURNING version",
            "ON CONFLICT DO UPDATE SET value = excluded.value RETURNING version"),
        sql("AND version = ?5", "AND ?5 = ?5"),
    ],
    "records_come_in_pages": [
        sql("ORDER BY key DESC", "ORDER BY key"),
        sql("key > ?3", "key >= ?3"),
        sql("AND kind = ?2 ORDER", "AND ?2 = ?2 ORDER"),
    ],
    "webhooks_get_each_event": [
        sql("+ ?2 FROM d", "FROM d"),
        sql("AND webhook NOT IN", "AND '' NOT IN"),
        sql("DELETE FROM webhook_events WHERE", "DELETE FROM webhook_events WHERE 0 AND"),
    ],
    "closing_writes_what_is_under_way": [method("append", _cut_off)],
    "closed_is_closed": [never_closed],
    "everything_is_there_again": [alone],
    "writers_share_a_store": [alone],
    "others_are_heard": [alone],
}  # fmt: skip
