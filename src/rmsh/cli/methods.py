"""List the hashing methods, or show the options of one method.

Example:
    rmsh methods
    rmsh methods cmfh
"""

from __future__ import annotations

from typing import Annotated

import typer

from rmsh.cli.console import Console, table

METHOD_COLUMNS = ("name", "needs", "what it does", "reference")
OPTION_COLUMNS = ("option", "values", "default", "what it does")


def methods(
    console: Console,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Method whose options to show.")] = None,
) -> None:
    from rmsh.methods import method_class
    from rmsh.methods.catalogue import catalogue, describe

    if name is not None:
        entry = describe(name, method_class(name))
        rows = [[o.name, o.allowed, "none" if o.default is None else o.default, o.description] for o in entry.options]
        console.result(
            entry.to_json(),
            f"{entry.name}: {entry.summary}",
            f"{entry.reference}; {'needs labels' if entry.supervised else 'needs no labels'}.",
            f"Presets: {', '.join(entry.presets) or 'none'}.",
            table("Options", OPTION_COLUMNS, rows, words=OPTION_COLUMNS),
        )
        return
    entries, missing = catalogue()
    console.note(*missing)
    rows = [[e.name, "labels" if e.supervised else "no labels", e.summary, e.reference] for e in entries]
    console.result(
        {"methods": [entry.to_json() for entry in entries], "missing": missing},
        table("Methods", METHOD_COLUMNS, rows, words=METHOD_COLUMNS),
        "Options (--bits, --seed; others as --set NAME=VALUE); `rmsh methods NAME` explains them:",
        *(f"{e.name}: {', '.join(option.name for option in e.options)}" for e in entries),
    )
