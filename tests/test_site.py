"""The documentation site: it builds without a broken link, loads nothing from elsewhere, and its notebooks run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Literal

import pytest
from playwright.sync_api import sync_playwright

from rmsh.cli.main import COMMANDS, GROUPS

PROJECT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((PROJECT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a link or an anchor that leads nowhere is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture
def pages() -> ModuleType:
    """tools/site_pages.py."""
    spec = importlib.util.spec_from_file_location("site_pages", PROJECT / "tools" / "site_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_site_loads_nothing_from_other_servers(site: Path) -> None:
    loaded = re.compile(
        r"""<(?:script|img|iframe|source)[^>]*\ssrc="?(?:https?:)?//|<link[^>]*\shref="?(?:https?:)?//"""
    )
    assert [page for page in site.rglob("*.html") if loaded.search(page.read_text(encoding="utf-8"))] == []
    styles = [style.read_text(encoding="utf-8") for style in site.rglob("*.css")]
    assert not any(re.search(r"""url\(["']?(?:https?:)?//|@import""", style) for style in styles)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_phone_and_ask_no_other_server(site: Path, scheme: Literal["light", "dark"]) -> None:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium on this machine; on Debian, apt-get install chromium brings it")
    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
        page.on("request", lambda sent: asked.append(sent.url))
        for name in ("index", "tutorials/builder", "results/methods", "reference/cli", "reference/python"):
            page.goto((site / f"{name}.html").as_uri(), wait_until="networkidle")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
        browser.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.slow
def test_pages_lead_to_each_other_and_the_reference_has_every_command_and_route(site: Path) -> None:
    commands = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    named = [f"rmsh-{verb}" for verb in COMMANDS] + [f"rmsh-{name}-{verb}" for name in GROUPS for verb in GROUPS[name]]
    assert [name for name in named if f'id="{name}"' not in commands] == []
    home = (site / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{page}.html"' in home for page in ("tutorials/builder", "explanation/nest"))
    routes = (site / "reference" / "http.html").read_text(encoding="utf-8")
    assert 'id="get-apisearch"' in routes
    assert "<code>minus_item</code>" in routes


@pytest.mark.slow
def test_every_page_has_a_title_of_its_own(site: Path) -> None:
    titles = [
        re.findall(r"<h1[^>]*>(.*?)<", page.read_text("utf-8"))
        for page in site.rglob("*.html")
        if page.name != "404.html"
    ]
    assert all(len(title) == 1 for title in titles)
    assert len({title[0] for title in titles}) == len(titles) > 30


def test_links_out_of_the_documentation_become_names_of_files(pages: ModuleType) -> None:
    def on_page(link: str, origin: str, here: str) -> str:
        return str(pages._LINK.sub(lambda match: pages._inside(match, origin, here), link))

    assert on_page("[card](../../src/card.md)", "docs/howto/a.md", "howto/a.md") == "card (`src/card.md`)"
    assert on_page("[x](../../CHANGELOG.md#y)", "docs/howto/a.md", "howto/a.md") == "[x](../project/changelog.md#y)"
    assert on_page("[x](docs/howto/a.md)", "CONTRIBUTING.md", "project/contributing.md") == "[x](../howto/a.md)"
    assert on_page("[x](../notebooks/n.ipynb)", "docs/howto/a.md", "howto/a.md") == "[x](../notebooks/n.md)"
    assert on_page("[x](https://a.org/b.md)", "docs/a.md", "a.md") == "[x](https://a.org/b.md)"


def test_a_notebook_becomes_a_page_of_text_and_code(pages: ModuleType) -> None:
    cells = [{"cell_type": "markdown", "source": ["# Title\n", "Text."]}, {"cell_type": "code", "source": ["x = 1"]}]
    page = pages.describe_notebook({"cells": cells}, "n.ipynb")
    assert page == "# Title\n\n[Download this notebook](n.ipynb)\nText.\n\n```python\nx = 1\n```\n"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(notebook: Path) -> None:
    cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert cells
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(notebook: Path, tmp_path: Path) -> None:
    program = (
        "import sys, nbformat; from nbclient import NotebookClient\n"
        "NotebookClient(nbformat.read(sys.argv[1], as_version=4), timeout=600, kernel_name='python3').execute()\n"
    )
    path = os.pathsep.join([str(PROJECT), str(PROJECT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", program, str(notebook)]
    ran = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
