"""Servers are killed in the middle of streams: every client goes on, nothing is lost or doubled."""

import asyncio

import aiohttp

from support.effort import TIMES
from support.package_play import GREETER, write
from support.server_play import serving
from support.server_process import ServerProcess, processes
from support.stream_clients import StreamClient
from weft.adapters.sql.postgres.schema import migrate

CLIENTS = 20 if TIMES == 1 else 200
KILLS = 1 if TIMES == 1 else 5
ANSWERS = 3
#: Events of all runs: six for each answer, and some at the beginning and the end.
EVENTS = CLIENTS * 6 * ANSWERS


class Killer:
    """Kills the first server whenever so many events have come."""

    def __init__(self, places):
        self.count = 0
        self._places = [(place, asyncio.Event()) for place in places]

    def note(self):
        self.count += 1
        for place, event in self._places:
            if self.count >= place:
                event.set()

    async def kill(self, servers, restart):
        for _, event in self._places:
            await event.wait()
            servers[0].kill()
            if restart is not None:
                port = servers[0].url.rpartition(":")[2]
                servers[0] = await asyncio.to_thread(restart, port)


async def live(key, servers, places, restart=None):
    killer = Killer(places)
    headers = {"Authorization": f"Bearer {key}"}
    limits = aiohttp.TCPConnector(limit=0)
    quiet = aiohttp.ClientTimeout(total=None, sock_read=30, sock_connect=10)
    urls = [server.url for server in servers]
    async with aiohttp.ClientSession(connector=limits, headers=headers, timeout=quiet) as session:
        clients = [
            StreamClient(session, urls, number, ANSWERS, killer.note) for number in range(CLIENTS)
        ]
        async with asyncio.timeout(120 * TIMES), asyncio.TaskGroup() as group:
            group.create_task(killer.kill(servers, restart))
            for client in clients:
                group.create_task(client.live())
        for client in clients:
            address = f"{urls[-1]}/api/runs/{client.run}/events?limit=1000"
            async with session.get(address) as answer:
                assert client.events == (await answer.json())["items"]
    return clients


def expect_nothing_lost_or_doubled(clients, kills):
    assert len({client.run for client in clients}) == CLIENTS, "a start was repeated"
    assert sum(client.losses >= 1 for client in clients) > CLIENTS // 4 * min(kills, 2)
    for client in clients:
        numbers = [event["seq"] for event in client.events]
        assert numbers == list(range(1, len(numbers) + 1))
        said = [
            event["data"]["value"] for event in client.events if event["kind"] == "RequestAnswered"
        ]
        texts = [f"{client.number} says {number}" for number in range(ANSWERS)]
        assert said == texts


def workspace_with_key(folder, store=""):
    write(folder / "workflows" / "Greeter", GREETER)
    with serving(folder, {"WEFT_STORE": store} if store else None) as server:
        return server.key("ada", "end_user", "developer")


def test_server_that_is_killed_and_started_again(tmp_path):
    key = workspace_with_key(tmp_path)
    places = [EVENTS * part // (KILLS + 1) for part in range(1, KILLS + 1)]
    with processes(tmp_path, "", 1) as servers:
        clients = asyncio.run(
            live(key, servers, places, lambda port: ServerProcess(tmp_path, "", port))
        )
    expect_nothing_lost_or_doubled(clients, len(places))


def test_clients_of_a_dead_server_continue_at_another_one(tmp_path, postgres_database):
    asyncio.run(migrate(postgres_database))
    key = workspace_with_key(tmp_path, postgres_database)
    with processes(tmp_path, postgres_database, 2) as servers:
        clients = asyncio.run(live(key, servers, [EVENTS // 2]))
    expect_nothing_lost_or_doubled(clients, 1)
