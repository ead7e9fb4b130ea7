"""Metadata of an image file: when, where and with which camera it was taken; and its perceptual hash.

EXIF and XMP data are read inside the process with limits that decodes images (:mod:`rmsh.features.decoding`), so this
module imports little more than Pillow and numpy. Whatever is damaged, implausible or missing is None.

The perceptual hash of an image, its look, is a code of 64 bits: the signs, relative to their median, of the lowest
frequencies of its brightness. Copies that were resized or compressed again differ in few bits; other images of the same
thing in many.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from xml.etree import ElementTree

import numpy as np
from PIL import ExifTags, Image

LOOK_BITS = 64
_SIDE = 32  # of the grey square that the frequencies are computed from
_LONGEST = 200  # characters of a camera or keyword
_LONGEST_CAPTION = 2_000
_MOST_KEYWORDS = 64
_DATE = re.compile(r"(\d{4})[:-](\d\d)[:-](\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d))?)?")
_NOT_PRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_XMP_NAMES = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "exif": "http://ns.adobe.com/exif/1.0/",
    "photoshop": "http://ns.adobe.com/photoshop/1.0/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "xmp": "http://ns.adobe.com/xap/1.0/",
}
_XP_KEYWORDS = 0x9C9E  # written by Windows, in UTF-16
_RATING = 0x4746


@dataclass(frozen=True)
class Photo:
    """The facts of one image file; None is unknown."""

    width: int  # pixels, upright
    height: int
    look: bytes  # the perceptual code, 8 bytes
    date: str | None = None  # when it was taken, local time as "2024-06-30T17:05:00"
    camera: str | None = None  # maker and model
    place: tuple[float, float] | None = None  # latitude and longitude in degrees
    keywords: tuple[str, ...] = ()  # words that a person or program gave it
    caption: str | None = None  # a description
    rating: int | None = None  # 0 to 5 stars

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """From plain values, as :func:`describe` returns them; ValueError if they are not such values."""
        try:
            place = None if values["place"] is None else (float(values["place"][0]), float(values["place"][1]))
            photo = cls(
                width=int(values["width"]),
                height=int(values["height"]),
                look=bytes.fromhex(values["look"]),
                date=_date(values["date"]),
                camera=_line(values["camera"]),
                place=place,
                keywords=_keywords(values["keywords"]),
                caption=_line(values["caption"], most=_LONGEST_CAPTION),
                rating=_rating(values["rating"]),
            )
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"not the facts of an image ({error!r})") from error
        if len(photo.look) * 8 != LOOK_BITS or min(photo.width, photo.height) < 1:
            raise ValueError("not the facts of an image (size or look)")
        return photo


def describe(image: Image.Image, size: tuple[int, int], *, look: Image.Image) -> dict[str, Any]:
    """The facts of an open image file as plain values; ``size`` is upright, and ``look`` is the upright image."""
    exif = _exif(image)
    xmp = _xmp(image.info.get("xmp") or image.info.get("XML:com.adobe.xmp"))
    return {
        "width": size[0],
        "height": size[1],
        "look": look_of(look).hex(),
        "date": _first(exif.get("date"), xmp.get("date")),
        "camera": exif.get("camera"),
        "place": exif.get("place"),
        "keywords": list(dict.fromkeys([*xmp.get("keywords", ()), *exif.get("keywords", ())])),
        "caption": _first(xmp.get("caption"), exif.get("caption")),
        "rating": _first(xmp.get("rating"), exif.get("rating")),
    }


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def look_of(image: Image.Image) -> bytes:
    """The perceptual code of an image, 8 bytes.

    Example:
        >>> look_of(Image.radial_gradient("L")).hex()
        'e846daa0129bf6ae'
    """
    grey = np.asarray(image.convert("L").resize((_SIDE, _SIDE), Image.Resampling.BOX), dtype=np.float64)
    spectrum = np.round(_COSINES @ grey @ _COSINES.T, 6)[_LOWEST]  # zero where only the rounding of a processor is not
    return np.packbits(spectrum > np.median(spectrum)).tobytes()


def _lowest(count: int) -> tuple[Any, Any]:
    """Rows and columns of the lowest frequencies of a cosine transform, without the mean."""
    pairs = sorted(((i, j) for i in range(count) for j in range(count)), key=lambda pair: (sum(pair), pair))
    rows, columns = zip(*pairs[1 : count + 1], strict=True)
    return np.array(rows), np.array(columns)


_POSITIONS = np.arange(_SIDE)
_COSINES = np.cos(np.pi * (2 * _POSITIONS[None, :] + 1) * _POSITIONS[:, None] / (2 * _SIDE))
_LOWEST = _lowest(LOOK_BITS)


def _exif(image: Image.Image) -> dict[str, Any]:
    try:
        base = image.getexif()
        details, gps = base.get_ifd(ExifTags.IFD.Exif), base.get_ifd(ExifTags.IFD.GPSInfo)
    except Exception:  # damaged EXIF data makes Pillow raise anything
        return {}
    names = ExifTags.Base
    dates = (details.get(names.DateTimeOriginal), details.get(names.DateTimeDigitized), base.get(names.DateTime))
    maker, model = _line(base.get(names.Make)) or "", _line(base.get(names.Model)) or ""
    camera = model if model.lower().startswith(maker.lower().split(" ")[0]) else f"{maker} {model}"
    keywords = base.get(_XP_KEYWORDS)
    words = keywords.decode("utf-16-le", "replace").rstrip("\0") if isinstance(keywords, bytes) else ""
    caption = _line(base.get(names.ImageDescription), most=_LONGEST_CAPTION)
    if caption and maker and maker.lower().split(" ")[0] in caption.lower():  # such as OLYMPUS DIGITAL CAMERA
        caption = None
    return {
        "date": _first(*map(_date, dates)),
        "camera": _line(camera),
        "place": _place(gps),
        "keywords": _keywords(words.split(";")),
        "caption": caption,
        "rating": _rating(base.get(_RATING)),
    }


def _place(gps: Mapping[int, Any]) -> tuple[float, float] | None:
    """Latitude and longitude in degrees, positive to the north and east."""
    found = []
    for reference, tag, negative, most in ((1, 2, "S", 90), (3, 4, "W", 180)):
        try:
            degrees, minutes, seconds = (float(part) for part in gps[tag])
            value = degrees + minutes / 60 + seconds / 3600
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            return None
        if not 0 <= value <= most:  # also not a number
            return None
        found.append(round(-value if gps.get(reference) == negative else value, 6))
    return (found[0], found[1]) if any(found) else None  # cameras without a fix write zeros


def _xmp(packet: object) -> dict[str, Any]:
    """Facts in an XMP packet, whose values are attributes or elements of rdf:Description."""
    if not isinstance(packet, (bytes, str)):
        return {}
    text = packet.decode("utf-8", "replace") if isinstance(packet, bytes) else packet
    begin, end = text.find("<x:xmpmeta"), text.rfind(">")
    if "<!" in text or begin < 0:  # no entities, which can grow without bound
        return {}
    try:
        root = ElementTree.fromstring(text[begin : end + 1])  # noqa: S314  # without entities
    except ElementTree.ParseError:
        return {}

    def values(name: str) -> list[str]:
        prefix, _, local = name.partition(":")
        key = f"{{{_XMP_NAMES[prefix]}}}{local}"
        elements = root.findall(f".//{name}", _XMP_NAMES)
        listed = [entry.text or "" for element in elements for entry in element.findall(".//rdf:li", _XMP_NAMES)]
        attributes = [element.get(key, "") for element in root.iter() if key in element.attrib]
        return listed or [element.text or "" for element in elements] or attributes

    dates = (_date(value) for name in ("exif:DateTimeOriginal", "photoshop:DateCreated") for value in values(name))
    return {
        "date": _first(*dates),
        "keywords": _keywords(values("dc:subject")),
        "caption": _first(*(_line(value, most=_LONGEST_CAPTION) for value in values("dc:description"))),
        "rating": _first(*(_rating(value) for value in values("xmp:Rating"))),
    }


def _date(value: object) -> str | None:
    """A date as "2024-06-30T17:05:00".

    Example:
        >>> _date("2024:06:30 17:05:00"), _date("2024-06-30"), _date("0000:00:00 00:00:00")
        ('2024-06-30T17:05:00', '2024-06-30T00:00:00', None)
    """
    found = _DATE.match(value) if isinstance(value, str) else None
    try:
        return None if found is None else datetime(*(int(part or 0) for part in found.groups())).isoformat()  # type: ignore[arg-type]
    except ValueError:
        return None


def _line(value: object, *, most: int = _LONGEST) -> str | None:
    """A text on one line, or None if nothing is left of it."""
    text = _NOT_PRINTABLE.sub(" ", value).strip() if isinstance(value, str) else ""
    return text[:most] or None


def _keywords(values: Iterable[object]) -> tuple[str, ...]:
    lines = dict.fromkeys(line for value in values if (line := _line(value)))
    return tuple(lines)[:_MOST_KEYWORDS]


def _rating(value: object) -> int | None:
    """Stars from 0 to 5; -1, which means rejected, counts as 0."""
    try:
        stars = round(float(value))  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return None
    return max(stars, 0) if stars in range(-1, 6) else None
