"""The wheel as a user gets it: what is in it, alone in a new environment, with plug-ins, and the way to the first page.

Nothing here sees the checkout: programs run in another folder, without PYTHONPATH.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from PIL import Image, ImageDraw

PROJECT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.slow

PLUGIN = {
    "pyproject.toml": """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "tiny-rmsh"
version = "1"
[project.entry-points."rmsh.encoders"]
tiny-colours = "tiny_rmsh:Colours"
tiny-words = "tiny_rmsh:Words"
[project.entry-points."rmsh.methods"]
tiny-sign = "tiny_rmsh:Sign"
tiny-broken = "tiny_rmsh:Missing"
nest = "tiny_rmsh:Sign"
""",
    "tiny_rmsh.py": '''
import numpy as np
from rmsh.core.types import MODALITIES
from rmsh.features.images import ImageEncoder, read_pixels
from rmsh.hash_function import HashFunction, Layer
from rmsh.methods.base import Method


class Fixed:
    dim, fingerprint = 3, "1"

    @classmethod
    def prepare(cls, items):
        return cls()

    def describe(self):
        return {"name": self.name, "fingerprint": self.fingerprint}

    @classmethod
    def restore(cls, description):
        return cls()


class Colours(Fixed, ImageEncoder):
    name = "tiny-colours"

    def _read(self, image):
        return 1 - read_pixels(image).mean(axis=(0, 1), dtype=np.float32) / 255

    def _embed(self, images):
        return np.stack(images)


class Words(Fixed):
    """What white lacks to become the colour that a text names."""

    name, modality = "tiny-words", "text"

    def encode(self, items, *, on_progress=None):
        return np.array([[colour not in text for colour in ("red", "green", "blue")] for text in items], np.float32)


class Sign(Method):
    name, summary, reference, supervised = "tiny-sign", "signs of centred features", "none", False

    def _learn(self, pairs, run, facts):
        weights = np.tile(np.eye(3, dtype=np.float32), 16)[:, : self.config.bits]
        means = [pairs.features(modality).mean(axis=0) for modality in MODALITIES]
        return {m: HashFunction((Layer(weights, -mean @ weights, "none"),)) for m, mean in zip(MODALITIES, means)}
''',
}


def _run(*command: str | Path, cwd: Path, code: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RMSH_"))}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=environment | variables, capture_output=True, text=True)
    assert done.returncode == code, f"{' '.join(words)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def _program(venv: Path, name: str) -> Path:
    return venv / ("Scripts" if os.name == "nt" else "bin") / name


def _pip(venv: Path, *words: str | Path) -> None:
    constraints = PROJECT / "constraints.txt"
    _run(_program(venv, "python"), "-m", "pip", "install", "-q", "-c", constraints, *words, cwd=venv)


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that can build packages."""
    venv = tmp_path_factory.mktemp("builder") / "venv"
    _run(sys.executable, "-m", "venv", venv, cwd=venv.parent)
    _pip(venv, "hatchling")
    return venv


