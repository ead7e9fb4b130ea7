"""Reaching a Milvus server: the address of a collection, settings that are secret, and faults in one sentence.

An address is ``http(s)://HOST:PORT/NAME`` and never holds a secret. Who asks, by what right and with which
certificates comes from the environment, or from a TOML file that ``MILVUS_SETTINGS`` names; what stands in the
environment goes before what stands in the file:

    environment        in the file   what it is
    MILVUS_TOKEN       token         a token, or
    MILVUS_USER        user          a user, and
    MILVUS_PASSWORD    password      the password of that user
    MILVUS_DB          database      the database of the collection
    MILVUS_TLS_CA      tls_ca        a PEM file of who signed the server's certificate
    MILVUS_TLS_CERT    tls_cert      a PEM file of our own certificate, where the server wants one, and
    MILVUS_TLS_KEY     tls_key       its key
    MILVUS_TLS_NAME    tls_name      the name in the server's certificate, where it is not that of the host
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from rmsh.core.errors import ConfigError, InputError, RmshError, require

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")  # Milvus takes 255, and a fingerprint follows
_FORM = "give http://HOST:PORT/NAME or https://HOST:PORT/NAME, with a name of letters, digits and _"
_SECONDS = 30.0
_NOT_FOUND, _NOT_LOADED = 100, 101  # codes of Milvus
_UNREACHED = ("connect", "auth", "timeout", "unavailable")  # in messages of pymilvus that have no code of their own


@dataclass(frozen=True)
class Address:
    """Where a collection is.

    Args:
        server: ``http(s)://HOST:PORT``.
        name: of the collection.

    Example:
        >>> Address.parse("http://127.0.0.1:19530/photos")
        Address(server='http://127.0.0.1:19530', name='photos')
    """

    server: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an address.

        Raises:
            InputError: it is none, or it holds what may be a secret; then it is not repeated.
        """
        if any(sign in text for sign in "@?#"):
            raise InputError(
                "The address of the collection holds a user, a token or options, which do not belong there; put them "
                f"into MILVUS_USER and MILVUS_PASSWORD, or MILVUS_TOKEN, and {_FORM}."
            )
        parts = urlsplit(text)
        name = parts.path.removeprefix("/")
        if parts.scheme not in ("http", "https") or not _port(parts.netloc) or not _NAME.fullmatch(name):
            raise InputError(f"{text!r} is no address of a collection; {_FORM}.")
        return cls(f"{parts.scheme}://{parts.netloc}", name)

    def __str__(self) -> str:
        return f"{self.server}/{self.name}"


def _port(place: str) -> int | None:
    """The port of HOST:PORT, or None where it is not of that form."""
    found = re.fullmatch(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})", place)
    return int(found[1]) if found and int(found[1]) < 1 << 16 else None


def _variable(name: str, *, secret: bool = False) -> Any:
    return field(default="", repr=not secret, metadata={"variable": name})


