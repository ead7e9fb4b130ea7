"""The report of an experiment: claims in words, tables and figures, and which runs are missing or failed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from lab.paper.claims.catalogue import check_claims
from lab.paper.headline import headline
from lab.paper.lineup import line_up
from lab.paper.names import title_of
from lab.paper.outcomes import Outcome, datasets, done
from lab.paper.page import inline_picture, render_page
from lab.paper.tables.table import Table, to_html

if TYPE_CHECKING:
    from lab.paper.claims.claim import Claim
    from lab.paper.figures.catalogue import Drawn

__all__ = ["render_report"]

_LARGEST_VECTOR = 400_000  # bytes; the picture of a larger figure is smaller
_BOLD = re.compile(r"\*\*(.+?)\*\*")
_CLASSES = {"holds": "yes", "holds so far": "yet", "holds in part": "partly", "does not hold": "no", "open": "open"}


def render_report(
    title: str,
    outcomes: Sequence[Outcome],
    *,
    tables: Mapping[str, Sequence[Table]],
    figures: Sequence[Drawn],
    remarks: str = "",
) -> str:
    """The page.

    Args:
        title: its heading.
        outcomes: all results, and what is awaited.
        tables: of each dataset, as tables/catalogue.py makes them.
        figures: as figures/catalogue.py makes them.
        remarks: a text of the author, paragraphs with empty lines between; words may be **bold**.
    """
    parts = [f"<h1>{escape(title)}</h1>", *_state(outcomes), *_remarks(remarks)]
    for dataset in datasets(outcomes):
        claims = check_claims(outcomes, dataset)
        parts += [f"<h2>{escape(dataset)}</h2>", f"<p>{escape(headline(line_up(outcomes, dataset), claims))}</p>"]
        parts += ["<h3>What agrees with the paper, and what does not</h3>", *map(_claim, claims)]
        parts += ["<h3>Tables</h3>", *map(to_html, tables[dataset]), "<h3>Figures</h3>"]
        parts += [_figure(drawn) for drawn in figures if drawn.dataset == dataset]
    parts += ["<h2>How it works</h2>", *(_figure(drawn) for drawn in figures if drawn.dataset is None)]
    parts += _failures(outcomes)
    return render_page(title, "\n".join(parts))


def _state(outcomes: Sequence[Outcome]) -> list[str]:
    """How many runs there are, of which methods they are missing, and with which versions they were made."""
    finished = done(outcomes)
    failed = sum(outcome.failed for outcome in outcomes)
    missing = len(outcomes) - len(finished) - failed
    words = f"Of {len(outcomes)} runs {len(finished)} are done, {failed} failed and {missing} are not run."
    versions = sorted({f"{name} {version}" for o in finished for name, version in o.result.get("versions", {}).items()})
    parts = [f"<p>{words} Every number below is made from the files of the runs that are done.</p>"]
    parts += [f"<p>Not run yet: {escape(_missing(outcomes))}.</p>"] if missing else []
    return parts + ([f'<p class="muted">Versions: {escape(", ".join(versions))}.</p>'] if versions else [])


def _missing(outcomes: Sequence[Outcome]) -> str:
    """How many runs of each method are awaited."""
    asked = Counter(outcome.run.method for outcome in outcomes)
    awaited = Counter(outcome.run.method for outcome in outcomes if not outcome.done and not outcome.failed)
    return ", ".join(f"{title_of(method)} {count} of {asked[method]}" for method, count in awaited.items())


def _remarks(text: str) -> list[str]:
    """Paragraphs, with **bold** words.

    Example:
        >>> _remarks("**First**: a < b.")
        ['<p><b>First</b>: a &lt; b.</p>']
    """
    paragraphs = [escape(paragraph.strip()) for paragraph in text.split("\n\n") if paragraph.strip()]
    return ["<p>" + _BOLD.sub(r"<b>\1</b>", paragraph) + "</p>" for paragraph in paragraphs]


def _claim(claim: Claim) -> str:
    details = "".join(f"<li>{escape(sentence)}</li>" for sentence in claim.details)
    return (
        f'<div class="claim {_CLASSES[claim.verdict]}"><p><b>{escape(claim.statement)}</b> '
        f"<em>{escape(claim.verdict)}</em></p><p>{escape(claim.summary)}</p>"
        + (f"<ul>{details}</ul>" if details else "")
        + "</div>"
    )


def _figure(drawn: Drawn) -> str:
    """A heading with its figure, which stay on one page of paper."""
    heading = f"<h3>{escape(drawn.title)}</h3>"
    if not drawn.files:
        return f'<section>{heading}\n<p class="muted">not run</p></section>'
    return (
        f'<section>{heading}\n<figure><div class="drawn">{inline_picture(_smaller(drawn.files), drawn.title)}</div>'
        f"<figcaption>{escape(drawn.caption)}</figcaption></figure></section>"
    )


def _smaller(files: Sequence[Path]) -> Path:
    """The vector, or the picture where the vector is large, such as one with photographs in it."""
    vector, picture = files
    return vector if vector.stat().st_size <= _LARGEST_VECTOR else picture


def _failures(outcomes: Iterable[Outcome]) -> list[str]:
    failed = [outcome for outcome in outcomes if outcome.failed]
    if not failed:
        return []
    rows = "".join(
        f"<li><code>{escape(str(outcome.run.path))}</code>: {escape(outcome.result['error'])}</li>"
        for outcome in failed
    )
    return ["<h2>Runs that failed</h2>", f"<ul>{rows}</ul>"]
