"""Connecting to a Milvus server: addresses of collections, credentials, and errors in one sentence.

An address is ``http(s)://HOST:PORT/NAME`` and never contains a secret. Credentials and certificates come from the
environment or from a TOML file named by ``MILVUS_SETTINGS``; the environment takes precedence:

    environment        in the file   meaning
    MILVUS_TOKEN       token         a token, or
    MILVUS_USER        user          a user, and
    MILVUS_PASSWORD    password      the password of that user
    MILVUS_DB          database      the database of the collection
    MILVUS_TLS_CA      tls_ca        PEM file with the CA certificate of the server
    MILVUS_TLS_CERT    tls_cert      PEM file with the client certificate, if the server requires one, and
    MILVUS_TLS_KEY     tls_key       its key
    MILVUS_TLS_NAME    tls_name      the name in the server's certificate, if it differs from the host name
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self, cast
from urllib.parse import urlsplit

from rmsh.core.errors import ConfigError, InputError, RmshError, require

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")  # Milvus allows 255 characters, and push appends a fingerprint
_LOCATION = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")  # HOST:PORT
_FORM = "give http://HOST:PORT/NAME or https://HOST:PORT/NAME, with a name of letters, digits and _"
_SECONDS = 30.0
_OLDEST = (2, 3, 2)
_NOT_FOUND, _NOT_LOADED = 100, 101  # error codes of Milvus
# Not ready, unavailable, too many requests, not loaded yet, and no replica, channel, segment or node for the moment.
_FOR_NOW = {1, 2, 4, 8, _NOT_LOADED, 103, 201, 202, 400, 401, 500, 501, 503, 600, 601, 602, 901, 902, 903, 904}
_in_our_call: ContextVar[bool] = ContextVar("in_our_call", default=False)


class UnavailableError(RmshError):
    """The server does not answer, or not yet; the same call may succeed later."""


@dataclass(frozen=True)
class Address:
    """The address of a collection: ``http(s)://HOST:PORT`` and its name.

    Example:
        >>> Address.parse("http://127.0.0.1:19530/photos")
        Address(server='http://127.0.0.1:19530', name='photos')
    """

    server: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an address, or raise InputError; the message does not repeat an address that may contain a secret."""
        if any(sign in text for sign in "@?#"):
            raise InputError(
                "The address of the collection contains a user, a token or options; set MILVUS_USER and "
                f"MILVUS_PASSWORD, or MILVUS_TOKEN, instead, and {_FORM}."
            )
        parts = urlsplit(text)
        name = parts.path.removeprefix("/")
        location = _LOCATION.fullmatch(parts.netloc)
        has_port = location is not None and 0 < int(location[1]) < 1 << 16
        if parts.scheme not in ("http", "https") or not has_port or not _NAME.fullmatch(name):
            raise InputError(f"{text!r} is not the address of a collection; {_FORM}.")
        return cls(f"{parts.scheme}://{parts.netloc}", name)

    def __str__(self) -> str:
        return f"{self.server}/{self.name}"


