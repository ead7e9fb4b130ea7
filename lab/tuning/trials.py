"""Tuning with equal effort: the same menu and the same number of trials for every method (lab/grids/trials.yaml).

A trial trains a method on a part of the training pairs and scores its codes under both protocols: validation pairs
search the training pairs, as in the protocol paper, and one another, as in unseen. Its score is NDCG, averaged over
protocols and directions. halving.py says which options are tried.

Each trial is written to the record of its method when it has finished. An interrupted search goes on where it stopped,
several processes can share the work, and a record that was made with other code of the method is started again.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import torch
import typer
import yaml

from lab.console import Only, Tables  # noqa: TC001  # typer reads them
from lab.data import GRIDS, RESULTS, coco66k
from lab.grid import parse_at, read_mapping
from lab.tuning.halving import Halving, Options, Outcome, Trials, key_of
from rmsh.cli.console import duration
from rmsh.compare.measure import Parts, Stopwatch, parts_of, score_codes
from rmsh.compare.provenance import code_hash, commit
from rmsh.compare.run import Run, method_of
from rmsh.core.errors import DataError
from rmsh.core.files import read_json, write_json, write_text
from rmsh.core.locks import try_lock
from rmsh.methods import method_class

if TYPE_CHECKING:
    from rmsh.data.open import Opened
    from rmsh.methods.base import Method

FOLDER = RESULTS / "tuning" / "trials"
CHOSEN = GRIDS / "chosen.yaml"
_DEPTH = 500 / 56_947  # share of the database at which NDCG is cut in the protocol paper, that of coco66k


def read_trials(path: Path) -> Trials:
    """Read a file of trials; a ConfigError names what is wrong."""
    return parse_at(Trials, read_mapping(path), str(path))


def tune(trials: Trials, opened: Opened, folder: Path, *, only: str = "", say: Callable[[str], None] = print) -> None:
    """Carry out the missing trials of the methods whose name matches, in the order of the file."""
    if opened.split is None:
        raise DataError(f"{opened.name} has no split, so no validation pairs; give data with queries.")

    @cache
    def parts(pairs: int) -> Parts:
        return parts_of(Run(trials.dataset, "", protocol="unseen", validation=True, train=pairs), opened)

    names = [name for name in trials.methods if re.search(only, name)]
    searches = [Halving(trials, name, len(opened.split.train), _recorded(folder, name)) for name in names]
    for number, search in enumerate(searches):
        lock = folder / f"{search.method}.claim"
        with try_lock(lock) as acquired:
            if not acquired:
                say(f"{search.method}: another process is working on it")
                continue
            search.done |= _recorded(folder, search.method)  # what another process has done in the meantime
            for pairs, options in search.plan():
                if key_of(pairs, options) not in search.done:
                    outcome = try_options(trials, search.method, options, parts(pairs))
                    search.done[key_of(pairs, options)] = outcome
                    _write(folder, search)
                    shown = outcome.get("error") or f"NDCG {outcome['score']:.4f}"
                    left = duration(seconds_left(searches[number:]))
                    say(f"{search.method} {len(search.done)}: {pairs:,} pairs, {shown}; about {left} left")
            _write(folder, search, complete=True)
            lock.unlink(missing_ok=True)


def _recorded(folder: Path, method: str) -> dict[tuple[int, str], Outcome]:
    """The outcomes of a method's trials, if they were made with its current code."""
    record = read_json(path) if (path := folder / f"{method}.json").is_file() else None
    if record is None or not is_current(record):
        return {}
    return {key_of(trial.pop("pairs"), trial.pop("options")): trial for trial in record["tried"]}


def is_current(record: Mapping[str, Any]) -> bool:
    """Whether a record was made with the current code of its method."""
    cls = method_class(record["method"])
    return (record["method_version"], record["code_hash"]) == (cls.version, code_hash(cls))


def _write(folder: Path, search: Halving, *, complete: bool = False) -> None:
    """Write the record of a method: what it was tuned with, every trial, and what was chosen once all are done.

    A record with nothing new stays as it is, with the commit that made it.
    """
    cls, best, done = method_class(search.method), search.best() if complete else None, search.done
    record: dict[str, Any] = {
        "commit": commit(),
        "method": search.method,
        "method_version": cls.version,
        "code_hash": code_hash(cls),
        "settings": search.trials.model_dump(exclude={"menu", "methods"}),
        "grid": search.grid,
        "trials": len(done),
        "configurations": len({text for _, text in done}),
        "cpu_seconds": round(sum(outcome["cpu_seconds"] for outcome in done.values())),
        "chosen": None if best is None else search.final(best),
    }
    if best is not None:
        score = done[key_of(search.trials.most_pairs, best)]["score"]
        record |= {"score": score, "epochs": best.get("epochs"), "edges": search.edges(best)}
    tried = [{"pairs": pairs, "options": json.loads(text), **outcome} for (pairs, text), outcome in done.items()]
    path, record = folder / f"{search.method}.json", json.loads(json.dumps({**record, "tried": tried}))
    if not path.is_file() or {**read_json(path), "commit": record["commit"]} != record:
        write_json(path, record)


