"""Who may ask: the name the server is called by, the site a request comes from, the token; and what browsers may do.

- A request must call the server by a name it has. A page elsewhere whose name is made to lead here (DNS rebinding) is
  refused, because browsers tell the name they used.
- A request that a browser makes for another site's page is refused. There is no CORS.
- Where there is a token, everything but the bare page, its files and the health needs it: as a bearer token, or as the
  cookie that a browser gets for it once. Both are compared in constant time.
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

__all__ = ["COOKIE", "Access", "Guard", "is_loopback"]

COOKIE = "rmsh-session"
_SHORTEST_TOKEN = 16
_OPEN = {"/", "/healthz", "/api/session"}  # what anybody may ask who calls the server by its name

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
    """Whether only this machine reaches a host name or address.

    Example:
        >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "example.org")]
        [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Access:
    """The rules of one server.

    Args:
        token: what a client must know, or None.
        names: host names that the server is called by, beside its addresses.
        beyond: whether it is reached from other machines, and so by any of its addresses.

    Raises:
        ConfigError: the token is too short to be safe, or a name is none.
    """

    def __init__(self, token: str | None = None, *, names: Iterable[str] = (), beyond: bool = False) -> None:
        if token is not None and len(token) < _SHORTEST_TOKEN:
            raise ConfigError(
                f"A token of {len(token)} characters was given; give at least {_SHORTEST_TOKEN}, or none: one is made."
            )
        self._token = token
        self._names = {name.lower().rstrip(".") for name in names}
        wrong = sorted(name for name in self._names if "/" in name)
        if wrong:
            raise ConfigError(f"The host name {wrong[0]!r} was given; give the name alone, such as photos.example.org.")
        self._beyond = beyond
        self.session = secrets.token_urlsafe(32)  # the token itself is not left in browsers

    def is_token(self, given: str) -> bool:
        """Whether this is the token; takes as long for any."""
        return self._token is None or secrets.compare_digest(given.encode(), self._token.encode())

    def check(self, scope: Scope) -> None:
        """Refuse a request that may not be answered.

        Raises:
            ProblemError: says why.
        """
        headers, path = Headers(scope=scope), scope["path"]
        if not self._knows(headers.get("host", "")):
            raise ProblemError(400, "This server does not go by that name; see --allow-host of `rmsh serve`.")
        if path == "/" or path.startswith("/static/"):
            return
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise ProblemError(403, "Pages of other sites may not ask this server.")
        if self._token is not None and path not in _OPEN and not self._admits(headers):
            raise ProblemError(
                401, "A token is needed; the server printed it when it was started.", {"WWW-Authenticate": "Bearer"}
            )

    def _knows(self, host: str) -> bool:
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        name = name.strip("[]").lower().rstrip(".")
        try:
            address = ipaddress.ip_address(name)  # an address cannot be made to lead elsewhere
        except ValueError:
            return name == "localhost" or name in self._names
        return self._beyond or address.is_loopback

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
    """Refuses what :class:`Access` refuses, and tells browsers what pages of this server may do."""

    def __init__(self, app: ASGIApp, *, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer why not."""
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
