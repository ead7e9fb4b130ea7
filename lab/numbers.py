"""Write the numbers of README.md and docs/*.md from result files, or check that they are up to date.

A page marks a block of generated text:

    <!-- numbers: table-1 -->
    ...
    <!-- end -->

`python -m lab.numbers` replaces every block by what the files in lab/results give. `python -m lab.numbers --check`
changes nothing and exits with 1 if a block differs, or if a result behind it is stale: made with another version of its
method, or with other code where the hash of the code is known.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.data import PROJECT
from lab.sources import Sources
from lab.tables import BLOCKS
from rmsh.compare.result import stale_reason
from rmsh.core.files import write_text

_BLOCK = re.compile(r"(<!-- numbers: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def pages(project: Path = PROJECT) -> list[Path]:
    """The pages that may contain blocks."""
    return [project / "README.md", *sorted((project / "docs").glob("*.md"))]


def generated(page: str, sources: Sources) -> str:
    """The text of a page with every block replaced by what the results give."""

    def block(match: re.Match[str]) -> str:
        if match[2] not in BLOCKS:
            raise SystemExit(f"There is no block of numbers called {match[2]!r}; there are {', '.join(BLOCKS)}.")
        return f"{match[1]}{BLOCKS[match[2]](sources)}\n{match[4]}"

    return _BLOCK.sub(block, page)


def problems(files: Sequence[Path]) -> list[str]:
    """What is wrong with the numbers of some pages, one sentence each; empty if they are up to date."""
    found, sources, shown = [], Sources(), set()
    for path in files:
        text = path.read_text(encoding="utf-8")
        shown |= {match[2] for match in _BLOCK.finditer(text)}
        if generated(text, sources) != text:
            found.append(f"{path.name} differs from the results; run `python -m lab.numbers`.")
    found += [f"No page shows the block {name!r}; add it, or delete it." for name in BLOCKS.keys() - shown]
    return found + sorted({reason for result in sources.used if (reason := stale_reason(result))})


def main() -> None:
    """Write the blocks, or check them."""
    parser = argparse.ArgumentParser(prog="python -m lab.numbers", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail if a page or a result is out of date"
    )
    check = parser.parse_args().check
    for path in [] if check else pages():
        text = path.read_text(encoding="utf-8")
        new = generated(text, Sources())
        if new != text:
            write_text(path, new)
            print(f"{path.relative_to(PROJECT)} was updated.")
    found = problems(pages())
    print("\n".join(found) or "All numbers are up to date.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
