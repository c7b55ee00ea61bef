"""What must hold of what a server keeps: records, and the events that webhooks are to get."""

import asyncio
from typing import Final

from weft.engine.rows import OutgoingEvent
from weft.findings import Json
from weft.ports.records import Record
from weft.ports.store import Store
from weft.testing.store.samples import APP, ME, SCOPE, Check, SampleRun, expect

#: Milliseconds that no check takes.
LATER: Final = 900_000

_VALUE: Final[dict[str, Json]] = {"name": "ä 🙂", "roles": ["clerk", None], "limit": 0.5}


async def records_are_kept_apart(store: Store) -> None:
    """A record is found by tenant, kind and key; its version grows, and names what to replace."""
    places = [(APP, "key", "k1"), (APP, "key", "k2"), (APP, "user", "k1"), ("bank", "key", "k1")]
    for place in places:
        expect(await store.add_record(*place, {"of": list(place)}), True, f"adding {place}")
    for place in places:
        expect(await store.add_record(*place, {}), False, f"adding {place} again")
        found = await store.record(*place)
        expect(found and (found.value, found.version), ({"of": list(place)}, 1), f"{place}")
    expect(await store.put_record(*places[0], _VALUE, version=2), False, "a version to come")
    expect(await store.put_record(*places[0], _VALUE, version=1), True, "the present version")
    expect(await store.put_record(*places[0], {}, version=1), False, "an earlier version")
    expect(await store.put_record(*places[1], _VALUE), True, "any version")
    expect(await store.put_record(APP, "key", "k3", {}, version=1), False, "a missing version")
    expect(await store.put_record(APP, "key", "k3", _VALUE), True, "a new record")
    wanted = [("k1", _VALUE, 2), ("k2", _VALUE, 2), ("k3", _VALUE, 1)]
    found = await store.records(APP, "key")
    expect([tuple(record[:3]) for record in found], wanted, "the records of a kind")
    expect(await store.delete_record(*places[0]), True, "deleting a record")
    expect(await store.delete_record(*places[0]), False, "deleting it again")
    expect(await store.record(*places[0]), None, "a record that was deleted")
    for place in places[2:]:
        expect(await store.record(*place) is None, False, f"{place} is left")
    expect(await store.add_record(*places[0], {}), True, "adding a record that was deleted")


async def one_of_several_adds_a_record(store: Store) -> None:
    """Of several callers that add or change a record at once, one succeeds."""
    for number in range(5):
        place = APP, "start", f"k{number}"
        added = await asyncio.gather(*(store.add_record(*place, {"by": by}) for by in range(8)))
        expect(sum(added), 1, "how many have added the record")
        changes = (store.put_record(*place, {"by": by}, version=1) for by in range(8))
        expect(sum(await asyncio.gather(*changes)), 1, "how many have changed version 1")


async def records_come_in_pages(store: Store) -> None:
    """Records come in the order of their keys, forwards and backwards, in pages."""
    keys = [*(f"{number:03}" for number in range(7)), "a", "é"]
    for key in reversed(keys):
        await store.put_record(APP, "key", key, {})
    await store.put_record(APP, "other", "001", {})
    for newest, limit in ((False, 1), (False, 4), (True, 4), (True, 50)):
        found: list[Record] = []
        wanted = keys[::-1] if newest else keys
        while page := await store.records(
            APP, "key", after=found[-1].key if found else "", limit=limit, newest=newest
        ):
            begin = len(found)
            found += page
            there = [record.key for record in page]
            expect(there, wanted[begin : begin + limit], f"records from number {begin} on")
        expect(len(found), len(wanted), "how many records are in pages")
    expect(await store.records(APP, "key", limit=0), [], "no records at all")


async def webhooks_get_each_event(store: Store) -> None:
    """An event for a webhook comes in order of time, and again until it is removed."""
    first, second = SampleRun("r1"), SampleRun("r2")
    events = [
        OutgoingEvent(APP, "r1", 1, "hook-1", 2001),
        OutgoingEvent(APP, "r1", 1, "hook-2", 2001),
        OutgoingEvent(APP, "r2", 1, "hook-1", 2002),
    ]
    await store.append(second.batch(at=2001, changes=events[2:], status="ended"), owner=ME)
    await store.append(first.batch(changes=events[:2]), owner=ME)
    taken = await store.take_outgoing(limit=2, hold=0)
    expect(sorted(taken), events[:2], "the events that came first")
    taken = await store.take_outgoing(limit=50, hold=LATER)
    expect((sorted(taken), taken[-1]), (events, events[2]), "the events that are due")
    expect(await store.take_outgoing(limit=50, hold=0), [], "events that others send just now")
    await store.postpone_outgoing(events[1:], hold=0)
    await store.remove_outgoing(events[1:2])
    await store.postpone_outgoing(events[1:2], hold=0)  # It is gone: this changes nothing.
    found = await store.take_outgoing(limit=50, hold=0)
    expect(found, [], "events of a webhook whose first one is not due")
    await store.postpone_outgoing(events[:1], hold=0)
    found = await store.take_outgoing(limit=50, hold=LATER)
    expect(found, [events[0], events[2]], "events to send again")
    await store.postpone_outgoing(events, hold=0)
    await store.prune(SCOPE, ended_before=9000, dry_run=False)
    expect(await store.take_outgoing(limit=50, hold=0), events[:1], "after the other run is gone")


RECORD_CHECKS: Final[tuple[Check, ...]] = (
    records_are_kept_apart,
    one_of_several_adds_a_record,
    records_come_in_pages,
    webhooks_get_each_event,
)
