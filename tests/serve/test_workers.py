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


def test_searches_by_words_alone_are_those_of_workers(client: TestClient) -> None:
    before = client.get("/metrics").text
    for parameters in ({"text": "green"}, {"text": "red", "item": "green 0"}, {"item": "green 0"}):
        assert client.get("/api/search", params=parameters).status_code == (400 if len(parameters) == 2 else 200)
    after = client.get("/metrics").text
    assert _count(after, "search process") - _count(before, "search process") == 1
    assert _count(after, "search") - _count(before, "search") == 1  # by an item, in the server


def _count(metrics: str, stage: str) -> float:
    lines = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
    return float(lines.get(f'rmsh_stage_seconds_count{{stage="{stage}"}}', 0))


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
