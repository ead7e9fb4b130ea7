"""Metadata of image files: EXIF and XMP as cameras and programs write them, damaged ones, and looks."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image

from rmsh.core.errors import DataError
from rmsh.features.images import read_image, read_photo
from rmsh.features.photo import Photo, look_of

SAMPLE = Path(__file__).parent.parent / "samples" / "phone.heic"
XMP = """<?xpacket begin=""?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF
 xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about=""
 xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/" xmp:Rating="4" photoshop:DateCreated="2019-05-04T10:11:12+02:00">
 <dc:subject><rdf:Bag><rdf:li>beach</rdf:li><rdf:li>holiday 2019</rdf:li></rdf:Bag></dc:subject>
 <dc:description><rdf:Alt><rdf:li xml:lang="x-default">two dogs at the sea</rdf:li></rdf:Alt></dc:description>
 </rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>"""


def _noise(seed: int = 0, size: tuple[int, int] = (90, 60)) -> Image.Image:
    """A smooth random image."""
    values = np.random.default_rng(seed).integers(0, 256, (6, 9, 3), dtype=np.uint8)
    return Image.fromarray(values).resize(size, Image.Resampling.BICUBIC)


def _exif() -> Image.Exif:
    exif = Image.Exif()
    exif[ExifTags.Base.Make], exif[ExifTags.Base.Model] = "FUJIFILM", "X-T5"
    exif[ExifTags.Base.ImageDescription] = "a red bus\nin the rain"
    exif[ExifTags.Base.Orientation] = 6  # turned
    exif[0x4746] = 3
    exif[0x9C9E] = "bus;rain;bus".encode("utf-16-le")
    exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = "2024:06:30 17:05:09"
    exif.get_ifd(ExifTags.IFD.GPSInfo).update({1: "S", 2: (33.0, 51.0, 36.0), 3: "E", 4: (151.0, 12.0, 0.0)})
    return exif


def _file(image: Image.Image, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=90, **options)
    return file.getvalue()


def test_a_camera_tells_when_where_and_how_an_image_was_taken() -> None:
    photo = read_photo(_file(_noise(), exif=_exif()))
    assert (photo.width, photo.height) == (60, 90)  # upright
    assert photo.date == "2024-06-30T17:05:09"
    assert photo.camera == "FUJIFILM X-T5"
    assert photo.place == (-33.86, 151.2)
    assert photo.keywords == ("bus", "rain")
    assert (photo.caption, photo.rating) == ("a red bus in the rain", 3)


def test_a_program_tells_by_xmp_and_its_words_come_first(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(_file(_noise(), exif=_exif(), xmp=XMP.encode()))
    photo = read_photo(path)
    assert photo.keywords == ("beach", "holiday 2019", "bus", "rain")
    assert (photo.caption, photo.rating) == ("two dogs at the sea", 4)
    assert photo.date == "2024-06-30T17:05:09"
    alone = read_photo(_file(_noise(), xmp=XMP.encode()))
    assert (alone.date, alone.camera, alone.place) == ("2019-05-04T10:11:12", None, None)


def test_an_image_without_metadata_has_only_its_size_and_look() -> None:
    photo = read_photo(_file(_noise()))
    assert photo == Photo(90, 60, photo.look)


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        (ExifTags.Base.ImageDescription, "FUJIFILM DIGITAL CAMERA"),
        (ExifTags.Base.ImageDescription, " \0 "),
        (0x4746, 99),
    ],
)
def test_what_says_nothing_is_left_out(tag: int, value: object) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Make], exif[tag] = "FUJIFILM CORPORATION", value
    photo = read_photo(_file(_noise(), exif=exif))
    assert (photo.caption, photo.rating) == (None, None)


@pytest.mark.parametrize("date", ["0000:00:00 00:00:00", "2024:13:41 10:00:00", "yesterday", "    :  :     :  :  "])
def test_a_date_that_is_none_is_left_out(date: str) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.DateTime] = date
    assert read_photo(_file(_noise(), exif=exif)).date is None


@pytest.mark.parametrize("degrees", [(0.0, 0.0, 0.0), (99.0, 0.0, 0.0), (1.0, 2.0)])
def test_a_place_that_is_none_is_left_out(degrees: tuple[float, ...]) -> None:
    exif = Image.Exif()
    exif.get_ifd(ExifTags.IFD.GPSInfo).update({1: "N", 2: degrees, 3: "W", 4: (0.0, 0.0, 0.0)})
    assert read_photo(_file(_noise(), exif=exif)).place is None


@pytest.mark.parametrize(
    "packet", ["<x:xmpmeta", '<!DOCTYPE x [<!ENTITY a "b">]>' + XMP, "no XML at all", XMP.replace("</rdf:RDF>", "")]
)
def test_damaged_and_hostile_xmp_is_ignored(packet: str) -> None:
    photo = read_photo(_file(_noise(), xmp=packet.encode()))
    assert (photo.keywords, photo.caption, photo.rating) == ((), None, None)


def test_damaged_exif_is_ignored() -> None:
    content = bytearray(_file(_noise(), exif=_exif()))
    begin = content.index(b"Exif\0\0") + 6
    content[begin + 8 : begin + 40] = b"\xff" * 32
    photo = read_photo(bytes(content))
    assert (photo.width * photo.height, photo.camera) == (5400, None)


def test_a_file_that_is_no_image_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_text("not an image")
    with pytest.raises(DataError, match=r"a\.jpg"):
        read_photo(path)


def _differ(one: Image.Image, other: Image.Image) -> int:
    return (int.from_bytes(look_of(one)) ^ int.from_bytes(look_of(other))).bit_count()


@pytest.mark.parametrize("seed", range(8))
def test_copies_look_alike_and_other_images_do_not(seed: int) -> None:
    image = _noise(seed, (300, 200))
    small = Image.open(io.BytesIO(_file(image.resize((120, 80))))).convert("RGB")
    assert _differ(image, small) <= 6
    assert _differ(image, image.crop((6, 4, 294, 196))) <= 14
    assert _differ(image, _noise(seed + 100)) >= 18


@pytest.mark.parametrize(
    "values",
    [{}, {"width": 0}, {"look": "00"}, {"look": 7}, {"keywords": 3}, {"place": [1]}, {"place": ["x", 1]}],
)
def test_facts_from_a_compromised_decoder_are_refused(values: dict[str, object]) -> None:
    plain = dict.fromkeys(("date", "camera", "place", "caption", "rating"))
    whole = plain | {"width": 1, "height": 1, "look": "00" * 8, "keywords": []}
    assert Photo.parse(whole).width == 1
    with pytest.raises(ValueError, match="facts"):
        Photo.parse(whole | values if values else {})


def test_a_phone_writes_heic() -> None:
    photo = read_photo(SAMPLE)
    assert (photo.width, photo.height, photo.camera, photo.date) == (64, 48, "Apple iPhone 15", "2024-02-29T08:30:00")
    assert read_image(SAMPLE, (8, 6)).size == (8, 6)


def test_heic_without_its_package_is_explained() -> None:
    script = (
        "import sys; sys.modules['pi_heif'] = None; from rmsh.features.decoding_worker import decode; "
        f"decode(open({str(SAMPLE)!r}, 'rb'), most_pixels=9999)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "[photos]" in done.stderr.splitlines()[-1]
