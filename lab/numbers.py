"""Write the numbers of README.md and docs/ from result files, or check that they are up to date.

A page marks a block of generated text:

    <!-- numbers: table-1 -->
    ...
    <!-- end -->

`python -m lab.numbers` replaces every block by what the files in lab/results give. `python -m lab.numbers --check`
changes nothing and exits with 1 if a block differs.

A result that the current code would not give is not left out, because a table without it would say less, but never
stands as current: the block ends with a sentence that names its method. Such a result was made with another version of
its method, with other code where the hash of the code is known, or with other defaults, and is not carried over
(lab/carried_over.py). When code changes, blocks differ until they are written again with that sentence.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lab.carried_over import earlier
from lab.data import PROJECT
from lab.paper.published import method_title
from lab.sources import Sources
from lab.tables import BLOCKS
from rmsh.compare.run import Run
from rmsh.core.files import write_text

if TYPE_CHECKING:
    from rmsh.compare.result import Result

_BLOCK = re.compile(r"(<!-- numbers: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def pages(project: Path = PROJECT) -> list[Path]:
    """The pages that may contain blocks."""
    return [project / "README.md", *sorted((project / "docs").rglob("*.md"))]


def generated(page: str, sources: Sources) -> str:
    """The text of a page with every block replaced by what the results give."""

    def block(match: re.Match[str]) -> str:
        if match[2] not in BLOCKS:
            raise SystemExit(f"There is no block of numbers called {match[2]!r}; there are {', '.join(BLOCKS)}.")
        used, failed = len(sources.used), len(sources.failed)
        content = BLOCKS[match[2]](sources)
        return f"{match[1]}{content}{remarks(sources.used[used:], sources.failed[failed:])}\n{match[4]}"

    return _BLOCK.sub(block, page)


def remarks(used: Sequence[Result], failed: Sequence[Result] = ()) -> str:
    """Sentences about results that the current code would not give, and about failed runs; empty if there are none."""
    old = [f"{method_title(name)} ({some} of {of} runs)" for name, (some, of) in earlier(used).items()]
    lost = [str(Run(**result["run"]).path) for result in failed]
    sentences = [f"Made with earlier code or defaults of the method: {', '.join(old)}."] if old else []
    sentences += [f"Failed: {', '.join(lost)}."] if lost else []
    return "".join(f"\n\n{sentence}" for sentence in sentences)


def problems(files: Sequence[Path]) -> list[str]:
    """What is wrong with the numbers of some pages, one sentence each; empty if they are up to date."""
    found, sources, shown = [], Sources(), set()
    for path in files:
        text = path.read_text(encoding="utf-8")
        shown |= {match[2] for match in _BLOCK.finditer(text)}
        if generated(text, sources) != text:
            found.append(f"{path.name} differs from the results; run `python -m lab.numbers`.")
    found += [f"No page shows the block {name!r}; add it, or delete it." for name in BLOCKS.keys() - shown]
    return found


def main() -> None:
    """Write the blocks, or check them."""
    parser = argparse.ArgumentParser(prog="python -m lab.numbers", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a page differs from the results")
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