@dataclass(frozen=True)
class Settings:
    """Who asks a server, by what right, and how the server is known; secrets are never shown.

    Raises:
        ConfigError: parts of it do not fit together, or a file of it is not there.

    Example:
        >>> Settings.read({"MILVUS_USER": "reader", "MILVUS_PASSWORD": "secret"}).user
        'reader'
    """

    token: str = _variable("MILVUS_TOKEN", secret=True)
    user: str = _variable("MILVUS_USER")
    password: str = _variable("MILVUS_PASSWORD", secret=True)
    database: str = _variable("MILVUS_DB")
    tls_ca: str = _variable("MILVUS_TLS_CA")
    tls_cert: str = _variable("MILVUS_TLS_CERT")
    tls_key: str = _variable("MILVUS_TLS_KEY")
    tls_name: str = _variable("MILVUS_TLS_NAME")

    def __post_init__(self) -> None:
        if self.token and (self.user or self.password):
            raise ConfigError("MILVUS_TOKEN and MILVUS_USER are both set; give a token, or a user with a password.")
        if bool(self.user) != bool(self.password):
            raise ConfigError("Of MILVUS_USER and MILVUS_PASSWORD one is set alone; give both, or a MILVUS_TOKEN.")
        if bool(self.tls_cert) != bool(self.tls_key) or (self.tls_cert and not self.tls_ca):
            raise ConfigError("MILVUS_TLS_CERT, MILVUS_TLS_KEY and MILVUS_TLS_CA go together; give all three.")
        for path in filter(None, (self.tls_ca, self.tls_cert, self.tls_key)):
            if not Path(path).is_file():
                raise ConfigError(f"The settings of Milvus name the file {path}, which is not there; give a PEM file.")

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Settings of the environment, and of the file that it names."""
        path = environment.get("MILVUS_SETTINGS")
        values = _read_file(Path(path), {each.name for each in fields(cls)}) if path else {}
        named = {each.name: environment.get(each.metadata["variable"]) for each in fields(cls)}
        return cls(**values | {name: value for name, value in named.items() if value})

    def secrets(self) -> list[str]:
        """What must not be shown."""
        return [secret for secret in (self.token, self.token.partition(":")[2], self.password) if secret]

    def _options(self) -> dict[str, str]:
        """As pymilvus takes them; it wants the authority under one name, or under another beside our own key."""
        authority = "ca_pem_path" if self.tls_cert else "server_pem_path"
        given = {"token": self.token, "user": self.user, "password": self.password, "db_name": self.database}
        given |= {authority: self.tls_ca, "client_pem_path": self.tls_cert, "client_key_path": self.tls_key}
        return {name: value for name, value in (given | {"server_name": self.tls_name}).items() if value}


def _read_file(path: Path, known: set[str]) -> dict[str, str]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not TOML"  # an excerpt may hold a secret
        raise ConfigError(f"MILVUS_SETTINGS names {path}, which cannot be read ({reason}); give a TOML file.") from None
    wrong = [name for name, value in values.items() if name not in known or not isinstance(value, str)]
    if wrong:
        raise ConfigError(f"{path} sets {wrong[0]!r}; it may set {', '.join(sorted(known))}, each to a string.")
    return values


def connect(server: str, settings: Settings) -> Any:
    """A ``MilvusClient`` of a server.

    Raises:
        MissingExtraError: pymilvus is not installed.
        ConfigError: there are TLS settings, and the address is not https.
        RmshError: the server cannot be reached, or refuses us.
    """
    if not server.startswith("https:") and (settings.tls_ca or settings.tls_name):
        raise ConfigError(f"There are TLS settings for Milvus, and {server} is without TLS; give an https address.")
    pymilvus: Any = require("pymilvus", "milvus")
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it logs each error with its stack; we raise a sentence
    with explained(server, settings):
        return pymilvus.MilvusClient(server, timeout=_SECONDS, **settings._options())


@contextmanager
def explained(place: str, settings: Settings) -> Iterator[None]:
    """Turn what pymilvus raises into a sentence without secrets.

    Args:
        place: the server or collection that is asked.
        settings: whose secrets are not to be shown.
    """
    pymilvus: Any = require("pymilvus", "milvus")
    grpc: Any = require("grpc", "milvus")
    try:
        yield
    except (pymilvus.MilvusException, grpc.RpcError, OSError) as error:
        raise RmshError(f"{place}: {_sentence(error, settings.secrets())}") from None


def _sentence(error: Exception, secrets: list[str]) -> str:
    code, message = getattr(error, "code", None), str(getattr(error, "message", "") or error)
    if code == _NOT_FOUND:
        return "there is no such collection, or no longer; `rmsh library push` a library, and open it anew."
    if code == _NOT_LOADED:
        return "the collection is not loaded; load it in Milvus, or `rmsh library push` its library again."
    if any(word in message.lower() for word in _UNREACHED):
        return (
            "the server cannot be reached, or refuses us; see that it runs, and that MILVUS_TOKEN, or MILVUS_USER and "
            "MILVUS_PASSWORD, MILVUS_DB and MILVUS_TLS_CA hold what it wants."
        )
    for secret in secrets:
        message = message.replace(secret, "***")
    return f"Milvus refuses: {message.splitlines()[0] if message else type(error).__name__}."
