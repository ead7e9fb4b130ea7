"""Score rankings on the judged queries beside cosine and FTS5; write sheets of what is unjudged, and take grades."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from lab.data import coco66k_root, write_measurement
from lab.first_page.judged import add_grades, read_judgements, read_queries, write_judgements
from lab.first_page.rankings import cosine, fts5, read_captions, read_ranking
from lab.first_page.scores import METRICS, SAMPLES, score_rankings
from lab.first_page.sheets import TODO, pool, read_grades, write_sheets


def main(
    rankings: Annotated[list[Path] | None, typer.Argument(exists=True, help="JSON files: query to IDs.")] = None,
    *,
    name: Annotated[str, typer.Option(help="Name of the result in lab/results/first_page.")] = "baselines",
    part: Annotated[str, typer.Option(metavar="dev|test|all", help="Queries to score.")] = "all",
    reference: Annotated[list[str] | None, typer.Option(help="Ranking to compare with: cosine and fts5.")] = None,
    unjudged_wrong: Annotated[bool, typer.Option("--unjudged-wrong", help="Count unjudged items as wrong.")] = False,
    sheets: Annotated[Path | None, typer.Option(help="Write sheets of unjudged items here; score nothing.")] = None,
    grades: Annotated[Path | None, typer.Option(exists=True, help="Add the grades of this file first.")] = None,
) -> None:
    """Add grades if a file of them is given, write sheets if a folder is given, otherwise score, store and print."""
    judgements = read_judgements()
    if grades:
        add_grades(judgements, read_grades(grades))
        write_judgements(judgements)
    queries, root = read_queries(part), Path(coco66k_root())
    captions, texts = read_captions(root), [query.query for query in queries]
    ranked = {
        "cosine": cosine(captions, texts),
        "fts5": fts5(captions, texts),
        **{path.stem: read_ranking(path) for path in rankings or []},
    }
    if sheets:
        kept = [{query: ranking[query] for query in texts if query in ranking} for ranking in ranked.values()]
        pooled = pool(kept, judgements)
        write_sheets(pooled, sheets, images=root / "images.tar")
        count = sum(map(len, pooled.values()))
        print(f"{count} items of {len(pooled)} queries to judge; write grades into {sheets / TODO}")
        return
    ranked["best order"] = {
        query: sorted(judgements[query], key=judgements[query].__getitem__, reverse=True) for query in texts
    }
    references = reference or ["cosine", "fts5"]
    rows = score_rankings(ranked, queries, judgements, references=references, unjudged_wrong=unjudged_wrong)
    result = {
        "what": "photographs of coco66k, judged queries; precision@10, its share of what is possible, NDCG@10 (gain "
        "2^grade - 1) and first hit right (grade 2), beside the best order of the judged items; differences from "
        f"references with 95 % intervals of a paired bootstrap ({SAMPLES} samples, seed 0)",
        "part": part,
        "references": references,
        "judgements": sum(map(len, judgements.values())),
        "unjudged_wrong": unjudged_wrong,
        "rows": rows,
    }
    write_measurement(f"first_page/{name}", result)
    print(table_text(rows))


def table_text(rows: Sequence[dict[str, Any]]) -> str:
    """One line per kind and ranking: each metric, and the difference of the first to the references."""
    lines = [f"{'kind':12} {'ranking':28} queries " + " ".join(f"{metric:>12}" for metric in METRICS)]
    for row in rows:
        cells = [f"{row[metric]['value']:12.3f}" for metric in METRICS if metric in row]
        for name, other in row.get(METRICS[0], {}).get("over", {}).items():
            low, high = other["interval"]
            cells.append(f" {name} {other['difference']:+.3f} [{low:+.3f}, {high:+.3f}]")
        lines.append(f"{row['kind']:12} {row['ranking']:28} {row['queries']:7} " + " ".join(cells))
    return "\n".join(lines)
