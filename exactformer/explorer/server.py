"""The small server behind the page.

    GET  /             the page
    GET  /api/models   algebras, the names of their weights, limits
    POST /api/trace    {"algebra", "weights", "expression"}, all strings, and, where it is not to be
                       "depth", "iterations": "log"; or "program" in place of "expression"
    GET  /api/weights  ?algebra=NAME&weights=NAME
    GET  /api/sample   ?algebra=NAME&depth=NUMBER&seed=NUMBER, or &length=NUMBER for a text
                       without a depth, or &statements=NUMBER for a program

`answers.py` says what each answers. An error is JSON too, {"error": text}, with a status from 400
on; where an expression is malformed it also has "problem", "line", "column", "offset" (in
characters from 0) and "excerpt" (the line with a caret under it).

The page is made once at the start and no request names a file, so there is no path to trick.
Requests for another host than an address or localhost are refused, which defeats DNS rebinding;
so are those that another site's page sends. `connections.py` limits how many clients there may be
and how long they may take; `certifier.py` how long a certificate may.
"""

import errno
import ipaddress
import json
import socket
from collections.abc import Callable
from typing import Any

import anyio
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from exactformer.domains.errors import ExpressionError
from exactformer.explorer import answers
from exactformer.explorer.certifier import Certifier, Certify, NoCertificate
from exactformer.explorer.choices import Choices, Subject
from exactformer.explorer.connections import Server
from exactformer.explorer.page import page, policy

MOST_BYTES = 4 * answers.MOST_CHARACTERS + 1_000  # of a request's body
TOO_LONG = f"expected at most {MOST_BYTES:,} bytes, found more"
BODY_SECONDS = 10  # for a body to arrive
AT_ONCE = 2  # answers that are being computed
MOST_WAITING = 32  # for their answers; more get status 429
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}