def seconds_left(searches: Sequence[Halving]) -> float:
    """The expected time of unfinished trials, from the time per pair of the method, or of all methods."""
    trials = searches[0].trials
    whole = sum(pairs * count for pairs, count in trials.rounds.items()) + trials.variations * trials.most_pairs
    pairs = [sum(size for size, _ in search.done) for search in searches]
    spent = [sum(outcome["seconds"] for outcome in search.done.values()) for search in searches]
    usual = sum(spent) / max(sum(pairs), 1)
    return float(sum(max(0, whole - n) * (s / n if n else usual) for n, s in zip(pairs, spent, strict=True)))


def try_options(trials: Trials, method: str, options: Options, parts: Parts) -> Outcome:
    """Train once and score under both protocols; an error is an outcome, too."""
    # Scoring the trial before has given torch as many threads as numba has; on a busy machine that is ten times slower.
    if (threads := os.environ.get("OMP_NUM_THREADS", "")).isdecimal():
        torch.set_num_threads(int(threads))
    started, cpu = time.monotonic(), time.process_time()
    runs, outcome = runs_of(trials, method, options, len(parts.train)), Outcome()
    try:
        fitted = method_of(runs["paper"]).fit(parts.train)
        cpu_seconds = round(time.process_time() - cpu, 2)
        for protocol, ndcg, found in score(fitted, parts, runs):
            outcome[protocol] = {d: round(scores[ndcg]["value"], 4) for d, scores in found["scores"].items()}
            relaxed = {d: round(scores["values"][ndcg], 4) for d, scores in found["relaxed"].items()}
            outcome |= {f"{protocol} relaxed": relaxed, "constant_bits": _constant_bits(found["audit"])}
    except Exception as error:
        outcome = {"error": f"{type(error).__name__}: {error}"}
        cpu_seconds = round(time.process_time() - cpu, 2)
    else:
        outcome["score"] = round(fmean(value for protocol in runs for value in outcome[protocol].values()), 5)
    return {**outcome, "cpu_seconds": cpu_seconds, "seconds": round(time.monotonic() - started, 1)}


def runs_of(trials: Trials, method: str, options: Options, pairs: int) -> dict[str, Run]:
    """The run of a trial under each protocol."""
    paper = trials.run(method, options, pairs, k=max(1, round(_DEPTH * pairs)))
    return {"paper": paper, "unseen": trials.run(method, options, pairs, protocol="unseen")}


def score(fitted: Method, parts: Parts, runs: Mapping[str, Run]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Protocol, name of its NDCG, and scores: validation pairs search the training pairs, then one another."""
    searched = replace(parts, database=parts.train, split=replace(parts.split, database=parts.split.train))
    for (protocol, run), sides in zip(runs.items(), (searched, parts), strict=True):
        yield protocol, f"ndcg@{run.ranks[0]}", score_codes(fitted, sides, Stopwatch(), run)


def _constant_bits(audits: Mapping[str, Mapping[str, Any]]) -> int:
    return max(len(audit["dead"]) + len(audit["nearly_constant"]) for audit in audits.values())


def read_records(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """All records by method."""
    return {path.stem: read_json(path) for path in sorted(folder.glob("*.json"))}


def write_chosen(folder: Path, path: Path = CHOSEN) -> None:
    """Write the options chosen in complete records to the file that grids read; those of other methods stay."""
    chosen = read_mapping(path) if path.is_file() else {}
    chosen |= {name: record["chosen"] for name, record in read_records(folder).items() if record["chosen"] is not None}
    heading = '# Options chosen on validation, see trials.yaml; written by `make lab ARGS="trials --choose"`.\n'
    write_text(path, heading + yaml.safe_dump(chosen, sort_keys=True))


def trials_text(records: Mapping[str, Mapping[str, Any]]) -> str:
    """One line per method as text; for a single method, one line per trial."""
    columns = ("method", "trials", "configurations", "cpu_seconds", "score", "edges", "chosen")
    rows = [{name: record.get(name) for name in columns} for record in records.values()]
    if len(records) == 1:
        rows = next(iter(records.values()))["tried"]
    return str(pd.json_normalize(rows, max_level=0).to_string(index=False, na_rep="")) if rows else "no trials"


Choose = Annotated[bool, typer.Option(help="Write the options chosen in complete records to chosen.yaml, and stop.")]


def main(*, only: Only = "", tables: Tables = False, choose: Choose = False) -> None:
    """Carry out the missing trials of the methods whose name matches, then print what was found.

    Grids, and so the tables of pages, read chosen.yaml: with ``choose``, tables lack methods until their runs are made.
    """
    if choose:
        write_chosen(FOLDER)
    elif not tables:
        trials = read_trials(GRIDS / "trials.yaml")
        tune(trials, coco66k(trials.text), FOLDER, only=only)
    print(trials_text({name: record for name, record in read_records().items() if re.search(only, name)}))
