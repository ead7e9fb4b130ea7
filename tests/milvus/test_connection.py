"""Connecting to a Milvus server: valid addresses and settings, and no secret in any message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rmsh.core.errors import ConfigError, InputError, MissingExtraError, RmshError
from rmsh.milvus.connection import Address, Settings, UnavailableError, connect, translate_errors

SECRET = "hunter2"  # noqa: S105


@pytest.mark.parametrize(
    ("text", "server", "name"),
    [
        ("http://127.0.0.1:19530/photos", "http://127.0.0.1:19530", "photos"),
        ("https://milvus.example.org:443/_a1", "https://milvus.example.org:443", "_a1"),
        ("http://[::1]:19530/a", "http://[::1]:19530", "a"),
    ],
)
def test_an_address_is_a_server_and_a_name(text: str, server: str, name: str) -> None:
    assert Address.parse(text) == Address(server, name)
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "photos",
        "ftp://host:1/a",
        "http://host/a",
        "http://host:1",
        "http://host:1/",
        "http://host:1/a/b",
        "http://host:1/a/",
        "http://host:1/1a",
        "http://host:1/a-b",
        "http://host:99999/a",
        "http://:1/a",
        "http://host:1/" + "a" * 201,
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="http://HOST:PORT/NAME"):
        Address.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        f"http://me:{SECRET}@host:1/a",
        f"http://{SECRET}@host:1/a",
        f"http://host:1/a?token={SECRET}",
        f"http://host:1/a#{SECRET}",
        f"me:{SECRET}@host",
    ],
)
def test_a_secret_in_an_address_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InputError, match="MILVUS_TOKEN") as refusal:
        Address.parse(text)
    assert SECRET not in str(refusal.value)


def test_settings_come_from_the_environment_before_a_file(tmp_path: Path) -> None:
    file = tmp_path / "milvus.toml"
    file.write_text('user = "reader"\npassword = "of the file"\ndatabase = "photos"\n')
    settings = Settings.read({"MILVUS_SETTINGS": str(file), "MILVUS_PASSWORD": SECRET})
    assert (settings.user, settings.password, settings.database) == ("reader", SECRET, "photos")
    assert SECRET not in repr(settings)
    assert Settings.read({}) == Settings()


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"MILVUS_TOKEN": SECRET, "MILVUS_USER": "a", "MILVUS_PASSWORD": "b"}, "MILVUS_TOKEN and MILVUS_USER"),
        ({"MILVUS_USER": "a"}, "MILVUS_USER and MILVUS_PASSWORD"),
        ({"MILVUS_PASSWORD": SECRET}, "MILVUS_USER and MILVUS_PASSWORD"),
        ({"MILVUS_TLS_CERT": "a"}, "MILVUS_TLS_CA; set all three"),
        ({"MILVUS_TLS_CERT": "a", "MILVUS_TLS_KEY": "b"}, "MILVUS_TLS_CA; set all three"),
        ({"MILVUS_TLS_CA": "no such file"}, "PEM file no such file"),
        ({"MILVUS_SETTINGS": "no such file"}, "no such file of MILVUS_SETTINGS"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(environment: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as refusal:
        Settings.read(environment)
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (f'pasword = "{SECRET}"', "'pasword'; .* database, password"),
        ("database = 1", "'database'"),
        (f"password = {SECRET}", "milvus.toml .*TOML"),
    ],
)
def test_a_file_of_settings_that_is_wrong_is_refused_without_its_secrets(
    content: str, sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / "milvus.toml"
    file.write_text(content)
    with pytest.raises(ConfigError, match=sentence) as refusal:
        Settings.read({"MILVUS_SETTINGS": str(file)})
    assert SECRET not in str(refusal.value)


class _Client:
    """A client of a server with a version."""

    version, closed = "v2.3.5", False

    def __init__(self, _server: str, **_options: Any) -> None:
        pass

    def get_server_version(self, **_options: Any) -> str:
        return self.version

    def close(self) -> None:
        type(self).closed = True


@pytest.mark.parametrize("version", ["v2.3.1", "2.2.16", "Zilliz Cloud (compatible with Milvus 2.2)"])
def test_a_server_that_is_too_old_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pymilvus.MilvusClient", type("Old", (_Client,), {"version": version}))
    with pytest.raises(RmshError, match=r"http://host:1 is Milvus .*2\.\d.*; at least 2\.3\.2"):
        connect("http://host:1", Settings())


@pytest.mark.parametrize("version", ["v2.3.2", "2.6.1-dev", "v3.0", "master"])
def test_a_newer_server_is_accepted(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pymilvus.MilvusClient", type("New", (_Client,), {"version": version}))
    assert connect("http://host:1", Settings()).get_server_version() == version


def test_certificates_reach_pymilvus_by_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []

    class Client(_Client):
        def __init__(self, _server: str, **options: Any) -> None:
            given.append(options)

    monkeypatch.setattr("pymilvus.MilvusClient", Client)
    files = {name: str(tmp_path / name) for name in ("tls_ca", "tls_cert", "tls_key")}
    for path in files.values():
        Path(path).touch()
    connect("https://host:1", Settings(tls_ca=files["tls_ca"], tls_name="milvus", token=SECRET, database="d"))
    connect("https://host:1", Settings(**files, user="a", password=SECRET))
    one_way, both_ways = given
    one_way.pop("timeout"), both_ways.pop("timeout")
    assert one_way == {
        "server_pem_path": files["tls_ca"],
        "server_name": "milvus",
        "token": SECRET,
        "db_name": "d",
    }
    assert both_ways == {
        "ca_pem_path": files["tls_ca"],
        "client_pem_path": files["tls_cert"],
        "client_key_path": files["tls_key"],
        "user": "a",
        "password": SECRET,
    }


def test_certificates_for_an_address_without_tls_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"http://host:1 .* https"):
        connect("http://host:1", Settings(tls_name="milvus"))


def test_a_server_that_is_not_there_is_one_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnavailableError, match=r"http://127.0.0.1:1: cannot connect .*refused") as refusal:
        connect("http://127.0.0.1:1", Settings(token=f"root:{SECRET}"))
    assert SECRET not in str(refusal.value)
    assert capfd.readouterr() == ("", "")


def test_what_milvus_says_is_told_in_one_line_without_secrets() -> None:
    from pymilvus import MilvusException

    with (
        pytest.raises(RmshError, match=r"^photos: Milvus reports: no \*\*\* for you\.$"),
        translate_errors("photos", Settings(token=f"root:{SECRET}")),
    ):
        raise MilvusException(65535, f"no {SECRET} for you\nstack of the server")


def _refused(status: str, details: str) -> Exception:
    """An error of a connection, as grpc raises it."""
    grpc: Any = pytest.importorskip("grpc")
    methods = {"code": lambda _: grpc.StatusCode[status], "details": lambda _: details}
    error: Exception = type("Refused", (grpc.RpcError,), methods)()
    return error


@pytest.mark.parametrize(
    ("status", "details", "kind", "sentence"),
    [
        ("UNAUTHENTICATED", "auth check failure", RmshError, r"rejects the credentials \(auth check failure\).*TOKEN"),
        ("PERMISSION_DENIED", "no grant", RmshError, r"rejects the credentials \(no grant\)"),
        ("UNAVAILABLE", "Connection refused", UnavailableError, r"cannot connect .*\(Connection refused\).*address"),
        ("UNAVAILABLE", "Ssl handshake failed", RmshError, r"no secure .*\(Ssl handshake failed\).*MILVUS_TLS_CA"),
        ("DEADLINE_EXCEEDED", "too slow", UnavailableError, r"did not answer in time \(too slow\)"),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_cause_of_an_error_is_told(
    status: str, details: str, kind: type[RmshError], sentence: str, wrapped: bool
) -> None:
    from pymilvus import MilvusException

    error = _refused(status, f"{details}.\nstack")
    if wrapped:
        (outer := MilvusException(2, "Fail connecting to server")).__cause__ = error
        error = outer
    with pytest.raises(RmshError, match=f"^photos: .*{sentence}") as refusal, translate_errors("photos", Settings()):
        raise error
    assert type(refusal.value) is kind


@pytest.mark.parametrize(("code", "kind"), [(65535, RmshError), (2, UnavailableError), (101, UnavailableError)])
def test_what_may_work_later_is_told_apart(code: int, kind: type[RmshError]) -> None:
    from pymilvus import MilvusException

    with pytest.raises(RmshError) as refusal, translate_errors("photos", Settings()):
        raise MilvusException(code, "not now")
    assert type(refusal.value) is kind


def test_without_pymilvus_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pymilvus", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[milvus\]"):
        connect("http://host:1", Settings())
