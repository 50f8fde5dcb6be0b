"""Requests on a kept connection: the explorer's server beside uvicorn as it comes.

    python benchmarks/explorer.py --count 200 > results/explorer.md

Both serve the same application on this machine, each in a process of its own, and are asked in
turns. uvicorn writes an answer in two parts; on a socket that was made for it the second waits
until the first is confirmed, which takes a client 40 ms.
"""

import http.client
import json
import multiprocessing
import socket
import time
from multiprocessing.connection import Connection
from statistics import median
from urllib.parse import urlsplit

import uvicorn
from reports import heading, parser

from exactformer.explorer.certifier import certificate_of
from exactformer.explorer.choices import Choices
from exactformer.explorer.server import application, serve
from exactformer.paper.files import row, table

ROUNDS = 5
TRACE = json.dumps({"algebra": "boolean", "weights": "constructed", "expression": "((1|0)&(~0))"})
REQUESTS = {  # method, path, body
    "the page": ("GET", "/", None),
    "models": ("GET", "/api/models", None),
    "a short trace": ("POST", "/api/trace", TRACE),
}


def ours(ready: Connection) -> None:
    serve(Choices(), "127.0.0.1", 0, ready.send)


def plain(ready: Connection) -> None:
    app = application(Choices(), certificate_of, "localhost")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ready.send(f"http://127.0.0.1:{listening.getsockname()[1]}/")
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


def seconds_each(address: str, request: tuple[str, str, str | None], count: int) -> list[float]:
    """Seconds of each of several requests, one after another on one connection."""
    where = urlsplit(address)
    connection = http.client.HTTPConnection(where.hostname or "", where.port)
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        connection.request(*request, headers={"content-type": "application/json"})
        response = connection.getresponse()
        response.read()
        taken.append(time.perf_counter() - start)
        assert response.status == 200
    connection.close()
    return taken


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=300, help="requests of each kind")
    count = options.parse_args().count
    context = multiprocessing.get_context("spawn")
    addresses, processes = [], []
    for server in (plain, ours):
        receiver, sender = context.Pipe(duplex=False)
        processes.append(context.Process(target=server, args=(sender,), daemon=True))
        processes[-1].start()
        addresses.append(receiver.recv())
    print(heading("Requests on a kept connection"))
    header = ["request", "uvicorn, median ms", "a second", "ours, median ms", "a second"]
    print("\n".join(table([*header, "times as many a second"], [])))
    for name, request in REQUESTS.items():
        taken: list[list[float]] = [[], []]
        for _ in range(ROUNDS):
            for seconds, address in zip(taken, addresses, strict=True):
                seconds += seconds_each(address, request, count // ROUNDS)
        cells = [name]
        for seconds in taken:
            cells += [f"{1000 * median(seconds):.2f}", f"{len(seconds) / sum(seconds):,.0f}"]
        print(row([*cells, f"{sum(taken[0]) / sum(taken[1]):.1f}"]), flush=True)
    for process in processes:
        process.terminate()


if __name__ == "__main__":
    main()
