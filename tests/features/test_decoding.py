"""Decoding in worker processes: hostile files are refused within the limits, ordinary ones give what Pillow gives."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, features

from rmsh.core.errors import DataError, ImageLimitError, RmshError
from rmsh.features import decoding, decoding_worker
from rmsh.features.decoding import Decoder
from rmsh.features.images import ImageEncoder, ImageLike, read_image, read_pixels

MOST = 89_478_485
needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")


@pytest.fixture
def decoder() -> Iterator[Decoder]:
    """One worker with a second per image."""
    made = Decoder(workers=1, seconds=1.0)
    yield made
    made.close()


def _png(colour: str = "red", size: tuple[int, int] = (8, 6)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


def _ends(pid: int, within: float = 10.0) -> bool:
    """Whether a process is gone, and not a zombie, in time."""
    stop = time.monotonic() + within
    while time.monotonic() < stop:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("name", ["progressive", "comment"])
def test_an_image_that_takes_too_long_is_refused_and_its_worker_replaced(
    name: str, hostile_images: dict[str, bytes], decoder: Decoder
) -> None:
    decoder.decode(_png(), most_pixels=MOST)
    (first,) = decoder.pids()
    start = time.monotonic()
    with pytest.raises(ImageLimitError, match="more than 1 seconds"):
        decoder.decode(hostile_images[name], size=(224, 224), most_pixels=MOST)
    assert time.monotonic() - start < 8
    assert _ends(first)
    (second,) = decoder.pids()  # which is there before the next image
    assert decoder.decode(_png(), most_pixels=MOST).shape == (6, 8, 3)
    assert decoder.pids() == [second] != [first]


def test_a_slow_header_is_refused_too(hostile_images: dict[str, bytes], decoder: Decoder) -> None:
    with pytest.raises(ImageLimitError, match="more than 1 seconds"):
        decoder.size(hostile_images["comment"], most_pixels=MOST)


def test_a_worker_that_waits_without_computing_is_killed_too(decoder: Decoder) -> None:
    decoder.decode(_png(), most_pixels=MOST)
    (worker,) = decoder.pids()
    os.kill(worker, signal.SIGSTOP)
    with pytest.raises(ImageLimitError, match="more than 1 seconds"):
        decoder.decode(_png(), most_pixels=MOST)


def test_a_pipe_is_refused_at_once(tmp_path: Path, decoder: Decoder) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe"):
        decoder.decode(str(tmp_path / "pipe"), most_pixels=MOST)


def test_an_extremely_long_image_is_refused_by_its_header(hostile_images: dict[str, bytes]) -> None:
    with pytest.raises(ImageLimitError, match=r"1 x 50000000 pixels, and at most 65,535 per side"):
        read_pixels(hostile_images["long"], (224, 224))


@needs_proc
@pytest.mark.skipif(not features.check("avif"), reason="this Pillow has no AVIF")
def test_memory_is_bounded_and_not_kept(hostile_images: dict[str, bytes]) -> None:
    decoder, most = Decoder(workers=1, memory=48 << 20), 0
    try:
        decoder.decode(_png(), most_pixels=MOST)
        (first,) = decoder.pids()
        with ThreadPoolExecutor(1) as pool:
            refused = pool.submit(decoder.decode, hostile_images["avif"], most_pixels=MOST)
            while not refused.done():
                most = max(most, _resident(first))
                time.sleep(0.001)
        with pytest.raises(DataError):
            refused.result()
        assert 0 < most < 150 << 20
        decoder.decode(_png(), most_pixels=MOST)
        assert all(_resident(pid) < 100 << 20 for pid in decoder.pids())
    finally:
        decoder.close()


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


@needs_proc
def test_an_image_beyond_the_memory_is_refused_with_the_limit() -> None:
    decoder = Decoder(workers=1, memory=64 << 20)
    with pytest.raises(ImageLimitError, match="more than 64 MB of memory"):
        decoder.decode(_png(size=(6000, 6000)), most_pixels=MOST)
    decoder.close()


@pytest.mark.parametrize(("mode", "side"), [("RGB", 9400), ("RGBA", 7000)], ids=["opaque", "transparent"])
def test_an_image_of_nearly_all_allowed_pixels_fits_into_the_memory(mode: str, side: int) -> None:
    file = io.BytesIO()
    Image.new(mode, (side, side)).save(file, "PNG", compress_level=1)
    assert set(read_pixels(file.getvalue(), (4, 4)).ravel().tolist()) == {0 if mode == "RGB" else 255}


def test_sixteen_threads_get_their_own_images() -> None:
    decoder = Decoder(workers=3)
    colours = [(i, 255 - i, i // 2) for i in range(0, 256, 2)]
    files = []
    for colour in colours:
        file = io.BytesIO()
        Image.new("RGB", (40, 30), colour).save(file, "PNG")
        files.append(file.getvalue())
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda content: decoder.decode(content, size=(9, 7), most_pixels=MOST), files))
    assert [tuple(one[3, 4].tolist()) for one in found] == colours
    assert 1 <= len(decoder.pids()) <= 3
    decoder.close()


def test_a_worker_that_died_is_replaced_and_leaves_no_zombie(decoder: Decoder) -> None:
    decoder.decode(_png(), most_pixels=MOST)
    (first,) = decoder.pids()
    os.kill(first, 9)
    time.sleep(0.2)
    assert decoder.decode(_png(), most_pixels=MOST).shape == (6, 8, 3)
    assert _ends(first)


def test_closing_ends_the_workers(decoder: Decoder) -> None:
    decoder.decode(_png(), most_pixels=MOST)
    (first,) = decoder.pids()
    decoder.close()
    assert decoder.pids() == []
    assert _ends(first)


@pytest.mark.parametrize("ending", ["", "os.kill(os.getpid(), 9)"], ids=["normal", "killed"])
def test_workers_end_with_their_parent(ending: str, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(_png())
    program = (
        "import os, sys\nfrom rmsh.features import decoding, images\n"
        f"images.read_image({str(tmp_path / 'a.png')!r})\n"
        f"print(*decoding.shared_decoder().pids(), flush=True)\n{ending}\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    assert _ends(int(done.stdout))


def test_a_forked_process_has_its_own_workers() -> None:
    program = (
        "import os, io\nfrom PIL import Image\nfrom rmsh.features.decoding import Decoder\n"
        "file = io.BytesIO()\nImage.new('RGB', (8, 6)).save(file, 'PNG')\ncontent = file.getvalue()\n"
        "decoder = Decoder(workers=1)\ndecoder.decode(content, most_pixels=99)\nbefore = decoder.pids()\n"
        "child = os.fork()\ndecoder.decode(content, most_pixels=99)\n"
        "fine = (decoder.pids() != before) == (child == 0)\n"
        "if child == 0:\n    decoder.close()\n    os._exit(0 if fine else 1)\n"
        "status = os.waitpid(child, 0)[1]\ndecoder.decode(content, most_pixels=99)\n"
        "print(fine, status, decoder.pids() == before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["True", "0", "True"], done.stderr


def test_a_decoder_that_cannot_start_is_not_the_fault_of_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_PROGRAM", "raise SystemExit(3)")
    with pytest.raises(RmshError, match=r"did not start .*exit code 3") as raised:
        Decoder(workers=1).decode(_png(), most_pixels=MOST)
    assert not isinstance(raised.value, DataError)


def test_a_worker_does_not_receive_our_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMSH_TOKEN", "secret")
    assert "secret" not in decoding._environment().values()


def test_an_answer_of_the_wrong_size_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    program = decoding._PROGRAM.replace(
        "main()", "from rmsh.features import decoding_worker as w; w.decode = lambda *a, **b: "
        "w.Image.new('RGB', (500, 500)); main()"
    )  # fmt: skip
    monkeypatch.setattr(decoding, "_PROGRAM", program)
    decoder = Decoder(workers=1)
    decoder.size(_png(), most_pixels=MOST)
    (first,) = decoder.pids()
    with pytest.raises(DataError, match="crashed"):
        decoder.decode(_png(), size=(4, 4), most_pixels=MOST)
    assert first not in decoder.pids()
    decoder.close()


def test_photographs_give_the_pixels_that_pillow_gives(coco66k_root: Path) -> None:
    with tarfile.open(coco66k_root / "images.tar") as tar:
        for _ in range(40):
            file = tar.extractfile(tar.next())
            assert file is not None
            content = file.read()
            with Image.open(io.BytesIO(content)) as plain:
                expected = np.asarray(plain.convert("RGB"))
                small = np.asarray(plain.convert("RGB").resize((224, 224), Image.Resampling.HAMMING))
            np.testing.assert_array_equal(read_pixels(content), expected)
            np.testing.assert_array_equal(read_pixels(content, (224, 224)), small)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "I;16", "F"])
def test_strips_change_no_pixel(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).integers(0, 256, (50, 30, 4), dtype=np.uint8)
    image = Image.fromarray(values)
    if mode in ("I;16", "F"):
        image = Image.fromarray(values[..., 0].astype(np.uint16 if mode == "I;16" else np.float32) * 200)
    else:
        image = image.convert("RGB").convert("P") if mode == "P" else image.convert(mode)
    image.info |= {"transparency": 3} if mode == "P" else {}
    whole = np.asarray(read_image(image))
    monkeypatch.setattr(decoding_worker, "_STRIP", 100)
    np.testing.assert_array_equal(np.asarray(read_image(image)), whole)


class _Mean(ImageEncoder):
    name = "mean"
    fingerprint = "0"
    dim = 1
    batch = 2

    def _read(self, image: ImageLike) -> float:
        return float(read_pixels(image, (8, 8)).mean())

    def _embed(self, images: Any) -> Any:
        return np.array(images, np.float32)[:, None]


def test_one_hostile_image_does_not_fail_the_others(
    hostile_images: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = Decoder(workers=2, seconds=1.0)
    monkeypatch.setattr(decoding, "_SHARED", decoder)
    items = [_png("white"), hostile_images["progressive"], hostile_images["long"], _png("white"), _png("white")]
    found, unreadable = _Mean().encode_readable(items)
    assert [one.row for one in unreadable] == [1, 2]
    assert "more than 1 seconds" in unreadable[0].reason
    assert found[:, 0].tolist() == [255, 0, 0, 255, 255]
    decoder.close()