@pytest.fixture(scope="module")
def packages(builder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist."""
    out = tmp_path_factory.mktemp("packages")
    _run(_program(builder, "python"), "-m", "hatchling", "build", "-d", out, cwd=PROJECT)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def installed(packages: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel alone."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    _run(sys.executable, "-m", "venv", venv, cwd=venv.parent)
    _pip(venv, packages[0])
    return venv


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Discs of three colours with captions."""
    folder = tmp_path_factory.mktemp("data") / "pictures"
    folder.mkdir()
    for number in range(12):
        colour, picture = ("red", "green", "blue")[number % 3], Image.new("RGB", (96, 96), "white")
        ImageDraw.Draw(picture).ellipse((8, 8, 60 + number, 70), fill="lime" if colour == "green" else colour)
        picture.save(folder / f"{colour}-{number}.png")
        (folder / f"{colour}-{number}.txt").write_text(f"a {colour} disc, number {number}")
    return folder


def test_the_wheel_has_the_product_and_nothing_else(packages: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(packages[0]) as wheel:
        names = {name: wheel.getinfo(name).file_size for name in wheel.namelist()}
        metadata = wheel.read(next(name for name in names if name.endswith("METADATA"))).decode()
    about = packages[0].name.rpartition("-py3")[0] + ".dist-info"
    assert {name.partition("/")[0] for name in names} == {"rmsh", about}
    assert names["rmsh/models/coco/model.safetensors"] > 5_000_000
    assert {"rmsh/models/coco/card.md", "rmsh/py.typed", "rmsh/serve/static/index.html"} <= names.keys()
    assert f"{about}/licenses/LICENSE" in names
    assert f"{about}/licenses/THIRD_PARTY.md" in names
    sources = {str(path.relative_to(PROJECT / "src")) for path in (PROJECT / "src/rmsh").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == sources
    assert "License-Expression: Apache-2.0" in metadata
    for path in names:
        assert "__pycache__" not in path


def test_the_sdist_can_be_tested_and_built_again(packages: tuple[Path, Path]) -> None:
    with tarfile.open(packages[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in (
        "pyproject.toml",
        "LICENSE",
        "THIRD_PARTY.md",
        "constraints.txt",
        "tools/tasks.py",
        "tests/conftest.py",
    ):
        assert needed in names
    assert "lab/demo.py" in names
    assert not any(name.startswith(("lab/results", ".git/", ".venv", ".ci")) for name in names)


def test_the_wheel_alone_helps_and_names_the_missing_extra(installed: Path, pictures: Path, tmp_path: Path) -> None:
    rmsh = _program(installed, "rmsh")
    assert "Build a searchable library" in _run(rmsh, "--help", cwd=tmp_path).stdout
    assert json.loads(_run(rmsh, "--version", "--json", cwd=tmp_path).stdout).keys() == {"rmsh", "python"}
    refused = _run(rmsh, "build", pictures, "--out", tmp_path / "library", cwd=tmp_path, code=2)
    assert refused.stdout == ""
    assert refused.stderr.splitlines()[-1].startswith("rmsh: ")
    assert "rmsh[train" in refused.stderr
    assert "Traceback" not in refused.stderr
    for command in ("serve", "search"):
        told = _run(rmsh, command, tmp_path / "none", *(["red"] if command == "search" else []), cwd=tmp_path, code=2)
        assert len(told.stderr.splitlines()) == 1
    _run(rmsh, "doctor", "--quiet", cwd=tmp_path)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(installed: Path, shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    path = {"PATH": f"{_program(installed, 'rmsh').parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    script = _run("rmsh", cwd=tmp_path, **path, _RMSH_COMPLETE=f"source_{shell}").stdout
    (tmp_path / "script").write_text(script)
    words = {
        "bash": "source ./script; COMP_WORDS=(rmsh library exp); COMP_CWORD=2; _rmsh_completion rmsh exp library; "
        'echo "${COMPREPLY[@]}"',
        "fish": "source ./script; complete -C 'rmsh library exp'",
        "zsh": "autoload -U compinit; compinit -u -D; source ./script; test $_comps[rmsh] = _rmsh_completion && "
        "_RMSH_COMPLETE=complete_zsh _TYPER_COMPLETE_ARGS='rmsh library exp' rmsh",
    }
    assert "export" in _run(program, "-c", words[shell], cwd=tmp_path, **path).stdout


def test_another_package_adds_encoders_and_methods(
    builder: Path, installed: Path, pictures: Path, tmp_path: Path
) -> None:
    for name, content in PLUGIN.items():
        (tmp_path / name).write_text(content)
    _run(_program(builder, "python"), "-m", "hatchling", "build", "-t", "wheel", cwd=tmp_path)
    rmsh, library = _program(installed, "rmsh"), tmp_path / "library"
    _pip(installed, "--no-deps", *(tmp_path / "dist").glob("*.whl"))
    try:
        listed = json.loads(_run(rmsh, "methods", "--json", cwd=tmp_path).stdout)
        assert "tiny-sign" in [method["name"] for method in listed["methods"]]
        assert any("'tiny-broken' of the package tiny-rmsh cannot be loaded" in one for one in listed["missing"])
        assert any("'nest' requires torch" in one for one in listed["missing"])  # built-in names cannot be replaced
        encoders = ("--image-encoder", "tiny-colours", "--text-encoder", "tiny-words")
        how = ("--method", "tiny-sign", "--bits", "24", "--learn-from", "pairs", *encoders)
        _run(rmsh, "build", pictures, "--out", library, *how, cwd=tmp_path)
        hits = json.loads(_run(rmsh, "search", library, "blue", "-k", "4", "--json", cwd=tmp_path).stdout)["hits"]
        assert [hit["id"].partition("-")[0] for hit in hits] == ["blue"] * 4
        refused = _run(rmsh, "build", pictures, "--out", library, "--method", "tiny-broken", cwd=tmp_path, code=2)
        assert "update or uninstall that package" in refused.stderr
    finally:
        _run(_program(installed, "python"), "-m", "pip", "uninstall", "-q", "-y", "tiny-rmsh", cwd=tmp_path)


def test_two_commands_lead_from_the_wheel_to_the_first_page(
    packages: tuple[Path, Path], installed: Path, pictures: Path, tmp_path: Path
) -> None:
    _pip(installed, f"rmsh[encoders,serve,train] @ {packages[0].as_uri()}")
    rmsh = _program(installed, "rmsh")
    built = _run(rmsh, "build", pictures, "--out", "library", cwd=tmp_path)
    assert "12 items" in built.stdout
    with subprocess.Popen(
        [rmsh, "serve", "library", "--port", "0", "--json"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            url = json.loads(server.stdout.readline())["url"]
            assert b"<title>" in _fetch(url)
            hits = json.loads(_fetch(f"{url}api/search?text=a+red+disc"))["hits"]
            assert {hit["id"] for hit in hits} <= {path.name for path in pictures.glob("*.png")}
            assert len(hits) >= 10
            assert _fetch(f"{url}api/picture?id={hits[0]['id']}").startswith(b"\xff\xd8")  # JPEG
        finally:
            server.kill()


def _fetch(url: str) -> bytes:
    with urlopen(url) as answer:  # noqa: S310
        content: bytes = answer.read()
        return content


@pytest.mark.parametrize(
    ("tool", "words"), [("uv", ("tool", "install", "--python", sys.executable)), ("pipx", ("install", "-q"))]
)
def test_tools_that_install_programs_install_it(
    tool: str, words: Sequence[str], packages: tuple[Path, Path], tmp_path: Path
) -> None:
    program = shutil.which(tool)
    if program is None:
        pytest.skip(f"{tool} is not installed")
    folders = {"UV_TOOL_DIR": "tools", "UV_TOOL_BIN_DIR": "bin", "PIPX_HOME": "tools", "PIPX_BIN_DIR": "bin"}
    where: dict[str, Any] = {name: str(tmp_path / folder) for name, folder in folders.items()}
    _run(program, *words, packages[0], cwd=tmp_path, **where)
    rmsh = tmp_path / "bin" / "rmsh"
    assert "Build a searchable library" in _run(rmsh, "--help", cwd=tmp_path).stdout
    _run(rmsh, "library", "info", "none", cwd=tmp_path, code=2)
