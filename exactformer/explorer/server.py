"""The small server behind the page.

    GET  /             the page
    GET  /api/models   algebras, the names of their weights, limits
    POST /api/trace    {"algebra", "weights", "expression"}, all strings
    GET  /api/weights  ?algebra=NAME&weights=NAME
    GET  /api/sample   ?algebra=NAME&depth=NUMBER&seed=NUMBER

`answers.py` says what each answers. An error is JSON too, {"error": text}, with a status from 400
on; where an expression is malformed it also has "problem", "line", "column", "offset" (in
characters from 0) and "excerpt" (the line with a caret under the place).

The page is made once at the start and no request names a file, so there is no path to trick.
Requests for another host than an address or localhost are refused, which defeats DNS rebinding;
so are those that another site's page sends.
"""

import ipaddress
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import uvicorn
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from exactformer.domains.syntax import ExpressionError
from exactformer.explorer import answers
from exactformer.explorer.choices import Choices
from exactformer.explorer.page import page, policy

MOST_BYTES = 4 * answers.MOST_CHARACTERS + 1_000  # of a request's body
BODY_SECONDS = 10  # for a body to arrive
AT_ONCE = 2  # answers that are being computed
MOST_WAITING = 32  # for one of those two; more are told to come back

HEADERS = {
    "content-security-policy": policy("'self'") + "; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def application(choices: Choices, host: str = "localhost") -> ASGIApp:
    """The server without a socket. `host` is a name it may be called by besides localhost."""
    whole_page = page()
    known = _json(answers.models(choices))
    compute = Workers()

    async def show_page(request: Request) -> Response:
        return Response(whole_page, media_type="text/html")

    async def models(request: Request) -> Response:
        return Response(known, media_type="application/json")

    async def trace(request: Request) -> Response:
        asked = await _object(request)
        _expect_keys(asked, {"algebra", "weights", "expression"})
        for name, value in asked.items():
            if not isinstance(value, str):
                raise ValueError(f"{name}: expected a string, found {type(value).__name__}")

        def answer() -> bytes:
            subject = choices.subject(asked["algebra"], asked["weights"])
            return _json(answers.trace(subject, asked["expression"]))

        return Response(await compute(answer), media_type="application/json")

    async def weights(request: Request) -> Response:
        asked = _query(request, {"algebra", "weights"})

        def answer() -> bytes:
            subject = choices.subject(asked["algebra"], asked["weights"])
            return _json(answers.weights(choices, subject))

        return Response(await compute(answer), media_type="application/json")

    async def sample(request: Request) -> Response:
        asked = _query(request, {"algebra", "depth", "seed"})
        depth, seed = (_whole(name, asked[name]) for name in ("depth", "seed"))

        def answer() -> bytes:
            return _json(answers.sample(choices.algebra(asked["algebra"]), depth, seed))

        return Response(await compute(answer), media_type="application/json")

    routes = [
        Route("/", show_page),
        Route("/api/models", models),
        Route("/api/trace", trace, methods=["POST"]),
        Route("/api/weights", weights),
        Route("/api/sample", sample),
    ]
    handlers: dict[Any, Callable[[Request, Any], Awaitable[Response]]] = {
        HTTPException: _refused,
        ValueError: _mistaken,
        Exception: _failed,
    }
    return _Guard(Starlette(routes=routes, exception_handlers=handlers), host)


def serve(choices: Choices, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Answer requests until interrupted. `ready` is told the page's address; port 0 is any free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ValueError(
            f"cannot listen on {host}, port {port}: {error.strerror} (--port 0 takes any free one)"
        ) from None
    with listening:
        chosen = listening.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        config = uvicorn.Config(application(choices, host), log_level="warning", access_log=False)
        ready(f"http://{shown}:{chosen}/")
        with suppress(KeyboardInterrupt):  # how a user ends it
            uvicorn.Server(config).run(sockets=[listening])


class Workers:
    """Computes in threads, a few at once, and turns away what comes when too many wait."""

    def __init__(self) -> None:
        self.limiter: CapacityLimiter | None = None  # made where the event loop runs
        self.waiting = 0

    async def __call__(self, answer: Callable[[], bytes]) -> bytes:
        if self.waiting >= MOST_WAITING:
            raise HTTPException(429, "too many requests at once; ask again in a moment")
        self.limiter = self.limiter or CapacityLimiter(AT_ONCE)
        self.waiting += 1
        try:
            return await to_thread.run_sync(answer, limiter=self.limiter)
        finally:
            self.waiting -= 1


class _Guard:
    """Refuses other hosts and other sites' pages; gives every response the same headers."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self.app, self.host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        request = Request(scope)
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        app = self.app
        if not _is_ours(host, self.host):
            app = _error(421, f"expected the host localhost or an address, found {host[:80]!r}")
        elif origin not in (None, f"http://{host}"):
            app = _error(403, "refused: the request comes from another site's page")
        await app(scope, receive, send_with_headers)


def _is_ours(host: str, name: str) -> bool:
    """A name could be made to point here by whoever owns it; an address could not."""
    bare = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if bare.lower() in ("localhost", name.lower()):
        return True
    try:
        ipaddress.ip_address(bare.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


async def _object(request: Request) -> dict[str, Any]:
    """The JSON object in a request's body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, f"expected application/json, found {kind[:80]!r}")
    body = bytearray()
    try:
        with anyio.fail_after(BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > MOST_BYTES:
                    raise HTTPException(413, f"expected at most {MOST_BYTES:,} bytes, found more")
    except ClientDisconnect:
        raise HTTPException(400, "the request broke off") from None
    except TimeoutError:
        raise HTTPException(408, f"the request took over {BODY_SECONDS} s to arrive") from None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("expected a JSON object, found something else") from None
    if not isinstance(found, dict):
        raise ValueError(f"expected a JSON object, found {type(found).__name__}")
    return found


def _query(request: Request, names: set[str]) -> dict[str, str]:
    pairs = request.query_params.multi_items()
    if len(pairs) > len(dict(pairs)):
        raise ValueError("expected each parameter once, found one twice")
    _expect_keys(dict(pairs), names)
    return dict(pairs)


def _expect_keys(found: dict[str, Any], expected: set[str]) -> None:
    if found.keys() != expected:
        names = ", ".join(repr(name[:40]) for name in list(found)[:10]) or "none"
        raise ValueError(f"expected {', '.join(sorted(expected))}; found {names}")


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValueError(f"{name}: expected a number from 0 to 999999999, found {text[:40]!r}")
    return int(text)


def _json(data: Any) -> bytes:
    """In ASCII: half a surrogate pair, which JSON can carry into a message, has no UTF-8."""
    return json.dumps(data, separators=(",", ":")).encode("ascii")


def _error(status: int, message: str, **more: Any) -> Response:
    return Response(_json({"error": message} | more), status, media_type="application/json")


async def _refused(request: Request, error: HTTPException) -> Response:
    detail = {404: "there is nothing here", 405: f"{request.method} is not allowed here"}
    return _error(error.status_code, detail.get(error.status_code, error.detail))


async def _mistaken(request: Request, error: ValueError) -> Response:
    """A user's mistake; where it is in the text of an expression, with its place."""
    if isinstance(error, ExpressionError):
        message, _, excerpt = str(error).partition("\n")
        place = {name: getattr(error, name) for name in ("problem", "line", "column", "offset")}
        return _error(400, message, excerpt=excerpt, **place)
    return _error(413 if isinstance(error, answers.TooLarge) else 400, str(error))


async def _failed(request: Request, error: Exception) -> Response:
    """A mistake of ours: the log has the traceback."""
    return _error(500, "the server failed on this request; its log says why")
