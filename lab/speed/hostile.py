"""A hostile client of a server on loopback: images hard to decode, and connections that never complete a request.

`python -m lab.speed.hostile PORT IMAGES CONNECTIONS SECONDS SEED` attacks a server and prints what became of each image
and each connection as JSON. Everything is generated, and follows from the seed.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import queue
import random
import struct
import sys
import threading
import time
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, features

SHARES = {  # of a hundred images
    "progressive JPEG": 7, "large AVIF": 7, "large PNG": 7, "long PNG": 7, "PPM comment": 7, "truncated": 20,
    "wrong type": 15, "mutated": 30,
}  # fmt: skip
CONNECTIONS = (
    "idle", "slow headers", "slow body", "half a request", "half a body", "junk", "two lengths", "cookie", "parameters",
)  # fmt: skip
UPLOADERS = 16
_IMAGE_ADDRESS, _ADDRESSES = "127.0.0.6", ("127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5")
_GET = b"GET /api/search?text=a HTTP/1.1\r\nHost: 127.0.0.1\r\n"
_POST = (
    b"POST /api/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=x\r\n"
    b"Content-Length: 100000\r\n\r\n--x\r\nContent-Disposition: form-data; name="
)
_SAID = {  # what a connection says at once
    "idle": b"",
    "slow headers": _GET + b"X: ",
    "slow body": _POST,
    "half a request": _GET[:-10],
    "half a body": _POST,
    "junk": bytes(range(256)) * 16,
    "two lengths": _POST.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n", 1),
    # Slow to parse by http.cookies and to validate by FastAPI.
    "cookie": _GET.replace(b"search?text=a", b"about") + b'Cookie: a="' + b"\\" * 60_000 + b'"\r\n\r\n',
    "parameters": _GET.replace(b"a H", b"".join(b"&%d=" % number for number in range(9000)) + b" H") + b"\r\n",
}


class Outcome(NamedTuple):
    """What became of an image or a connection; status 0 if the server closed it without a response."""

    kind: str
    status: int
    seconds: float


def progressive_jpeg(side: int, *, scans: int) -> bytes:
    """A progressive JPEG that claims to be large, with scans that hold nothing but are passed over pixel by pixel."""
    content, position = _saved(Image.new("L", (8, 8), 90), "JPEG", progressive=True), 2
    header, scan = b"\xff\xd8", b""
    while position < len(content) - 2:
        marker, length = content[position + 1], int.from_bytes(content[position + 2 : position + 4], "big")
        segment = bytearray(content[position : position + 2 + length])
        position += len(segment)
        if marker == 0xC2:  # the frame: height and width
            segment[5:9] = side.to_bytes(2, "big") * 2
        if marker == 0xDA:
            scan = bytes(segment)
            position = content.index(b"\xff", position)
        else:
            header += bytes(segment)
    return header + scan * scans + b"\xff\xd9"


def long_png(height: int) -> bytes:
    """A PNG of one column."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(2 * height), 1)) + chunk(b"IEND", b"")


def large_avif(side: int) -> bytes:
    """A square AVIF of one colour in about a kilobyte; empty if this Pillow has no AVIF."""
    return _saved(Image.new("RGB", (side, side)), "AVIF", speed=10) if features.check("avif") else b""


def long_comment(size: int) -> bytes:
    """A PPM whose comment is so many bytes long."""
    return b"P6\n#" + b"a" * size + b"\n8 8\n255\n" + bytes(192)


