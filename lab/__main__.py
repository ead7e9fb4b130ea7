"""`make lab`: run the measurements named, or all of them.

make lab ARGS="quality"             every missing run of the quality grid, then the tables
make lab ARGS="quality --only bow"  the runs whose name an expression finds
make lab ARGS="quality --tables"    the tables alone, from the result files
make lab ARGS="trials"              six trials of every method on validation, and the options they choose
make lab ARGS="glint"               GLINT beside RMSH: the sign, noisy and few labels, unseen items, time
make lab ARGS="alone"               GLINT where most items have a picture or a text alone
make lab ARGS="scale"               GLINT on a million pairs, on a thousand classes: time and memory
make lab ARGS="training"            training speed
make lab ARGS="evaluation"          evaluation speed
make lab ARGS="coco"                preparing a made-up MS COCO tree of 100,000 pictures
make lab ARGS="pictures"            picture encoding speed beside the plain torch model
make lab ARGS="serve"               the server under load: 16 clients, 60 s, 100,000 items
make lab ARGS="search --only learned"  search speed of the cases whose name an expression finds
make lab ARGS="threads"             one query by two threads, beside two processes that share nothing
make lab ARGS="faults --runs 200"   writers of a library killed at random moments
"""

from __future__ import annotations

import argparse

from lab.speed import (
    coco_preparation,
    evaluation_speed,
    faults,
    pictures,
    search_speed,
    serving,
    training_speed,
    two_threads,
)
from lab.tuning import glint, glint_alone, glint_scale, quality
from lab.tuning import search_methods as trials

MEASUREMENTS = {
    "training": training_speed.main,
    "evaluation": evaluation_speed.main,
    "faults": faults.main,
    "coco": coco_preparation.main,
    "pictures": pictures.main,
    "serve": serving.main,
    "search": search_speed.main,
    "threads": two_threads.main,
    "quality": quality.main,
    "trials": trials.main,
    "glint": glint.main,
    "alone": glint_alone.main,
    "scale": glint_scale.main,
}


def main() -> None:
    """Parse the words after `make lab` and run what they name."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", nargs="?", choices=sorted(MEASUREMENTS))
    parser.add_argument("--only", default="", help="quality, search, glint: runs whose name this expression finds")
    parser.add_argument("--tables", action="store_true", help="all with tables: run nothing, build the tables")
    parser.add_argument("--runs", type=int, default=200, help="faults: how many writers are killed")
    parser.add_argument("--seed", type=int, default=0, help="faults, coco, scale: what is made up follows from it")
    parser.add_argument("--seconds", type=float, default=60.0, help="serve: how long clients ask")
    arguments = parser.parse_args()
    for name, measure in MEASUREMENTS.items():
        if arguments.what in (None, name):
            measure(arguments)


if __name__ == "__main__":
    main()
