"""Checks of mail: each is delivered exactly once and in order, also if answers are lost."""

import asyncio
from dataclasses import replace
from typing import Final

from weft.engine.events import MessageShown, ToolReturned
from weft.engine.rows import Mail, MailTaken, RequestClosed
from weft.errors import (
    AlreadyAnswered,
    NameTaken,
    RequestNotOpen,
    RunHasEnded,
    StoreConflict,
    StoreError,
    UnreadMail,
)
from weft.ports.store import RunKey, Store
from weft.testing.store.samples import (
    APP,
    ME,
    SCOPE,
    Check,
    OpenStore,
    SampleRun,
    expect,
    expect_error,
    mail,
)


async def mail_waits_until_it_is_taken(store: Store) -> None:
    """Mail comes in order, wakes the run, and goes with the batch that takes it."""
    run, other = SampleRun("r1"), SampleRun("r1", app="other")
    for each in (run, other):
        await store.append(each.batch(status="waiting"), owner=ME)
    sent = [mail("r1", f"m{9 - number}") for number in range(4)]
    sent[2] = sent[2]._replace(data=ToolReturned("c", "ä\x00" * 500_000))
    for each in sent:
        expect(await store.put(each), "r1", "the run that gets mail")
    await store.put(mail("r1", "m9", app="other"))
    expect(await store.pending(APP, "r1"), sent, "unread mail, in order")
    expect(await store.pending(APP, "r1", limit=2), sent[:2], "the first two")
    claimed = await store.claim("w1")
    expect(sorted(claimed.runs), [("other", "r1"), (APP, "r1")], "the runs that mail has woken")
    taken = [MailTaken(each.id) for each in sent[:3]]
    first = run.batch(*(each.data for each in sent[:3]), changes=taken)
    for attempt in ("first", "second"):
        expect(await store.append(first, owner="w1"), True, f"mail left at the {attempt} attempt")
    expect(await store.pending(APP, "r1"), sent[3:], "mail that is left")
    expect(len(await store.pending("other", "r1")), 1, "mail of another tenant")
    gone = run.empty(MailTaken(sent[3].id))
    for _ in range(2):
        expect(await store.append(gone, owner="w1"), False, "mail left after an empty batch")
    expect(await store.pending(APP, "r1"), [], "mail at the end")
    expect(len(await store.read(SCOPE, "r1")), 4, "events at the end")
    bad = run.batch(changes=[MailTaken("unknown")])
    await expect_error(StoreError, store.append(bad, owner=ME), "mail that is not there")


async def ids_count_once(store: Store) -> None:
    """Mail with an id that was put is not delivered again, even after it was taken."""
    run = SampleRun("r1")
    await store.append(run.batch(), owner=ME)
    await asyncio.gather(*(store.put(mail("r1", "m1")) for _ in range(5)))
    expect(len(await store.pending(APP, "r1")), 1, "mail that was put five times at once")
    await store.append(run.batch(changes=[MailTaken("m1")]), owner=ME)
    expect(await store.put(mail("r1", "m1")), "r1", "the run of mail that was taken already")
    expect(await store.pending(APP, "r1"), [], "mail that was put after it was taken")
    sent = [mail("c1", f"m{number % 2}", named=True) for number in range(6)]
    named = await asyncio.gather(*map(store.put, sent))
    expect(len(set(named)), 1, "runs of one name")
    expect(len(await store.pending(APP, named[0])), 2, "mail of two ids, put three times each")


async def direct_batches_and_ends_wait_for_mail(store: Store) -> None:
    """A direct batch and an end are refused while mail is unread; then the run is let go."""
    run = SampleRun("r1")
    await store.append(run.batch(held=True), owner=ME)
    await store.put(mail("r1", "m1"))
    fork = replace(run)
    for batch in (fork.batch(direct=True), replace(run).batch(status="ended")):
        await expect_error(UnreadMail, store.append(batch, owner=ME), "a batch that mail precedes")
    expect(await store.append(run.batch(), owner=ME), True, "mail after a batch that lets go")
    row = await store.run(SCOPE, "r1")
    expect(row and row.owner, ME, "the owner while mail is unread")
    expect(await store.append(run.empty(MailTaken("m1")), owner=ME), False, "mail at last")
    await store.append(run.batch(direct=True), owner=ME)
    await store.append(run.batch(status="ended"), owner=ME)
    await expect_error(RunHasEnded, store.put(mail("r1", "m2")), "mail to a run that has ended")
    await expect_error(RunHasEnded, store.put(mail("r9", "m2")), "mail to an unknown run")


