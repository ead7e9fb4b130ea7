"""The command line of the lab: one command per measurement, whose options are those of its module's ``main``."""

from __future__ import annotations

import sys
from importlib import import_module

from lab.console import new_app, run

HELP = """Run a measurement of the lab; the result is written to lab/results.

\b
Examples:
  make lab ARGS="search --only learned"
  make lab ARGS="trials --tables"
  make lab ARGS="trace"
"""
COMMANDS = {
    "quality": ("lab.tuning.quality", "RMSH on coco66k: presets, ablations, open choices."),
    "trials": (
        "lab.tuning.trials",
        "Tuning: the same menu and number of trials for every method, on validation pairs.",
    ),
    "common-label": ("lab.tuning.common_label", "Effect of a very frequent label on a method."),
    "glint": ("lab.tuning.glint", "GLINT and RMSH: relaxed values, noisy and few labels, time."),
    "alone": ("lab.tuning.glint_alone", "GLINT when most items have only an image or only a text."),
    "scale": ("lab.speed.glint_scale", "Time and memory of GLINT for up to a million pairs."),
    "evaluation": ("lab.speed.evaluation", "Evaluation speed and memory."),
    "coco": ("lab.speed.coco_preparation", "Preparation of MS COCO: time and memory."),
    "images": ("lab.speed.images", "Image encoding speed, compared with torch."),
    "executors": ("lab.speed.executors", "Encoding by one process, two processes, and a Ray cluster of two nodes."),
    "milvus-load": ("lab.speed.milvus_load", "A million items from shards into a Milvus server that is killed once."),
    "serve": ("lab.speed.serving", "The server under load: 16 clients, 100,000 items."),
    "latency": ("lab.speed.latency", "Text searches over HTTP: one client, 16 clients, 10 million items."),
    "text-encoder": ("lab.speed.text_encoder", "The 8-bit text encoder of queries: time saved, recall lost."),
    "attack": ("lab.speed.attack", "The server under attack: 300 hostile images, 200 hostile connections."),
    "search": ("lab.speed.search", "Search speed, compared with faiss and usearch."),
    "engines": ("lab.speed.engines", "Search engines side by side, on codes of any number, length and kind."),
    "equal-bytes": ("lab.equal_bytes", "Sign bits, RaBitQ, product quantisation and rescoring at equal bytes."),
    "two-stages": ("lab.speed.two_stages", "Candidates by code, rescored, beside exhaustive search."),
    "faults": ("lab.faults.campaign", "Damage files, kill writers and lose power, and compare what a library answers."),
    "soak": ("lab.faults.soak", "A server for 30 minutes, with adds, removes and two recodes."),
    "first-page": ("lab.first_page.measure", "Judged queries over 3,000 photographs, beside cosine and FTS5."),
    "few-pairs": ("lab.tuning.few_pairs", "Few pairs: the bundled model, or training on them."),
    "wheel-model": ("lab.wheel_model", "Train the bundled model, score a twin of it, write its card."),
    "composed": ("lab.first_page.composed", "What composed queries find among the photographs."),
    "cut-off": ("lab.first_page.cut_off", "Where scores become weak: queries with and without an answer."),
    "first-page-library": ("lab.first_page.library", "Rankings of the judged queries by a library of the photographs."),
    "prepare": ("lab.benchmarks.prepare", "Prepare a data set of the paper from its published files."),
    "card": ("lab.datacard", "Describe a data set: counts, labels, entropy, dissimilar pairs, chance levels."),
    "figure": ("lab.data_figures", "Draw the bounds of delta for a data set, or its data card."),
    "photos": ("lab.photos", "Mixed files through builds and syncs, planted duplicates, and a sync without changes."),
    "pictures": ("lab.pictures", "The pictures of the documentation: the page over drawn scenes, a figure of scores."),
    "trace": ("lab.trace", "Modules used by a search, a training step, a build."),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    app = new_app(HELP)
    for name, (module, text) in COMMANDS.items():
        chosen = name in given[:1]  # only its module is imported
        app.command(name, help=text)(import_module(module).main if chosen else lambda: None)
    return run(app, "make lab", given)


if __name__ == "__main__":
    sys.exit(main())
