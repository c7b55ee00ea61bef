"""A few runs go on in each round of the event loop, in the order they came."""

import asyncio

from weft.runtime.runs.effects import AT_ONCE, Pace


def gone_by_round(count, *, cancelled=()):
    """Let so many ask together; return who has gone on after each round."""

    async def scenario():
        pace, gone = Pace(), []

        async def run(number):
            await pace.turn()
            gone.append(number)

        tasks = [asyncio.create_task(run(number)) for number in range(count)]
        await asyncio.sleep(0)
        for number in cancelled:
            tasks[number].cancel()
        rounds = [list(gone)]
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            if gone != rounds[-1]:
                rounds.append(list(gone))
        return rounds, pace

    return asyncio.run(scenario())


def test_single_caller_does_not_wait():
    rounds, _ = gone_by_round(1)
    assert rounds == [[0]]


def test_many_continue_a_few_at_a_time_in_order():
    rounds, _ = gone_by_round(3 * AT_ONCE + 1)
    assert [len(each) for each in rounds] == [AT_ONCE, 2 * AT_ONCE, 3 * AT_ONCE, 3 * AT_ONCE + 1]
    assert rounds[-1] == list(range(3 * AT_ONCE + 1))


def test_cancelled_caller_blocks_no_other():
    rounds, _ = gone_by_round(AT_ONCE + 3, cancelled=[AT_ONCE, AT_ONCE + 1])
    assert rounds[-1] == [*range(AT_ONCE), AT_ONCE + 2]


async def test_after_a_pause_it_begins_anew():
    pace = Pace()
    for _ in range(3):
        for _ in range(AT_ONCE):
            await pace.turn()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert (pace._gone, len(pace._waiting)) == (0, 0)
