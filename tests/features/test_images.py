"""Reading one image: every kind becomes upright RGB, and every bad one an error that names it."""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from rmsh.core.errors import DataError
from rmsh.features import images
from rmsh.features.images import read_image, thumbnail

RED = (255, 0, 0)


def _file(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _noise(side: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (side, side, 3), dtype=np.uint8))


def _corner(image: Image.Image) -> tuple[int, ...]:
    colour = image.getpixel((0, 0))
    assert isinstance(colour, tuple)
    return colour


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGBA", "CMYK", "YCbCr", "HSV", "I", "F", "I;16", "RGBa"])
def test_every_mode_becomes_rgb_of_the_wanted_size(mode: str) -> None:
    read = read_image(Image.new("RGB", (9, 5), RED).convert("L" if mode == "I;16" else "RGB").convert(mode), (4, 6))
    assert (read.mode, read.size) == ("RGB", (4, 6))


def test_a_cmyk_photograph_keeps_its_colours() -> None:
    read = read_image(_file(Image.new("RGB", (16, 16), RED).convert("CMYK"), "JPEG", quality=95))
    np.testing.assert_allclose(_corner(read), RED, atol=6)


def test_sixteen_bits_become_eight_by_scaling_not_by_clipping() -> None:
    grey = Image.fromarray(np.array([[0, 32896, 65535]], dtype=np.uint16))
    assert np.asarray(read_image(_file(grey)))[0, :, 0].tolist() == [0, 128, 255]
    floats = Image.fromarray(np.array([[-1.0, 0.0, 1.0]], dtype=np.float32))
    assert np.asarray(read_image(_file(floats, "TIFF")))[0, :, 0].tolist() == [0, 128, 255]


def test_what_is_transparent_becomes_white() -> None:
    clear = Image.new("RGBA", (4, 4), (*RED, 0))
    palette = Image.new("P", (4, 4))
    assert _corner(read_image(_file(clear))) == (255, 255, 255)
    assert _corner(read_image(_file(palette, transparency=0))) == (255, 255, 255)


def test_of_an_animation_the_first_frame_is_taken() -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    for kind in ("GIF", "WEBP", "PNG"):
        read = read_image(_file(frames[0], kind, save_all=True, append_images=frames[1:]))
        np.testing.assert_allclose(_corner(read), RED, atol=6)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_rotated_photograph_is_read_upright(orientation: int) -> None:
    upright = Image.new("RGB", (32, 16), "white")
    upright.paste("red", (0, 0, 16, 8))
    # How a camera that was held so stores the scene: the inverse of what a viewer has to do.
    turn = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}.get(orientation)
    stored = upright if turn is None else upright.transpose(Image.Transpose(turn))
    exif = Image.Exif()
    exif[0x0112] = orientation
    read = read_image(_file(stored, "JPEG", exif=exif, quality=95, subsampling=0))
    np.testing.assert_allclose(np.asarray(read), np.asarray(upright), atol=8)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_an_image_with_damaged_exif_data_is_read() -> None:
    data = _file(Image.new("RGB", (8, 8), RED), "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03")
    assert read_image(data).size == (8, 8)


def test_a_large_jpeg_is_decoded_at_a_fraction_to_nearly_the_same_pixels() -> None:
    ramp = np.linspace(0, 255, 1600).astype(np.uint8)
    large = Image.fromarray(np.broadcast_to(ramp[None, :, None], (1200, 1600, 3)).copy())
    fast = np.asarray(read_image(_file(large, "JPEG", quality=95), (64, 64)), dtype=float)
    whole = np.asarray(read_image(_file(large), (64, 64)), dtype=float)
    assert np.abs(fast - whole).max() < 4


def test_a_decompression_bomb_is_refused_before_it_is_decoded() -> None:
    bomb, large = _file(Image.new("1", (20_000, 20_000))), _file(Image.new("L", (50, 40)))
    assert len(bomb) < 100_000
    with pytest.raises(DataError, match="20000 x 20000 pixels"):
        read_image(bomb)
    with pytest.raises(DataError, match=r"50 x 40 pixels.* 1,999 "):
        read_image(large, most_pixels=1999)


def test_too_many_bytes_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(images, "MOST_BYTES", 1 << 20)
    path = tmp_path / "large.png"
    path.write_bytes(bytes(3 << 20))
    with pytest.raises(DataError, match=r"large\.png .*3 MB.* 1 "):
        read_image(path)


def test_a_truncated_image_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "cut.jpg"
    path.write_bytes(_file(_noise(64), "JPEG")[:2000])
    with pytest.raises(DataError, match=r"cut\.jpg .*truncated"):
        read_image(path, (8, 8))


def test_a_missing_file_a_folder_a_pipe_and_a_text_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.jpg"
    text.write_text("no picture")
    pipe = tmp_path / "pipe.jpg"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe, tmp_path / "gone.jpg"):
        with pytest.raises(DataError, match=r"no such file.*JPEG, PNG,.* or HEIF"):
            read_image(str(path))
    with pytest.raises(DataError, match="its format is not recognized"):
        read_image(text)


def test_a_format_that_starts_a_program_is_not_opened() -> None:
    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"
    with pytest.raises(DataError, match="its format is not recognized"):
        read_image(postscript)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF"]), st.data())
def test_a_damaged_file_is_read_or_refused_and_nothing_else(kind: str, data: st.DataObject) -> None:
    content = bytearray(_file(_noise(24), kind))
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(DataError):
        assert read_image(bytes(content), (8, 8)).mode == "RGB"


def test_a_real_photograph_is_read(coco66k_root: Path) -> None:
    with tarfile.open(coco66k_root / "images.tar") as tar:
        file = tar.extractfile(tar.next())
        assert file is not None
        read = read_image(file.read(), (224, 224))
    assert np.asarray(read).std() > 10


def test_a_thumbnail_is_a_small_upright_jpeg_without_metadata() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    content = thumbnail(_file(Image.new("RGB", (2000, 1000), "red"), "JPEG", exif=exif), 288)
    with Image.open(io.BytesIO(content)) as small:
        assert (small.format, small.size, dict(small.getexif())) == ("JPEG", (144, 288), {})
