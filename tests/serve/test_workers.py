"""Search processes: the same answers as the server's own, errors too, metrics, and a new process for a lost one."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from rmsh.search.searcher import Searcher
from rmsh.serve.app import create_app
from rmsh.serve.security import Access
from rmsh.serve.service import SearchService
from rmsh.serve.workers import Workers

_URL = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def workers(many_colours: Path) -> Iterator[Workers]:
    with Workers(2, partial(Searcher.open, many_colours)) as started:
        yield started


@pytest.fixture
def client(many_colours: Path, workers: Workers) -> Iterator[TestClient]:
    with Searcher.open(many_colours) as searcher:
        service = SearchService(searcher, name="colours", workers=workers)
        assert service.warm_up() == []
        yield TestClient(create_app(service, Access()), base_url=_URL)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"text": "red"}, 200),
        ({"text": "red", "k": 2, "skip": 1, "codes": True}, 200),
        ({"text": "blue", "to": "text", "rank": "codes"}, 200),
        ({"text": "red", "where": "label=nowhere"}, 200),
        ({"text": "-red"}, 400),
        ({"text": "red", "where": "label="}, 400),
    ],
)
def test_a_worker_answers_as_the_server_does(
    request_: dict[str, str | int], status: int, client: TestClient, many_colours: Path
) -> None:
    with Searcher.open(many_colours) as searcher:
        alone = TestClient(create_app(SearchService(searcher, name="colours"), Access()), base_url=_URL)
        expected = alone.get("/api/search", params=request_)
    found = client.get("/api/search", params=request_)
    assert (found.status_code, expected.status_code) == (status, status)
    assert found.json() == expected.json()


def test_the_stages_of_a_worker_are_in_the_metrics(client: TestClient) -> None:
    assert client.get("/api/search", params={"text": "green"}).status_code == 200
    counts = dict(line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines() if "_count" in line)
    assert [counts[f'rmsh_stage_seconds_count{{stage="{stage}"}}'] for stage in ("encode text", "describe")] == [
        "1.0"
    ] * 2


def test_lost_workers_are_replaced_and_searches_answered(client: TestClient) -> None:
    expected = client.get("/api/search", params={"text": "red"}).json()
    lost = multiprocessing.active_children()
    for process in lost:
        process.kill()
        process.join()
    with ThreadPoolExecutor(2) as pool:  # one search would leave the other worker alone
        both = pool.map(lambda _: client.get("/api/search", params={"text": "red"}).json(), range(2))
        assert [*both] == [expected] * 2
    assert len(lost) == 2
    assert not {process.pid for process in lost} & {process.pid for process in multiprocessing.active_children()}