async def mail_is_counted_exactly(store: Store) -> None:
    """A batch reports whether mail is left, and a run ends only when all is taken."""
    run = SampleRun("r1")
    await store.append(run.batch(held=True), owner=ME)
    sent = [mail("r1", f"m{number:03}") for number in range(250)]
    for each in sent:
        await store.put(each)
    expect(await store.pending(APP, "r1", limit=1000), sent, "all of it")
    taken = [MailTaken(each.id) for each in sent]
    ends = replace(run).batch(changes=taken[:249], status="ended")
    await expect_error(UnreadMail, store.append(ends, owner=ME), "an end with one mail left")
    expect(await store.append(run.empty(*taken[:100]), owner=ME), True, "mail after the first 100")
    expect(await store.append(run.empty(*taken[100:249]), owner=ME), True, "mail when one is left")
    direct = replace(run).batch(direct=True)
    await expect_error(UnreadMail, store.append(direct, owner=ME), "a direct batch")
    more = mail("r1", "more")
    outcomes = await asyncio.gather(
        store.append(run.empty(taken[249]), owner=ME), store.put(more), store.put(more)
    )
    left = await store.pending(APP, "r1")
    expect((outcomes[1:], left), (["r1", "r1"], [more]), "mail that came in the meantime")
    row = await store.run(SCOPE, "r1")
    expect(row and row.owner, ME if outcomes[0] else "", "the owner of a run whose mail is left")
    last = run.batch(more.data, changes=[MailTaken("more")], status="ended")
    expect(await store.append(last, owner=ME), False, "an end that takes the last mail")


async def answers_count_once(store: Store) -> None:
    """Of several answers to a request one is accepted; a refused one leaves no trace."""
    run = SampleRun("r1")
    asked, other = run.request("q1"), run.request("q2", opened_at=2001)
    await store.append(run.batch(changes=[asked, other], status="waiting"), owner=ME)
    answers = [mail("r1", f"m{number}", request="q1") for number in range(4)]
    found = await asyncio.gather(*map(store.put, answers), return_exceptions=True)
    refused = [type(each) for each in found if each != "r1"]
    expect(refused, [AlreadyAnswered] * 3, "answers that are refused")
    expect(len(await store.pending(APP, "r1")), 1, "answers that are delivered")
    expect(await store.requests(SCOPE), [other], "requests that are open")
    accepted = answers[found.index("r1")]
    expect(await store.put(accepted), "r1", "the accepted answer once more")
    late = next(each for each in answers if each is not accepted)
    await expect_error(AlreadyAnswered, store.put(late), "another answer once more")
    unknown = mail("r1", "m8", request="q8")
    await expect_error(RequestNotOpen, store.put(unknown), "an answer to an unknown request")
    changes = [MailTaken(accepted.id), asked]
    await store.append(run.batch(changes=changes, status="waiting"), owner=ME)
    expect(await store.requests(SCOPE), [asked, other], "a request that is opened again")
    expect(await store.put(late), "r1", "an answer that was refused before")
    closing = [MailTaken(late.id), RequestClosed("q1")]
    await store.append(run.batch(changes=closing), owner=ME)
    await expect_error(
        RequestNotOpen, store.put(mail("r1", "m7", request="q1")), "a closed request"
    )


async def names_do_not_split(store: Store) -> None:
    """A name has one open run: mail begins it, its end frees the name, prune does not split it."""
    first = await store.put(mail("c1", "m1", named=True), package=b"content")
    expect(await store.put(mail("c1", "m2", named=True)), first, "the run of the second mail")
    await _expect_open(store, first)
    expect((await store.claim(ME)).runs, [(APP, first)], "the run that mail has begun")
    for found in (await store.named(APP, "c1"), await store.run(SCOPE, first)):
        expect(found, None, "a run without events in a list")
    expect(await store.runs(SCOPE), [], "runs without events in the list")
    expect(await store.package(APP, "digest-1"), b"content", "the package of a run that began")
    expect(len(await store.pending(APP, first)), 2, "mail of a run that began")
    run = SampleRun(first, name="c1")
    both = [MailTaken("m1"), MailTaken("m2")]
    await store.append(run.batch(changes=both, at=10), owner=ME)
    rival = SampleRun("rival", name="c1")
    await expect_error(NameTaken, store.append(rival.batch(), owner=ME), "another run of the name")
    row = await store.named(APP, "c1")
    expect(row and row.run, first, "the open run of the name")
    await _expect_open(store, first)
    expect(await store.put(mail("c1", "m3", app="other", named=True)) != first, True, "tenants")
    expect(await store.append(run.batch(status="ended", at=20), owner=ME), False, "the end")
    row = await store.named(APP, "c1")
    expect(row and row.run, first, "the last run of the name")
    await _expect_open(store, None)
    expect(await store.put(mail("c1", "m1", named=True)), first, "mail that was sent already")
    second = await store.put(mail("c1", "m4", named=True))
    expect(second != first, True, "a new run after the end")
    await store.prune(SCOPE, ended_before=30, dry_run=False)
    expect(await store.put(mail("c1", "m5", named=True)), second, "the run after a prune")
    last = SampleRun(second, name="c1", started_at=5)
    await store.append(last.batch(changes=[MailTaken("m4"), MailTaken("m5")]), owner=ME)
    row = await store.named(APP, "c1")
    expect(row and row.run, second, "the open run after a prune")
    await _expect_open(store, second)
    batches = [SampleRun("r1").batch(), SampleRun("starting", name="c2").batch()]
    writing = (store.append(batch, owner=ME) for batch in batches)
    *_, named = await asyncio.gather(*writing, store.put(mail("c2", "m6", named=True)))
    expect(named, "starting", "the run of mail that is put while the run starts")


