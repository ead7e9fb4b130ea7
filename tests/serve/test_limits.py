"""What a client may ask for at most: bodies, pixels, and how many compute at once."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image
from starlette.testclient import TestClient

from rmsh.features import decoding
from rmsh.features.decoding import Decoder
from rmsh.serve.limits import MOST_UPLOAD, ProblemError, Turns


def test_a_picture_that_is_too_large_is_refused_by_its_announced_size(client: TestClient) -> None:
    refused = client.post("/api/search", files={"picture": b"\0" * (MOST_UPLOAD + (1 << 17))})
    assert (refused.status_code, refused.json()["error"]) == (
        413,
        "The image is too large; at most 16 MB are allowed.",
    )


def test_a_body_without_an_announced_size_is_counted_as_it_arrives(client: TestClient) -> None:
    def endless() -> Iterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="picture"; filename="a"\r\n\r\n'
        for _ in range(40):
            yield b"\0" * (1 << 20)

    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    assert client.post("/api/search", content=endless(), headers=kind).status_code == 413


def test_a_form_has_one_file_since_small_ones_are_held_in_memory(client: TestClient) -> None:
    files = [("picture", b"\0" * 1_000_000) for _ in range(16)]
    refused = client.post("/api/search", files=files)
    assert (refused.status_code, "Maximum number of files is 1." in refused.json()["error"]) == (400, True)
    refused = client.post("/api/search", files={"picture": (None, b"\0" * 1_000_000)})
    assert (refused.status_code, "8KB" in refused.json()["error"]) == (400, True)


def test_many_parameters_are_refused_before_they_are_checked(client: TestClient) -> None:
    refused = client.get("/api/search?text=red" + "".join(f"&{number}=" for number in range(10_000)))
    assert (refused.status_code, "10,001 parameters" in refused.json()["error"]) == (400, True)


def test_a_picture_of_many_pixels_in_few_bytes_is_refused_before_it_is_decoded(client: TestClient) -> None:
    file = io.BytesIO()
    Image.new("1", (8000, 8000)).save(file, "PNG")
    refused = client.post("/api/search", files={"picture": file.getvalue()})
    assert (refused.status_code, "8000 x 8000 pixels" in refused.json()["error"]) == (413, True)


@pytest.fixture
def quick_decoder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Decoder]:
    """A decoder with a second per image."""
    decoder = Decoder(seconds=1.0)
    monkeypatch.setattr(decoding, "_SHARED", decoder)
    yield decoder
    decoder.close()


@pytest.mark.parametrize("name", ["progressive", "comment", "long"])
def test_a_hostile_image_is_refused_in_a_sentence(
    name: str, *, client: TestClient, hostile_images: dict[str, bytes], quick_decoder: Decoder
) -> None:
    refused = client.post("/api/search", files={"picture": hostile_images[name]})
    reason = "at most 65,535 per side" if name == "long" else "more than 1 seconds"
    assert (refused.status_code, reason in refused.json()["error"]) == (413, True), refused.text


def test_searches_are_answered_while_hostile_images_are_decoded(
    client: TestClient, hostile_images: dict[str, bytes], quick_decoder: Decoder
) -> None:
    content = {"picture": hostile_images["progressive"]}
    with ThreadPoolExecutor(30) as pool:
        uploads = [pool.submit(client.post, "/api/search", files=content) for _ in range(30)]
        found = []
        while not all(upload.done() for upload in uploads):
            start = time.monotonic()
            assert client.get("/api/search", params={"text": "red", "k": 1}).status_code == 200
            found.append(time.monotonic() - start)
    assert {upload.result().status_code for upload in uploads} == {413, 503}
    assert len(found) > 10
    assert sorted(found)[len(found) // 2] < 0.5


def test_a_hostile_thumbnail_costs_its_time_once(
    client: TestClient, colours: Path, hostile_images: dict[str, bytes], quick_decoder: Decoder
) -> None:
    (colours / "red.png").write_bytes(hostile_images["progressive"])
    assert client.get("/api/picture", params={"id": "red"}).status_code == 404
    workers = quick_decoder.pids()
    assert client.get("/api/picture", params={"id": "red"}).status_code == 404
    assert quick_decoder.pids() == workers


def test_a_body_that_is_not_an_image_is_small(client: TestClient) -> None:
    refused = client.post("/api/session", json={"token": "a" * (1 << 17)})
    assert (refused.status_code, "64 KB" in refused.json()["error"]) == (413, True)


def test_who_comes_when_all_places_are_taken_is_told_to_come_back() -> None:
    turns = Turns(1, 0)
    with turns.turn(), pytest.raises(ProblemError) as refused, turns.turn():
        pass
    assert (refused.value.status_code, refused.value.headers) == (503, {"Retry-After": "1"})
    with turns.turn():  # and the place is free again
        pass


def test_who_waits_gets_a_turn_when_another_ends() -> None:
    turns, inside, done = Turns(1, 1), threading.Event(), threading.Event()

    def other() -> None:
        with turns.turn():
            inside.set()
            done.wait()

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    threading.Timer(0.01, done.set).start()
    with turns.turn():
        assert done.is_set()
    thread.join(60)


def test_nobody_waits_for_ever() -> None:
    turns = Turns(1, 1, seconds=0.01)
    with turns.turn(), pytest.raises(ProblemError), turns.turn():
        pass


def test_large_blocks_return_to_the_system_after_a_large_block_was_freed() -> None:
    program = """
import ctypes
from rmsh.serve.server import _return_freed_memory

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "2", "3", "4", "mapped", "6", "7", "8", "9", "10")]

system = ctypes.CDLL(None)
system.mallinfo2.restype = Info
_return_freed_memory()
for _ in range(2):  # glibc keeps blocks as large as one that was freed, unless told otherwise
    before = system.mallinfo2().mapped
    block = bytes(8 << 20)
    print(system.mallinfo2().mapped - before >= 8 << 20)
    del block
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    if "mallinfo2" in done.stderr:
        pytest.skip("the C library is not glibc 2.33 or later")
    assert done.stdout.split() == ["True", "True"]
