"""Whatever is sent, the server answers with a sentence: nothing breaks, nothing hangs, no file outside is read."""

from __future__ import annotations

import io
import json
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from rmsh.features.decoding import Decoder

Serve = Callable[..., TestClient]

NASTY = [
    "", " ", "\0", "a\0b", "../../../../etc/passwd", "..\\..\\x", "/etc/passwd", "%00", "%2e%2e%2f", "'", '"', "';--",
    "\" OR 1=1", "<script>alert(1)</script>", "\ud7ff", "\uffff", "😀" * 50, "a" * 999, "a" * 5000, "\u202e", "NaN",
    "-1", "1e9", "9" * 40, "true", "null", "[]", "{}", "label=", "label=\"", "label=a and", "not " * 60 + "label=a",
    "(" * 100, "text=\"a\" or id='b'", "text=* OR NEAR(", "id=\x7f", "\r\nSet-Cookie: a=b", "red", "image", "text",
]  # fmt: skip
NAMES = [
    "text",
    "item",
    "minus_item",
    "by",
    "code",
    "minus_code",
    "model",
    "to",
    "k",
    "skip",
    "where",
    "codes",
    "id",
    "side",
    "kind",
    "token",
    "\0",
    "a[b]",
]
PATHS = ["/api/search", "/api/item", "/api/picture", "/api/about", "/metrics", "/healthz", "/", "/static/../app.py"]
PATHS += ["/api/facets", "/api/duplicates"]
PATHS += ["/static/%2e%2e/%2e%2e/search.py", "/api/search/..", "//etc/passwd", "/api/%00", "/openapi.json", "/é"]
METHODS = ["GET", "GET", "GET", "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"]


@contextmanager
def only_files_below(folders: list[Path], patch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Collects the paths of images that are decoded outside of some folders."""
    outside: list[str] = []
    decode = Decoder.decode

    def watched(decoder: Decoder, image: Any, **named: Any) -> Any:
        if isinstance(image, str) and not any(Path(image).resolve().is_relative_to(each) for each in folders):
            outside.append(image)
        return decode(decoder, image, **named)

    with patch.context() as context:
        context.setattr(Decoder, "decode", watched)
        yield outside


def _check(answer: Any) -> None:
    assert answer.status_code < 500, (answer.request.method, answer.request.url, answer.text)
    assert "Traceback" not in answer.text
    if answer.status_code >= 400 and answer.request.method != "HEAD":
        assert list(json.loads(answer.text)) == ["error"], answer.text


def test_600_requests_of_nonsense_are_answered(
    client: TestClient, colours: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(0)  # noqa: S311  # the same nonsense each time
    with only_files_below([colours.resolve()], monkeypatch) as outside:
        for _ in range(600):
            given = [(chance.choice(NAMES), chance.choice(NASTY)) for _ in range(chance.randrange(4))]
            if chance.random() < 0.5:
                given.append(("text", "red"))
            method, path = chance.choice(METHODS), chance.choice(PATHS)
            body = chance.choice([None, b"", b"{", b"\xff\xfe", json.dumps({"token": chance.choice(NASTY)}).encode()])
            kind = chance.choice(["application/json", "multipart/form-data", "multipart/form-data; boundary=x", "x/y"])
            sent = body if method in ("POST", "PUT", "PATCH") else None
            _check(client.request(method, path, params=given, content=sent, headers={"Content-Type": kind}))
    assert outside == []


@pytest.mark.parametrize(
    "name", ["Host", "Authorization", "Cookie", "Sec-Fetch-Site", "If-None-Match", "Content-Length"]
)
def test_headers_of_nonsense_are_answered(name: str, *, serve: Serve, token: str) -> None:
    for client in (serve(), serve(token=token)):
        for value in NASTY:
            if name == "Content-Length" and not value.isascii():
                continue
            answer = client.get("/api/picture?id=red", headers={name: value.encode("utf-8", "replace")})
            _check(answer)


def _seed_pictures() -> list[bytes]:
    noise = np.random.default_rng(0).integers(0, 255, (24, 32, 3), dtype=np.uint8)
    kinds = [("PNG", "RGB"), ("PNG", "I;16"), ("PNG", "P"), ("JPEG", "CMYK"), ("JPEG", "L"), ("GIF", "P")]
    kinds += [(kind, "RGB") for kind in ("WEBP", "BMP", "TIFF", "PPM")]
    return [_saved(Image.fromarray(noise), kind, mode) for kind, mode in kinds]


def _saved(picture: Image.Image, kind: str, mode: str) -> bytes:
    file = io.BytesIO()
    made = Image.fromarray(np.asarray(picture.convert("L"), np.uint16)) if mode == "I;16" else picture.convert(mode)
    made.save(file, kind)
    return file.getvalue()


def _damaged(content: bytes, chance: random.Random) -> bytes:
    """The content with bytes changed, cut, doubled, or with another head."""
    data = bytearray(content)
    for _ in range(chance.randrange(1, 20)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    way = chance.randrange(4)
    if way == 0:
        return bytes(data[: chance.randrange(len(data))])
    if way == 1:
        return bytes(data) * 2
    if way == 2:
        return bytes(chance.randbytes(8)) + bytes(data[8:])
    return bytes(data)


def _png(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG that says of itself what it likes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(chunk(*each) for each in chunks) + chunk(b"IEND", b"")


HOSTILE = {
    "bomb": _png(60_000, 60_000, (b"IDAT", zlib.compress(b"\0" * 100_000))),
    "wide": _png(2**31 - 1, 1, (b"IDAT", zlib.compress(b"\0" * 100))),
    "empty": _png(0, 0),
    "short": _png(4000, 4000, (b"IDAT", zlib.compress(b"\0" * 10))),
    "text bomb": _png(8, 8, (b"zTXt", b"a\0\0" + zlib.compress(b"\0" * 50_000_000))),
    "postscript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/etc/passwd) (r) file\n",
    "svg": b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
    "pdf": b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\n",
    "path": b"/etc/passwd",
    "nothing": b"",
    "zeros": bytes(5000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_picture_is_refused_in_a_sentence(
    name: str, client: TestClient, colours: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with only_files_below([colours.resolve()], monkeypatch) as outside:
        answer = client.post("/api/search", files={"picture": HOSTILE[name]})
        (colours / "red.png").write_bytes(HOSTILE[name])
        shown = client.get("/api/picture", params={"id": "red"})
    assert answer.status_code in (400, 413, 422), answer.text
    assert shown.status_code == 404
    assert outside == []


def test_250_damaged_pictures_are_answered(client: TestClient, colours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, seeds = random.Random(1), _seed_pictures()  # noqa: S311
    with only_files_below([colours.resolve()], monkeypatch) as outside:
        for number in range(250):
            content = _damaged(seeds[number % len(seeds)], chance)
            _check(client.post("/api/search", files={"picture": ("x", content, "image/png")}))
            if number % 5 == 0:
                (colours / "red.png").write_bytes(content)
                _check(client.get("/api/picture", params={"id": "red", "side": "640"}))
    assert outside == []


def test_the_seeds_themselves_are_taken(client: TestClient) -> None:
    for content in _seed_pictures():
        assert client.post("/api/search", files={"picture": content}).status_code == 200