async def _expect_open(store: Store, run: str | None) -> None:
    expect(await store.open_run(APP, "c1"), run, "the id of the open run of a name")
    for app, name in ((APP, "c2"), (APP, ""), ("elsewhere", "c1")):
        expect(await store.open_run(app, name), None, f"the open run of {name} in {app}")


async def runs_send_mail(store: Store) -> None:
    """Mail in a batch is sent with it or not at all, and stays when its sender is removed."""
    sender, receiver = SampleRun("s"), SampleRun("r")
    await store.append(receiver.batch(status="waiting"), owner=ME)
    sent = [mail("r", "m1"), mail("c1", "m2", named=True)]
    refused = SampleRun("s", seq=5).batch(changes=sent)
    await expect_error(StoreConflict, store.append(refused, owner=ME), "a batch with a gap")
    expect((await store.claim("w")).runs, [], "runs that are due after a refusal")
    batch = sender.batch(changes=[*sent, mail("gone", "m3")], status="ended", at=10)
    for _ in range(2):
        await store.append(batch, owner=ME)
    await store.prune(SCOPE, ended_before=100, dry_run=False)
    await _expect_delivered(store, receiver, sent[0])
    (named,) = [run for _, run in (await store.claim("w")).runs if run != "r"]
    expect([each.id for each in await store.pending(APP, named)], ["m2"], "mail to a name")
    own = SampleRun(named, name="c1")
    changes = [MailTaken("m2"), *(mail("c1", id_, named=True) for id_ in ("m4", "m5"))]
    ends = own.batch(changes=changes, status="ended")
    await store.append(ends, owner="w")
    begun = [run for _, run in (await store.claim("w")).runs if run != "r"]
    expect(len(begun), 1, "runs that begin because a run has sent mail to its own name")
    found = [each.id for each in await store.pending(APP, begun[0])]
    expect(found, ["m4", "m5"], "mail to the own name")


async def _expect_delivered(store: Store, receiver: SampleRun, wanted: Mail) -> None:
    expect(await store.pending(APP, receiver.run), [wanted], "mail whose sender is gone")
    taking = receiver.batch(wanted.data, changes=[MailTaken(wanted.id)], held=True)
    expect(await store.append(taking, owner="w"), False, "mail that is left")


async def no_mail_is_left_behind(open_store: OpenStore) -> None:
    """Mail that two processes send while runs end and begin again is delivered once each."""
    first, second = stores = [await open_store(), await open_store()]
    total, late, delivered = 40, [f"late{number}" for number in range(10)], list[str]()
    wanted = sorted([*(f"m{number}" for number in range(total)), *late])
    senders = len(stores)

    async def send(store: Store) -> None:
        nonlocal senders
        for number in range(total):
            await store.put(mail(f"c{number % 3}", f"m{number}", named=True))
            await asyncio.sleep(0.001)
        senders -= 1

    async def work(store: Store, other: Store, owner: str) -> None:
        for _ in range(2000):
            is_last = not senders
            claimed = (await store.claim(owner)).runs
            for app, run in claimed:
                delivered.extend(await _take_all(store, other, owner, (app, run), late))
            if is_last and not claimed:
                return
            await asyncio.sleep(0.002)

    await asyncio.gather(*map(send, stores), work(first, second, "w0"), work(second, first, "w1"))
    expect(sorted(delivered), wanted, "mail delivered")
    for store in stores:
        await store.close()


async def _take_all(
    store: Store, other: Store, owner: str, key: RunKey, late: list[str]
) -> list[str]:
    """Take the mail of a run, then let it end; mail that came in the meantime is taken as well."""
    app, run = key
    row = await store.run(SCOPE, run)
    left = await store.pending(app, run)
    name = row.name if row else left[0].to if left else ""
    sample = SampleRun(run, seq=row.seq if row else 0, name=name)
    delivered: list[str] = []
    while left:
        taken = [MailTaken(each.id) for each in left]
        data = [MessageShown(each.id) for each in left]
        is_left = await store.append(sample.batch(*data, changes=taken, held=True), owner=owner)
        delivered += (each.id for each in left)
        if len(delivered) == len(left):  # Another process did not get the answer to its first.
            await other.put(left[0])
        if late:
            await other.put(mail(name, late.pop(), named=True))
        try:
            if not is_left:
                await store.append(replace(sample).batch(status="ended"), owner=owner)
                break
        except UnreadMail:
            pass
        left = await store.pending(app, run)
    return delivered


MAIL_CHECKS: Final[tuple[Check, ...]] = (
    mail_waits_until_it_is_taken,
    ids_count_once,
    direct_batches_and_ends_wait_for_mail,
    mail_is_counted_exactly,
    answers_count_once,
    names_do_not_split,
    runs_send_mail,
)
