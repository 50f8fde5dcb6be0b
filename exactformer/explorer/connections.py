"""The server's connections: how many may be open, and how long each may take.

uvicorn reads requests and writes answers. It would also wait for ever for the rest of a request or
for a client to take its answer, hang up on a client that is still sending, which then never sees
the answer, and report each connection that it cannot accept. On a machine of one's own that is
enough for a forgotten script to stop the page.
"""

import asyncio
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Timer
from types import FrameType
from typing import Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 128  # at once; others wait until one of these ends
REQUEST_SECONDS = 10  # for the head of a request, from the answer before it
IDLE_SECONDS = 5  # without a byte between requests
ANSWER_SECONDS = 60  # for a client to take what it was sent
PARTING_SECONDS = 5  # for a client to hang up
PARTING_BYTES = 64 * 2**20  # that a client may still send meanwhile
HEAD_BYTES = 16 * 2**10  # of a request: its first line and its headers
STOPPING_SECONDS = 1  # for the answers in hand, once the server is told to end
REST_SECONDS = 1  # before another try to accept a connection
COMPLAINT_SECONDS = 60  # between two lines in the log that say why it fails

log = logging.getLogger("uvicorn.error")


class Server(uvicorn.Server):
    """A server that accepts connections one at a time, and none while there are too many."""

    def __init__(
        self, app: ASGIApp, headers: Mapping[str, str], stopping: Callable[[], None]
    ) -> None:
        """`headers` go with every answer; `stopping` is called at the end, before the requests in
        hand are waited for.
        """
        config = uvicorn.Config(
            app,
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_level="error",  # a malformed request is no news
            access_log=False,
            headers=list(headers.items()),
            timeout_keep_alive=IDLE_SECONDS,
            h11_max_incomplete_event_size=HEAD_BYTES,
        )
        super().__init__(config)
        self.stopping = stopping
        self.told: int | None = None  # the signal to end

    @contextmanager
    def heed_signals(self) -> Iterator[None]:
        """End when interrupted, terminated, or left by the terminal, from here on: uvicorn would
        listen to signals no sooner than it runs. `nohup` is heeded too.
        """
        signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
        if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
            signals.remove(signal.SIGHUP)
        before = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if self.told == signal.SIGINT:  # how a user ends it
            self._end(0)  # Python would take its time with threads and torch
        elif self.told is not None:
            signal.raise_signal(self.told)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield  # `heed_signals` does it

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Say so at once, and end soon: a thread that computes an answer cannot be stopped."""
        if self.told is not None:
            return
        self.told = sig
        self.should_exit = True
        late = Timer(STOPPING_SECONDS, self._end, (0 if sig == signal.SIGINT else 128 + sig,))
        late.daemon = True
        late.start()
        with suppress(OSError):  # the terminal has gone
            os.write(2, b"exactformer: stopping\n")  # print might be in use, and is not re-entrant

    def _end(self, status: int) -> None:
        try:
            self.stopping()
        finally:
            os._exit(status)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        (listening,) = sockets or []
        listening.setblocking(False)
        self.servers = []
        self.vacancies = asyncio.Semaphore(MOST_CONNECTIONS)
        self.accepting = asyncio.create_task(self._accept(listening))
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.stopping()
        self.accepting.cancel()
        await asyncio.wait([self.accepting])  # it still needs the socket, which is closed next
        await super().shutdown(sockets)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        complained = -float("inf")
        while True:
            await self.vacancies.acquire()
            try:
                accepted = await _next_connection(listening)
                # An answer has two parts: the second must not wait until the first is confirmed.
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await loop.connect_accepted_socket(self._connection, accepted)
            except OSError as error:  # no file descriptor or no memory is left, for instance
                self.vacancies.release()
                if time.monotonic() - complained > COMPLAINT_SECONDS:
                    complained = time.monotonic()
                    log.error("cannot accept connections: %s", error.strerror)
                await asyncio.sleep(REST_SECONDS)

    def _connection(self) -> "Connection":
        return Connection(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            ended=self.vacancies.release,
        )


async def _next_connection(listening: socket.socket) -> socket.socket:
    """Accept a connection. asyncio's own `sock_accept` fails with a traceback if it is cancelled
    in the very moment in which a client connects.
    """
    loop = asyncio.get_running_loop()
    while True:
        try:
            accepted, _ = listening.accept()
        except BlockingIOError:
            pass
        else:
            accepted.setblocking(False)
            return accepted
        knock = asyncio.Event()
        loop.add_reader(listening, knock.set)
        try:
            await knock.wait()
        finally:
            loop.remove_reader(listening)


class Connection(H11Protocol):
    """A connection with time limits: for the client's request, and for reading the answer."""

    transport: "Parting"  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, ended: Callable[[], None], **options: Any) -> None:
        super().__init__(**options)
        self.ended = ended
        self.late: asyncio.TimerHandle | None = None  # with a request
        self.slow: asyncio.TimerHandle | None = None  # in taking an answer

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(cast(asyncio.Transport, Parting(transport)))
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self.late, self.slow, self.transport.timer):
            if timer:
                timer.cancel()
        super().connection_lost(exc)
        self.ended()

    def data_received(self, data: bytes) -> None:
        if self.transport.parting:
            self.transport.hear(data)
            return
        super().data_received(data)
        self._expect_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()  # which may begin with the next request
        self._expect_request()

    @property
    def busy(self) -> bool:
        """Whether an answer is being made; how long that may take is limited elsewhere."""
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_request(self) -> None:
        """Let the time for a request run while none is being answered, whatever comes in."""
        if self.busy or self.transport.parting:
            if self.late:
                self.late.cancel()
            self.late = None
        elif self.late is None:
            self.late = self.loop.call_later(REQUEST_SECONDS, self._too_late)

    def _too_late(self) -> None:
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._refuse(408, f"the request took over {REQUEST_SECONDS} s to arrive")
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.slow = self.loop.call_later(ANSWER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.slow:
            self.slow.cancel()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "expected a request in HTTP/1.1, found something else")

    def _refuse(self, status: int, message: str) -> None:
        """Answer what is no valid request; nothing if an answer is being sent already."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps({"error": message}).encode("ascii")
            headers = [
                *self.server_state.default_headers,
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
            ]
            answer = h11.Response(status_code=status, headers=headers)
            for part in (answer, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(part) or b"")
        if self.busy:  # with the request whose body is broken
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def shutdown(self) -> None:
        if self.busy:
            super().shutdown()
        else:
            self.transport.abort()


class Parting:
    """A transport that hangs up in such a way that what was said last is heard.

    To close a connection on which something unread has come in resets it, and the client may lose
    what it was sent before. So we only stop speaking, and the client hangs up when it has read
    that; or we do, when it takes too long or goes on for too long.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.parting = False
        self.heard = 0
        self.timer: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def is_closing(self) -> bool:
        return self.parting or self.transport.is_closing()

    def write(self, data: bytes) -> None:
        if not self.parting:
            self.transport.write(data)

    def close(self) -> None:
        if self.is_closing():
            return
        self.parting = True
        seconds = ANSWER_SECONDS if self.transport.get_write_buffer_size() else PARTING_SECONDS
        self.timer = asyncio.get_running_loop().call_later(seconds, self.transport.abort)
        with suppress(OSError):  # the client was quicker
            self.transport.write_eof()
        self.transport.resume_reading()

    def hear(self, data: bytes) -> None:
        self.heard += len(data)
        if self.heard > PARTING_BYTES:
            self.transport.abort()
