"""Access control: host names, origin, access token, and security headers.

- The Host header must name this server, which stops DNS rebinding.
- Requests that a browser makes on behalf of another site are rejected. There is no CORS.
- If there is a token, everything except the bare page, its files and the health check requires it, as a bearer token
  or as the cookie that a browser receives in exchange. Both are compared in constant time; guesses are throttled.
"""

from __future__ import annotations

import ipaddress
import secrets
import time
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

from rmsh.core.errors import ConfigError
from rmsh.serve.limits import SECURITY_HEADERS, ProblemError, check_size, client_of, counted, respond

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


COOKIE = "rmsh-session"
_SHORTEST_TOKEN = 16
_OPEN = {"/", "/healthz", "/api/session"}  # need no token
_MOST_GUESSES, _GUESS_SECONDS = 10, 60.0  # wrong tokens of one client in a minute


def is_loopback(host: str) -> bool:
    """Whether a host name or address is reachable from this machine only.

    Example:
        >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "example.org")]
        [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Access:
    """The access rules of one server; ConfigError if the token is too short, or a host name is malformed.

    ``names`` are its host names, besides its addresses; if ``public``, other machines can reach it by any of them.
    """

    def __init__(self, token: str | None = None, *, names: Iterable[str] = (), public: bool = False) -> None:
        if token is not None and len(token) < _SHORTEST_TOKEN:
            raise ConfigError(f"The token has {len(token)} characters; give at least {_SHORTEST_TOKEN}, or none.")
        self._token = token
        self._names = {name.lower().rstrip(".") for name in names}
        wrong = sorted(name for name in self._names if "/" in name)
        if wrong:
            raise ConfigError(f"{wrong[0]!r} is not a host name; give the name alone, such as photos.example.org.")
        self._public = public
        self.session = secrets.token_urlsafe(32)  # so that browsers do not store the token itself
        self._guesses: Counter[str] = Counter()  # wrong tokens by client
        self._forget_at = 0.0

    def check_token(self, given: str, scope: Scope) -> None:
        """Raise ProblemError if the token is wrong, or if this client has sent too many wrong ones."""
        client, now = client_of(scope["client"][0] if scope.get("client") else ""), time.monotonic()
        if now >= self._forget_at:
            self._guesses, self._forget_at = Counter(), now + _GUESS_SECONDS
        if self._guesses[client] >= _MOST_GUESSES:
            wait = {"Retry-After": f"{_GUESS_SECONDS:.0f}"}
            raise ProblemError(429, "You sent too many wrong access tokens; try again in a minute.", wait)
        if self._token is not None and not secrets.compare_digest(given.encode(), self._token.encode()):
            self._guesses[client] += 1
            sentence = "The access token is wrong; the server printed the right one when it started."
            raise ProblemError(401, sentence, {"WWW-Authenticate": 'Bearer error="invalid_token"'})

    def check(self, scope: Scope) -> None:
        """Raise ProblemError if a request is not allowed."""
        headers, path = Headers(scope=scope), scope["path"]
        if not self._knows(headers.get("host", "")):
            raise ProblemError(400, "Unknown host name; allow it with --allow-host of `rmsh serve`.")
        if path == "/" or path.startswith("/static/"):
            return
        site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin")
        if origin is not None and "sec-fetch-site" not in headers:  # a browser from before 2023
            site = "same-origin" if origin.partition("://")[2].lower() == headers["host"].lower() else "cross-site"
        if site not in ("same-origin", "none"):
            raise ProblemError(403, "Requests from pages of other sites are not allowed.")
        if self._token is not None and path not in _OPEN:
            self._check_credentials(headers, scope)

    def _knows(self, host: str) -> bool:
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        name = name.strip("[]").lower().rstrip(".")
        try:
            address = ipaddress.ip_address(name)  # addresses are safe from DNS rebinding
        except ValueError:
            return name == "localhost" or name in self._names
        return self._public or address.is_loopback

    def _check_credentials(self, headers: Headers, scope: Scope) -> None:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            self.check_token(given.strip(), scope)
            return
        # Split here, because http.cookies takes quadratic time for a value with many backslashes.
        cookies = dict(pair.strip().partition("=")[::2] for pair in headers.get("cookie", "").split(";"))
        if not secrets.compare_digest(cookies.get(COOKIE, "").encode(), self.session.encode()):
            sentence = "An access token is required; the server printed it when it started."
            raise ProblemError(401, sentence, {"WWW-Authenticate": "Bearer"})


class Guard:
    """Middleware that enforces :class:`Access` and the limit on bodies, and adds security headers."""

    def __init__(self, app: ASGIApp, *, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in (SECURITY_HEADERS | {"Cache-Control": "no-cache"}).items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._access.check(scope)
            most = check_size(scope)
        except ProblemError as problem:
            await respond(problem, scope, receive, guarded)
            return
        # No route needs these, and parsing them may take long or fail without a sentence.
        scope["headers"] = [header for header in scope["headers"] if header[0] not in (b"cookie", b"range")]
        await self._app(scope, counted(receive, most), guarded)
