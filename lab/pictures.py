"""Pictures of the documentation, made with the program itself: its page over drawn scenes, and a figure of scores.

`make demo` builds the library of scenes; the search page is photographed in Chromium.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lab.data import PROJECT
from rmsh.compare.run import Run
from rmsh.compare.runner import make_runs
from rmsh.core.errors import InputError
from rmsh.core.files import cache_folder

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER = PROJECT / "docs" / "images"
COLOURS = 200  # of a picture: icons on plain ground need no more, and the file is a third as large
DESKTOP, PHONE = (1120, 780), (390, 760)
# Name of a picture: address below that of the page, size, colour scheme, and what is clicked first.
SHOTS: dict[str, tuple[str, tuple[int, int], Literal["light", "dark"], str]] = {
    "page": ("?q=a+dog+and+a+bicycle", DESKTOP, "light", ""),
    "composed": ("?q=guitar+%2B+mountain", DESKTOP, "light", ""),
    "codes": ("?q=a+dog+and+a+bicycle", DESKTOP, "light", "label:has(#codes)"),
    "phone": ("?q=stormy+weather", PHONE, "dark", ""),
}
METHODS = ("cca-itq", "scm", "cmfh", "rmsh")


def main(
    library: Annotated[Path | None, typer.Argument(help="Library of scenes (default: that of make demo).")] = None,
) -> None:
    """Write all pictures."""
    scenes = library or cache_folder() / "demo" / "library"
    if not (scenes / "manifest.json").is_file():
        raise InputError(f"There is no library in {scenes}; build it with `make demo SERVE=0`.")
    _photograph(scenes)
    draw_scores(FOLDER / "compare.png", Path(cache_folder() / "pictures"))


def _photograph(library: Path) -> None:
    from playwright.sync_api import sync_playwright

    with _served(library) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in SHOTS:
            _save(_shot(browser, url, name), FOLDER / f"{name}.png")
        _save(_report(browser, library / "report.html"), FOLDER / "report.png")
        browser.close()


@contextmanager
def _served(library: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "rmsh", "serve", str(library), "--port", "0", "--json", "--title", "Drawn scenes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None  # noqa: S101
            yield json.loads(server.stdout.readline())["url"]
        finally:
            server.terminate()


def _shot(browser: Browser, url: str, name: str) -> bytes:
    address, (width, height), scheme, clicked = SHOTS[name]
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        device_scale_factor=1.5,
        reduced_motion="reduce",
    )
    page.goto(url + address)
    page.wait_for_selector("#hits .card img")
    for image in page.locator("#hits .card img").all()[:8]:
        image.evaluate("image => image.decode()")
    if clicked:
        page.click(clicked)
        page.wait_for_selector("#hits .bits, #query-code:visible")
        page.locator("#query-code").evaluate("node => node.scrollIntoView()")
    taken = page.screenshot()
    page.close()
    return taken


def _report(browser: Browser, file: Path) -> bytes:
    page = browser.new_page(viewport={"width": 1000, "height": 900}, device_scale_factor=1.5)
    page.goto(file.resolve().as_uri())
    taken = page.screenshot()
    page.close()
    return taken


def _save(content: bytes, path: Path) -> None:
    from PIL import Image

    path.parent.mkdir(exist_ok=True)
    Image.open(io.BytesIO(content)).convert("RGB").quantize(COLOURS).save(path, optimize=True)


def draw_scores(path: Path, folder: Path) -> None:
    """Compare methods on generated pairs under both protocols, and draw NDCG by code length."""
    from matplotlib.figure import Figure

    runs = [
        Run("generated", m, bits=bits, protocol=p)
        for p in ("paper", "unseen")
        for m in METHODS
        for bits in (16, 32, 64)
    ]
    results = [done for done in make_runs(runs, folder, data={"generated": "generated:1000"}) if done is not None]
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, protocol, metric in zip(axes, ("paper", "unseen"), ("ndcg@500", "ndcg@10"), strict=True):
        scored = [result for result in results if result["run"]["protocol"] == protocol]
        for method in METHODS:
            chosen = [result for result in scored if result["run"]["method"] == method]
            lengths = [result["run"]["bits"] for result in chosen]
            axis.plot(lengths, [_mean(result, metric, "value") for result in chosen], "o-", label=method)
        axis.axhline(_mean(scored[0], metric, "chance"), color="grey", linestyle=":", label="chance")
        axis.set(title=f"{protocol}: {metric.upper()}", xlabel="bits", xticks=[16, 32, 64])
    axes[0].set_ylabel("mean of both directions")
    axes[1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    file = io.BytesIO()
    figure.savefig(file, dpi=130)
    _save(file.getvalue(), path)


def _mean(result: Any, metric: str, kind: str) -> float:
    return float(sum(result["scores"][d][metric][kind] for d in ("i2t", "t2i"))) / 2
