"""The frame of a report: one HTML page that needs no other file and no network, and that prints well."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from urllib.parse import quote

__all__ = ["inline_picture", "render_page"]

_PLAIN = " !$'()*+,/:;=?@[]~"  # what may stand in an address between double quotes as it is
_STYLE = """
:root { color-scheme: light; --line: #d5d5d5; --soft: #555; }
body { font: 16px/1.5 system-ui, sans-serif; color: #111; background: #fff; max-width: 72rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { font-size: 1.3rem; margin: 2.2rem 0 .4rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .8rem; margin: .6rem 0; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; white-space: nowrap; }
th, td { padding: .18rem .55rem .18rem 0; text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.from-left th, .from-left td, th[scope=row], thead tr:first-child th:first-child { text-align: left; }
tbody th { font-weight: 400; } thead tr:last-child th { border-bottom: 1px solid #111; }
.from-right thead th[colspan] { text-align: center; }
.quiet th, .quiet td { color: var(--soft); font-style: italic; }
.note, figcaption, .muted { color: var(--soft); font-size: .86rem; margin: .2rem 0; }
figure { margin: 1.2rem 0; } figure img { max-width: 100%; height: auto; display: block; }
.claim { border-left: .35rem solid #888; padding: .1rem 0 .1rem .9rem; margin: .9rem 0; }
.claim.yes { border-color: #12854a; } .claim.yet { border-color: #12854a; border-left-style: dotted; }
.claim.partly { border-color: #e69f00; border-left-style: double; }
.claim.no { border-color: #c2281d; border-left-style: dashed; } .claim p { margin: .2rem 0; }
.claim ul { margin: .2rem 0; font-size: .9rem; }
@media (max-width: 40rem) { .drawn { overflow-x: auto; } .drawn img { min-width: 34rem; } }
@page { size: A4; margin: 14mm; }
@media print {
  body { margin: 0; padding: 0; max-width: none; font-size: 10pt; line-height: 1.35; }
  h2, h3 { break-after: avoid; } h3 { margin: 4mm 0 1mm; }
  .wide, .claim, section { break-inside: avoid; } .wide { overflow: visible; break-after: avoid; }
  p { orphans: 3; widows: 3; }
  table { font-size: 7.5pt; } th, td { padding: .5mm 1.6mm .5mm 0; } .note, figcaption, .claim ul { font-size: 8.5pt; }
  figure { margin: 1mm 0; } figure img { max-width: 165mm; max-height: 225mm; width: auto; }
}
"""


def render_page(title: str, body: str) -> str:
    """A whole page; scripts and anything from elsewhere are forbidden to it."""
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def inline_picture(path: Path, words: str) -> str:
    """A picture file as an ``<img>`` that carries it.

    Args:
        path: an .svg or .png file.
        words: what it shows, for those who cannot see it.
    """
    if path.suffix == ".svg":  # as text it is a quarter smaller than in base64
        text = path.read_text(encoding="utf-8").replace("\n", " ")
        source = "image/svg+xml," + quote(text, safe=_PLAIN)
    else:
        source = "image/png;base64," + base64.b64encode(path.read_bytes()).decode()
    return f'<img src="data:{source}" alt="{escape(words, quote=True)}">'