HEADERS = {
    "content-security-policy": policy("'self'") + "; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def application(choices: Choices, certify: Certify, host: str) -> ASGIApp:
    """The server without a socket. `host` is a name it may be called by besides localhost."""
    whole_page = Response(page(), media_type="text/html")
    models = _json(answers.models(choices))
    compute = Workers(AT_ONCE)
    wait_for_certificate = Workers(MOST_WAITING)  # computed elsewhere, and no trace waits for it

    def subject(asked: dict[str, Any]) -> Subject:
        return choices.subject(asked["algebra"], asked["weights"])

    async def trace(request: Request) -> Response:
        asked = await _object(request)
        kind = next((name for name in answers.TRACED if name in asked), "expression")
        _expect_keys(asked, {"algebra", "weights", kind}, "iterations")
        for name, value in asked.items():
            if not isinstance(value, str):
                raise ValueError(f"{name}: expected a string, found {type(value).__name__}")
        text, by = asked[kind], asked.get("iterations", "depth")
        return await compute(lambda: answers.TRACED[kind](subject(asked), text, by))

    async def weights(request: Request) -> Response:
        asked = _query(request, {"algebra", "weights"})
        return await wait_for_certificate(lambda: answers.weights(subject(asked), certify))

    async def sample(request: Request) -> Response:
        size = next((name for name in answers.DRAWN if name in request.query_params), "depth")
        asked = _query(request, {"algebra", size, "seed"})
        algebra = asked["algebra"]
        number, seed = (_whole(name, asked[name]) for name in (size, "seed"))
        drawn = answers.DRAWN[size]
        return await compute(lambda: drawn(choices.domain(algebra), number, seed))

    routes = [
        Route("/", whole_page, methods=["GET"]),
        Route("/api/models", models, methods=["GET"]),
        Route("/api/trace", trace, methods=["POST"]),
        Route("/api/weights", weights),
        Route("/api/sample", sample),
    ]
    refusals = (HTTPException, NoCertificate, OSError, ValueError)
    handlers = dict.fromkeys(refusals, _refused) | {Exception: _failed}
    return _Guard(Starlette(routes=routes, exception_handlers=handlers), host)


def serve(choices: Choices, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Answer requests until interrupted. `ready` gets the page's address; port 0 is any free."""
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
        certifier = Certifier()
        app = application(choices, certifier, host)
        server = Server(app, HEADERS, stopping=certifier.stop)
        with server.heed_signals():
            ready(f"http://{shown}:{chosen}/")
            server.run(sockets=[listening])


class Workers:
    """Computes answers in threads, a few at once, and turns away what comes when too many wait."""

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self.limiter: CapacityLimiter | None = None  # made where the event loop runs
        self.waiting = 0

    async def __call__(self, answer: Callable[[], Any]) -> Response:
        if self.waiting >= MOST_WAITING:
            raise HTTPException(429, "too many requests at once; ask again in a moment")
        self.limiter = self.limiter or CapacityLimiter(self.at_once)
        self.waiting += 1
        try:
            return await to_thread.run_sync(lambda: _json(answer()), limiter=self.limiter)
        finally:
            self.waiting -= 1


class _Guard:
    """Refuses other hosts and other sites' pages."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self.app, self.host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, app = Request(scope), self.app
        host = request.headers.get("host", "")
        if not _is_ours(host, self.host):
            app = _error(421, f"expected the host localhost or an address, found {host[:80]!r}")
        elif _is_from_another_site(request, host):
            app = _error(403, "refused: the request comes from another site's page")
        await app(scope, receive, send)


def _is_from_another_site(request: Request, host: str) -> bool:
    """Whether a request comes from another site's page, which browsers say in one or two headers. A
    link to the page is allowed from anywhere, as long as the page then has the tab to itself.
    """
    headers = request.headers
    if headers.get("origin") not in (None, f"http://{host}"):
        return True
    if headers.get("sec-fetch-site") in (None, "none", "same-origin"):
        return False
    kind = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest"))
    return (request.url.path, *kind) != ("/", "navigate", "document")


def _is_ours(host: str, name: str) -> bool:
    """Whether a host name is ours. Names can be made to point here by their owners; addresses
    cannot.
    """
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
    length = request.headers.get("content-length", "0")
    if len(length) > 9 or int(length) > MOST_BYTES:  # before a client that asks is told to go on
        raise HTTPException(413, TOO_LONG)
    body = bytearray()
    try:
        with anyio.fail_after(BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > MOST_BYTES:
                    raise HTTPException(413, TOO_LONG)
    except ClientDisconnect:
        raise HTTPException(400, "the request broke off") from None
    except TimeoutError:
        message = f"the request took over {BODY_SECONDS} s to arrive"
        raise HTTPException(408, message, {"connection": "close"}) from None
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


def _expect_keys(found: dict[str, Any], expected: set[str], *optional: str) -> None:
    if found.keys() - set(optional) != expected:
        names = ", ".join(repr(name[:40]) for name in list(found)[:10]) or "none"
        perhaps = f" and, if need be, {', '.join(sorted(optional))}" if optional else ""
        raise ValueError(f"expected {', '.join(sorted(expected))}{perhaps}; found {names}")


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValueError(f"{name}: expected a number from 0 to 999999999, found {text[:40]!r}")
    return int(text)


def _json(data: Any, status: int = 200) -> Response:
    """A JSON response in ASCII, since half a surrogate pair in a message has no UTF-8."""
    content = json.dumps(data, separators=(",", ":")).encode("ascii")
    return Response(content, status, media_type="application/json")


def _error(status: int, message: str, **more: Any) -> Response:
    return _json({"error": message} | more, status)


async def _refused(request: Request, error: Exception) -> Response:
    """The response to a request that failed, by the kind of error."""
    match error:
        case HTTPException(status_code=status):
            detail = {404: "there is nothing here", 405: f"{request.method} is not allowed here"}
            response = _error(status, detail.get(status, error.detail))
            response.headers.update(error.headers or {})
            return response
        case OSError() if error.errno not in EXHAUSTED:
            raise error  # a mistake of ours
        case OSError():  # out of file descriptors or memory, which passes
            why = f"the server is at its limits ({error.strerror})"
            return _error(503, f"{why}; ask again in a moment")
        case NoCertificate():
            return _error(503, str(error))
        case answers.TooLarge():
            return _error(413, str(error))
        case ExpressionError():
            message, _, excerpt = str(error).partition("\n")
            names = ("problem", "line", "column", "offset")
            position = {name: getattr(error, name) for name in names}
            return _error(400, message, excerpt=excerpt, **position)
    return _error(400, str(error))


async def _failed(request: Request, error: Exception) -> Response:
    """The response to an error of the server itself; the log has the traceback."""
    return _error(500, "the server failed on this request; its log says why")
