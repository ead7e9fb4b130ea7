"""Access control: host names, origin, access token, and security headers.

- The Host header must name this server, which stops DNS rebinding.
- Requests that a browser makes on behalf of another site are rejected. There is no CORS.
- If there is a token, everything except the bare page, its files and the health check requires it, as a bearer token
  or as the cookie that a browser receives in exchange. Both are compared in constant time.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

from rmsh.core.errors import ConfigError
from rmsh.serve.limits import ProblemError, respond

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


COOKIE = "rmsh-session"
_SHORTEST_TOKEN = 16
_OPEN = {"/", "/healthz", "/api/session"}  # need no token

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


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
    """The access rules of one server.

    Args:
        token: access token, or None.
        names: host names of the server, besides its addresses.
        public: whether other machines can reach it, by any of its addresses.

    Raises:
        ConfigError: the token is too short, or a host name is malformed.
    """

    def __init__(self, token: str | None = None, *, names: Iterable[str] = (), public: bool = False) -> None:
        if token is not None and len(token) < _SHORTEST_TOKEN:
            raise ConfigError(
                f"The token has {len(token)} characters; give at least {_SHORTEST_TOKEN}, or none to generate one."
            )
        self._token = token
        self._names = {name.lower().rstrip(".") for name in names}
        wrong = sorted(name for name in self._names if "/" in name)
        if wrong:
            raise ConfigError(f"{wrong[0]!r} is not a host name; give the name alone, such as photos.example.org.")
        self._public = public
        self.session = secrets.token_urlsafe(32)  # so that browsers do not store the token itself

    def is_token(self, given: str) -> bool:
        """Compare with the token in constant time."""
        return self._token is None or secrets.compare_digest(given.encode(), self._token.encode())

    def check(self, scope: Scope) -> None:
        """Raise ProblemError if a request is not allowed."""
        headers, path = Headers(scope=scope), scope["path"]
        if not self._knows(headers.get("host", "")):
            raise ProblemError(400, "Unknown host name; allow it with --allow-host of `rmsh serve`.")
        if path == "/" or path.startswith("/static/"):
            return
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise ProblemError(403, "Requests from pages of other sites are not allowed.")
        if self._token is not None and path not in _OPEN and not self._admits(headers):
            raise ProblemError(
                401,
                "An access token is required; the server printed it when it started.",
                {"WWW-Authenticate": "Bearer"},
            )

    def _knows(self, host: str) -> bool:
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        name = name.strip("[]").lower().rstrip(".")
        try:
            address = ipaddress.ip_address(name)  # addresses are safe from DNS rebinding
        except ValueError:
            return name == "localhost" or name in self._names
        return self._public or address.is_loopback

    def _admits(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.is_token(given.strip())
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and secrets.compare_digest(cookie.value.encode(), self.session.encode())


class Guard:
    """Middleware that enforces :class:`Access` and adds security headers."""

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
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._access.check(scope)
        except ProblemError as problem:
            await respond(problem, scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)
