"""Who may ask: names, sites, tokens; and what every answer tells browsers."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from rmsh.core.errors import ConfigError
from rmsh.serve import security
from rmsh.serve.limits import ProblemError
from rmsh.serve.security import COOKIE, Access

Serve = Callable[..., TestClient]
GUARDED = ["/api/about", "/api/search?text=red", "/api/item?id=red", "/api/picture?id=red", "/metrics", "/openapi.json"]


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8000", "localhost", "LOCALHOST:99", "[::1]:8000", "127.8.8.8", "localhost."]
)
def test_a_server_on_loopback_answers_to_its_own_names(host: str, client: TestClient) -> None:
    assert client.get("/api/about", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "10.0.0.1:8000", "127.0.0.1.evil.example", "", "localhost.evil", "[::2]"]
)
def test_a_server_on_loopback_refuses_any_other_name(host: str, client: TestClient) -> None:
    for path in ("/", "/healthz", "/api/about", "/static/page.js"):
        refused = client.get(path, headers={"Host": host})
        assert refused.status_code == 400
        assert "Unknown host name" in refused.json()["error"]


def test_a_server_beyond_loopback_answers_to_addresses_and_given_names(serve: Serve, token: str) -> None:
    client = serve(token=token, names=["Search.example."], public=True)
    hosts = ["10.0.0.1:80", "search.example:443", "[2001:db8::1]", "other.example"]
    assert [client.get("/healthz", headers={"Host": host}).status_code for host in hosts] == [200, 200, 200, 400]


@pytest.mark.parametrize("path", GUARDED)
def test_everything_but_page_and_health_needs_the_token(path: str, *, serve: Serve, token: str) -> None:
    client = serve(token=token)
    refused = client.get(path)
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    wrong_one = client.get(path, headers={"Authorization": "Bearer wrong"})
    assert wrong_one.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert wrong_one.json() != refused.json()
    for wrong in ("Bearer wrong", f"Basic {token}", token, "Bearer", "Bearer é" + token):
        assert client.get(path, headers={"Authorization": wrong.encode()}).status_code == 401
    assert client.get(path, headers={"Authorization": f"bearer {token}"}).status_code == 200
    assert [client.get(open_path).status_code for open_path in ("/", "/healthz", "/static/base.css")] == [200] * 3


def test_an_unknown_path_does_not_tell_that_it_is_unknown_without_the_token(serve: Serve, token: str) -> None:
    assert serve(token=token).get("/api/secret").status_code == 401


def test_a_browser_exchanges_the_token_for_a_cookie(serve: Serve, token: str) -> None:
    client = serve(token=token)
    assert client.post("/api/session", json={"token": "wrong"}).status_code == 401
    given = client.post("/api/session", json={"token": token})
    assert given.status_code == 204
    cookie = given.headers["set-cookie"].lower()
    assert [word for word in ("httponly", "samesite=strict") if word not in cookie] == []
    assert token not in cookie
    assert client.get("/api/about").status_code == 200
    client.cookies.set(COOKIE, "forged")
    assert client.get("/api/about", headers={"Cookie": f"{COOKIE}=forged"}).status_code == 401
    assert client.get("/api/about", headers={"Cookie": "a=[;;=\x7f"}).status_code == 401


def test_a_cookie_over_tls_is_for_tls_only(serve: Serve, token: str) -> None:
    given = serve("https://127.0.0.1", token=token).post("/api/session", json={"token": token})
    assert "secure" in given.headers["set-cookie"].lower()


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_pages_of_other_sites_are_refused(site: str, client: TestClient) -> None:
    for path in GUARDED:
        assert client.get(path, headers={"Sec-Fetch-Site": site}).status_code == 403
    assert client.get("/", headers={"Sec-Fetch-Site": site}).status_code == 200  # a link to the page


def test_no_other_origin_is_let_in(client: TestClient) -> None:
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for answer in (client.options("/api/search", headers=asked), client.get("/api/about", headers=asked)):
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/", "/static/page.js", "/api/about", "/nowhere", "/api/search", "/healthz"])
def test_every_answer_tells_browsers_to_be_careful(path: str, client: TestClient) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert [
        rule for rule in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'") if rule not in policy
    ] == []
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "server" not in headers


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:3000", "null", "http://[", ""])
def test_another_origin_is_refused_where_the_browser_does_not_tell_the_site(origin: str, client: TestClient) -> None:
    assert client.post("/api/search", headers={"Origin": origin}).status_code == 403
    assert client.get("/", headers={"Origin": origin}).status_code == 200


def test_our_own_origin_is_let_in(client: TestClient) -> None:
    assert client.get("/api/about", headers={"Origin": "http://127.0.0.1:8000"}).status_code == 200
    behind = {"Origin": "https://photos.example", "Sec-Fetch-Site": "same-origin"}  # and a proxy changed the host
    assert client.get("/api/about", headers=behind).status_code == 200


def test_who_guesses_tokens_has_to_wait(serve: Serve, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client, now = serve(token=token), 0.0
    # Only in this module: a clock that stands still for all threads stops the event loops of other servers.
    monkeypatch.setattr(security, "time", SimpleNamespace(monotonic=lambda: now))
    right = {"Authorization": f"Bearer {token}"}
    session = client.post("/api/session", json={"token": token}).headers["set-cookie"]
    for number in range(10):
        sent: Any = {"headers": {"Authorization": f"Bearer {number}"}} if number % 2 else {"json": {"token": "wrong"}}
        assert client.request("POST", "/api/session" if "json" in sent else "/api/search", **sent).status_code == 401
    refused = client.get("/api/about", headers=right | {"Cookie": ""})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    assert client.get("/api/about", headers={"Cookie": session}).status_code == 200
    now = 61.0
    assert client.get("/api/about", headers=right).status_code == 200


def test_guesses_of_one_client_do_not_stop_another(token: str) -> None:
    access = Access(token)
    for number in range(30):
        with pytest.raises(ProblemError) as refused:
            access.check_token("wrong", {"client": (f"2001:db8::{number}", 1)})  # one network is one client
    assert refused.value.status_code == 429
    access.check_token(token, {"client": ("2001:db9::1", 1)})


def _sign_in(port: int, token: str) -> str:
    """The cookie that a proxy with TLS gets on behalf of a client."""
    body = json.dumps({"token": token}).encode()
    headers = {"Content-Type": "application/json", "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/session", body, headers)
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return str(answer.headers["set-cookie"]).lower()


def test_a_trusted_proxy_tells_the_scheme_and_the_client(
    listen: Callable[..., int], token: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "rmsh.serve.access")
    assert "secure" in _sign_in(listen(token=token, proxies=["127.0.0.1"]), token)
    assert "secure" not in _sign_in(listen(token=token, proxies=["127.0.0.2"]), token)
    assert "secure" not in _sign_in(listen(token=token), token)
    while len(caplog.records) < 3:  # a request is logged after its response
        time.sleep(0.01)
    told = [record.getMessage().split()[0] for record in caplog.records]
    assert told == ["203.0.113.9", "127.0.0.1", "127.0.0.1"]


def test_the_access_log_has_no_token_and_no_query(serve: Serve, token: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "rmsh.serve.access")
    client = serve(token=token)
    client.get(f"/api/search?text=secret&token={token}", headers={"Authorization": f"Bearer {token}"})
    client.get("/line%0abreak")
    first, second = (record.getMessage() for record in caplog.records if record.name == "rmsh.serve.access")
    assert first.split()[1:4] == ["GET", "/api/search", "422"]
    assert second.split()[1:4] == ["GET", "/line%0Abreak", "401"]
    assert not [word for word in (token, "secret", "\n") if word in first + second]


def test_a_short_token_is_refused() -> None:
    with pytest.raises(ConfigError, match="5 characters; give at least 16"):
        Access("short")