def _saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def hostile_images(count: int, *, seed: int) -> list[tuple[str, bytes]]:
    """Images with the names of their kinds, in random order."""
    chance = random.Random(seed)  # noqa: S311
    noise = Image.fromarray(np.random.default_rng(seed).integers(0, 255, (48, 64, 3), dtype=np.uint8))
    seeds = [_saved(noise, kind) for kind in ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM")]
    same = {
        "progressive JPEG": progressive_jpeg(7000, scans=4000),
        "large AVIF": large_avif(7000),
        "large PNG": _saved(Image.new("RGBA", (7000, 7000)), "PNG", compress_level=1),
        "long PNG": long_png(50_000_000),
        "PPM comment": long_comment(15 << 20),
    }
    wrong = [b"", b"%PDF-1.4\n", b"<svg/>", b"PK\3\4" + bytes(100), b"%!PS-Adobe-3.0 EPSF-3.0\n", bytes(1 << 20)]
    made = []
    for number in range(count):
        # Each kind occurs, however few images there are.
        kinds = list(SHARES)
        kind = kinds[number] if number < len(kinds) else chance.choices(kinds, list(SHARES.values()))[0]
        content = bytearray(chance.choice(seeds))
        if kind == "truncated":
            del content[chance.randrange(1, len(content)) :]
        for _ in range(chance.randrange(1, 30) if kind == "mutated" else 0):
            content[chance.randrange(len(content))] = chance.randrange(256)
        made.append((kind, chance.choice(wrong) if kind == "wrong type" else same.get(kind, bytes(content))))
    chance.shuffle(made)
    return made


def send_images(port: int, images: list[tuple[str, bytes]], *, end: float) -> tuple[list[Outcome], int]:
    """Upload images from one address; returns their outcomes, and how often the server was too busy for one."""
    waiting: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
    outcomes: list[Outcome] = []
    busy: list[int] = []
    for image in images:
        waiting.put(image)

    def send() -> None:
        while time.monotonic() < end:
            try:
                kind, content = waiting.get_nowait()
            except queue.Empty:
                return
            start = time.monotonic()
            status = _upload(port, content)
            if status in (429, 503):
                busy.append(status)
                waiting.put((kind, content))
                time.sleep(1)
            else:
                outcomes.append(Outcome(kind, status, time.monotonic() - start))

    threads = [threading.Thread(target=send) for _ in range(UPLOADERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes, len(busy)


def _upload(port: int, content: bytes) -> int:
    head = b'--x\r\nContent-Disposition: form-data; name="picture"; filename="q"\r\n\r\n'
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120, source_address=(_IMAGE_ADDRESS, 0))
    try:
        kind = {"Content-Type": "multipart/form-data; boundary=x"}
        connection.request("POST", "/api/search", head + content + b"\r\n--x--\r\n", kind)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):  # refused in the middle of the body
        return 0
    finally:
        connection.close()


async def hold_connections(port: int, count: int, *, done: threading.Event) -> list[Outcome]:
    """Keep so many hostile connections open: when the server ends one, another is opened, until all is done."""
    outcomes: list[Outcome] = []

    async def hold(number: int) -> None:
        kind = CONNECTIONS[number % len(CONNECTIONS)]
        while not done.is_set():
            outcomes.append(await _connect(port, kind, _ADDRESSES[number % len(_ADDRESSES)]))
            await asyncio.sleep(1)

    await asyncio.gather(*(hold(number) for number in range(count)))
    return outcomes


async def _connect(port: int, kind: str, address: str) -> Outcome:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    start, answer = time.monotonic(), b""
    writing = asyncio.ensure_future(_say(kind, writer))
    try:
        async with asyncio.timeout(120):
            answer = await reader.read()
    except (OSError, TimeoutError):  # a reset, or no end
        pass
    writing.cancel()
    writer.close()
    words = answer[:20].split()
    return Outcome(kind, int(words[1]) if len(words) > 1 else 0, time.monotonic() - start)


async def _say(kind: str, writer: asyncio.StreamWriter) -> None:
    writer.write(_SAID[kind])
    while kind.startswith("slow"):
        await asyncio.sleep(0.5)
        writer.write(b"a")


def summarise(outcomes: list[Outcome]) -> dict[str, dict[str, Any]]:
    """Count, statuses and longest time of each kind."""
    kinds = sorted({outcome.kind for outcome in outcomes})
    return {
        kind: {
            "count": sum(outcome.kind == kind for outcome in outcomes),
            "statuses": Counter(str(outcome.status) for outcome in outcomes if outcome.kind == kind),
            "longest_seconds": round(max(outcome.seconds for outcome in outcomes if outcome.kind == kind), 1),
        }
        for kind in kinds
    }


def main() -> None:
    """Attack until all images are answered, at most for the given time."""
    port, images, connections, seconds, seed = map(int, sys.argv[1:])
    prepared = hostile_images(images, seed=seed)
    done = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(lambda: asyncio.run(hold_connections(port, connections, done=done)))
        outcomes, busy = send_images(port, prepared, end=time.monotonic() + seconds)
        done.set()
        held = holding.result()
    print(json.dumps({"images": summarise(outcomes), "busy": busy, "connections": summarise(held)}))


if __name__ == "__main__":
    main()
