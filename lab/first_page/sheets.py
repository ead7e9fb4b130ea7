"""Contact sheets of items to judge, and the grades that the judge wrote down.

The items of a query are shuffled, and a sheet shows numbered images without captions, so that the judge does not see
which ranking returned an item, or where. ``todo.txt`` has one line per query: the grades of images 1, 2, ... go after
the colon.

    giraffe | 42 71 370:
    giraffe | 42 71 370: 2 0 1
"""

from __future__ import annotations

import io
import random
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from lab.first_page.judged import GRADES, Grades, Ranking, unjudged
from lab.first_page.rankings import plain_id
from rmsh.core.errors import DataError
from rmsh.core.files import write_text

COLUMNS, ROWS, SIDE, MARGIN, TITLE = 6, 4, 192, 6, 40  # images, images, then pixels
TODO = "todo.txt"


def pool(rankings: Iterable[Ranking], judgements: Grades, *, seed: int = 0) -> dict[str, list[str]]:
    """Unjudged items among the first ten of any ranking, by query, shuffled."""
    pooled: dict[str, set[str]] = {}
    for ranking in rankings:
        for query, items in unjudged(ranking, judgements).items():
            pooled.setdefault(query, set()).update(items)
    shuffle = random.Random(seed)  # noqa: S311 - not for security
    return {query: shuffle.sample(sorted(items), len(items)) for query, items in pooled.items()}


def write_sheets(pooled: Mapping[str, Sequence[str]], folder: Path, *, images: Path) -> None:
    """Write ``001-1.png`` and so on (query, sheet), and ``todo.txt``; ``images`` is the tar file of the photographs."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {item for items in pooled.values() for item in items}
    with tarfile.open(images) as archive:
        members = {plain_id(Path(member.name).stem): member for member in archive}
        files = {item: archive.extractfile(members[item]) for item in wanted}
        photographs = {item: Image.open(io.BytesIO(file.read())) for item, file in files.items() if file}
    size = COLUMNS * ROWS
    for number, (query, items) in enumerate(pooled.items(), 1):
        for first in range(0, len(items), size):
            shown = [photographs[item] for item in items[first : first + size]]
            draw_sheet(query, shown, first=first + 1).save(folder / f"{number:03}-{first // size + 1}.png")
    write_text(folder / TODO, "".join(f"{query} | {' '.join(items)}:\n" for query, items in pooled.items()))


def draw_sheet(title: str, photographs: Sequence[Image.Image], *, first: int) -> Image.Image:
    """The photographs in rows of six with their numbers, and the query above."""
    rows = -(-len(photographs) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * (SIDE + MARGIN), TITLE + rows * (SIDE + MARGIN)), "white")
    draw = ImageDraw.Draw(sheet)
    draw.text((MARGIN, MARGIN), title, "black", font=ImageFont.load_default(26))
    for place, photograph in enumerate(photographs):
        row, column = divmod(place, COLUMNS)
        x, y = column * (SIDE + MARGIN), TITLE + row * (SIDE + MARGIN)
        sheet.paste(photograph.convert("RGB").resize((SIDE, SIDE)), (x, y))
        draw.rectangle((x, y, x + 32, y + 24), fill="yellow")
        draw.text((x + 3, y), str(first + place), "black", font=ImageFont.load_default(20))
    return sheet


def read_grades(path: Path) -> dict[str, dict[str, int]]:
    """Grades from a filled-in ``todo.txt``; lines without grades are skipped.

    Raises:
        DataError: a line has another form, another number of grades than items, or a grade other than 0, 1 and 2.
    """
    judged: dict[str, dict[str, int]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        asked, _, grades = line.rpartition(":")
        query, bar, items = asked.rpartition(" | ")
        if not bar:
            raise DataError(f"{path}, line {number}: {line!r}; write 'query | IDs: grades'.")
        if not grades.strip():
            continue
        values, ids = grades.split(), items.split()
        if len(values) != len(ids) or not set(values) <= set(map(str, GRADES)):
            raise DataError(
                f"{path}, line {number}: {len(values)} grades {grades.strip()!r} for {len(ids)} items; "
                "write one of 0, 1 and 2 for each."
            )
        judged.setdefault(query, {}).update(zip(ids, map(int, values), strict=True))
    return judged
