"""Who may ask: names, sites, tokens; and what every answer tells browsers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from rmsh.core.errors import ConfigError
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


def test_a_short_token_is_refused() -> None:
    with pytest.raises(ConfigError, match="5 characters; give at least 16"):
        Access("short")