@dataclass(frozen=True)
class Settings:
    """Credentials and certificates for a server; ``repr`` hides the secrets."""

    token: str = field(default="", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    database: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    tls_name: str = ""

    def __post_init__(self) -> None:
        if self.token and (self.user or self.password):
            raise ConfigError("MILVUS_TOKEN and MILVUS_USER are both set; set a token, or a user with a password.")
        if bool(self.user) != bool(self.password):
            raise ConfigError("Only one of MILVUS_USER and MILVUS_PASSWORD is set; set both, or MILVUS_TOKEN.")
        if bool(self.tls_cert) != bool(self.tls_key) or (self.tls_cert and not self.tls_ca):
            raise ConfigError("MILVUS_TLS_CERT and MILVUS_TLS_KEY require each other and MILVUS_TLS_CA; set all three.")
        for path in filter(None, (self.tls_ca, self.tls_cert, self.tls_key)):
            if not Path(path).is_file():
                raise ConfigError(f"The PEM file {path} in the Milvus settings does not exist; give an existing file.")

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Read the settings from the environment and from the file it names."""
        known = {each.name for each in fields(cls)}
        values: dict[str, Any] = {}
        if path := environment.get("MILVUS_SETTINGS"):
            try:
                values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not TOML"  # it may contain a secret
                raise ConfigError(f"Cannot read {path} of MILVUS_SETTINGS ({reason}); give a TOML file.") from None
        for name, value in values.items():
            if name not in known or not isinstance(value, str):
                allowed = ", ".join(sorted(known))
                raise ConfigError(f"{path}: invalid setting {name!r}; allowed are strings for {allowed}.")
        variables = {name: f"MILVUS_{name.upper()}" for name in known} | {"database": "MILVUS_DB"}
        given = {name: environment.get(variable) for name, variable in variables.items()}
        return cls(**values | {name: value for name, value in given.items() if value})

    def secrets(self) -> list[str]:
        """Values that must not appear in messages."""
        return [secret for secret in (self.token, self.token.partition(":")[2], self.password) if secret]

    def _options(self) -> dict[str, str]:
        """Keyword arguments of pymilvus; the name of the CA file depends on whether there is a client certificate."""
        authority = "ca_pem_path" if self.tls_cert else "server_pem_path"
        given = {"token": self.token, "user": self.user, "password": self.password, "db_name": self.database}
        given |= {authority: self.tls_ca, "client_pem_path": self.tls_cert, "client_key_path": self.tls_key}
        return {name: value for name, value in (given | {"server_name": self.tls_name}).items() if value}


def connect(server: str, settings: Settings) -> Any:
    """Connect to a server and return a ``MilvusClient``; RmshError if the server is too old."""
    if not server.startswith("https:") and (settings.tls_ca or settings.tls_name):
        raise ConfigError(f"There are TLS settings for Milvus, but {server} does not use TLS; give an https address.")
    pymilvus: Any = require("pymilvus", "milvus")
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("pymilvus.")]:
        logging.getLogger(name).addFilter(_is_foreign_call)
    with translate_errors(server, settings):
        client = pymilvus.MilvusClient(server, timeout=_SECONDS, **settings._options())
        version = str(client.get_server_version(timeout=_SECONDS))
    numbers = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", version)  # such as v2.3.5; others may be builds of their own
    if numbers is not None and tuple(int(n or 0) for n in numbers.groups()) < _OLDEST:
        client.close()
        raise RmshError(f"{server} is Milvus {version}; at least {'.'.join(map(str, _OLDEST))} is needed: update it.")
    return client


def _is_foreign_call(_record: logging.LogRecord) -> bool:
    """Drop log records of our own calls: pymilvus logs each error with its stack, and we raise it as one sentence."""
    return not _in_our_call.get()


@contextmanager
def translate_errors(place: str, settings: Settings) -> Iterator[None]:
    """Raise errors of pymilvus as an RmshError of one sentence with their cause, without secrets or log output."""
    pymilvus: Any = require("pymilvus", "milvus")
    grpc: Any = require("grpc", "milvus")
    token = _in_our_call.set(True)
    try:
        yield
    except (pymilvus.MilvusException, grpc.RpcError, OSError) as error:
        kind, sentence = _translated(error, grpc, settings.secrets())
        raise kind(f"{place}: {sentence}") from None
    finally:
        _in_our_call.reset(token)


def _translated(error: BaseException, grpc: Any, secrets: Sequence[str]) -> tuple[type[RmshError], str]:
    """The class and the sentence for an error; pymilvus wraps those of the connection in others."""
    code, root = getattr(error, "code", None), cast("Any", error)
    while root.__cause__ not in (None, root):  # pymilvus raises errors from themselves
        root = root.__cause__
    status = root.code() if isinstance(root, grpc.RpcError) else None
    found = root.details() if status is not None else str(getattr(error, "message", "") or error)
    cause = (found or type(root).__name__).strip().splitlines()[0].rstrip(".")
    for secret in secrets:
        cause = cause.replace(secret, "***")
    if code == _NOT_FOUND:
        return RmshError, "there is no such collection; run `rmsh library push`, or open the collection again."
    if code == _NOT_LOADED:
        return UnavailableError, "the collection is not loaded; load it in Milvus, or run `rmsh library push` again."
    if status in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED) or "auth check" in cause:
        hint = "check MILVUS_TOKEN, or MILVUS_USER and MILVUS_PASSWORD"
        return RmshError, f"the server rejects the credentials ({cause}); {hint}."
    if status is not None and any(word in cause.lower() for word in ("ssl", "handshake", "certificate")):
        return RmshError, f"no secure connection ({cause}); check MILVUS_TLS_CA, and whether the address is https."
    if status == grpc.StatusCode.DEADLINE_EXCEEDED:
        return UnavailableError, f"the server did not answer in time ({cause}); check its load, and try again."
    if status is not None or isinstance(error, OSError):
        return UnavailableError, f"cannot connect to the server ({cause}); check the address and that it is running."
    for_now = code in _FOR_NOW or getattr(error, "retriable", False)
    return UnavailableError if for_now else RmshError, f"Milvus reports: {cause}."
