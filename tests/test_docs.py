"""The documentation: its Python runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import itertools
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import typer.main
import yaml

from rmsh import __version__
from rmsh.cli.main import COMMANDS, app, run
from rmsh.data.synthetic.generated import generate_pairs

PROJECT = Path(__file__).resolve().parent.parent
RUNNING = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
PAGES = sorted({*RUNNING, *PROJECT.glob("*.md")})
FENCE = re.compile(r"^```(\w*(?: runs)?)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _name(page: Path) -> str:
    return str(page.relative_to(PROJECT))


by_name = pytest.mark.parametrize("page", PAGES, ids=_name)


class Block(NamedTuple):
    """A fenced block: its language ("sh runs" where a shell block is to be run), its first line and its text."""

    language: str
    line: int
    source: str


def _blocks(text: str, *languages: str) -> Iterator[Block]:
    """The fenced blocks of some languages."""
    for match in FENCE.finditer(text):
        if match[1] in languages:
            yield Block(match[1], text.count("\n", 0, match.start(2)) + 1, match[2])


def _command_lines(text: str) -> Iterator[list[str]]:
    """The `rmsh` command lines of a shell block, with or without a prompt, up to a pipe or a redirection."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.removeprefix("$ ").startswith("rmsh "):
            words = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars="|&;<>")
            words.whitespace_split = True
            given = list(words)
            end = next((i for i, word in enumerate(given) if set(word) <= set("|&;<>")), len(given))
            yield given[1:end]


def _unknown(words: list[str], commands: Mapping[str, Any] | None = None) -> list[str]:
    """What a command line names that does not exist: its command, a verb of a family of commands, or options of it."""
    if words[:1] == ["--help"]:
        return []
    known: Mapping[str, Any] = typer.main.get_command(app).commands if commands is None else commands  # type: ignore[attr-defined]
    if words[0] not in known:
        return [words[0]]
    command = known[words[0]]
    if hasattr(command, "commands"):
        return _unknown(words[1:] or ["--help"], command.commands)
    options = {option for part in command.params for option in (*part.opts, *part.secondary_opts)}
    given = {word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-zA-Z]", word)}
    return sorted(given - options - {"--help"})


@pytest.mark.parametrize("page", RUNNING, ids=_name)
def test_blocks_run_in_their_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in _blocks(page.read_text(encoding="utf-8"), "python", "sh runs"):
        if block.language == "python":
            padded = "\n" * (block.line - 1) + block.source  # so that a traceback shows the line of the page
            exec(compile(padded, page, "exec"), namespace)  # noqa: S102
        else:
            for words in _command_lines(block.source):
                assert run(words) == 0, f"{page.name}: rmsh {shlex.join(words)}"


@pytest.mark.slow
def test_the_commands_for_features_work_from_plain_matrices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("features").mkdir()
    pairs = generate_pairs(1200)
    for name in ("images", "texts", "labels"):
        np.save(f"features/{name}.npy", np.asarray(getattr(pairs, name)))
    blocks = _blocks((PROJECT / "docs" / "reference" / "formats.md").read_text(encoding="utf-8"), "sh")
    lines = next(lines for block in blocks if "train" in str(lines := list(_command_lines(block.source))))
    assert [words[0] for words in lines] == ["bounds", "train", "encode", "evaluate"]
    for words in lines:
        assert run(words) == 0, shlex.join(words)
    assert "1,000 queries" in capsys.readouterr().out


@by_name
def test_commands_in_pages_exist(page: Path) -> None:
    for block in _blocks(page.read_text(encoding="utf-8"), "console", "sh", "sh runs", "bash"):
        for words in _command_lines(block.source):
            assert not _unknown(words), f"{page.name}: rmsh {shlex.join(words)}"


@pytest.mark.parametrize("verb", COMMANDS)
def test_the_help_of_a_command_shows_an_example_that_exists(verb: str) -> None:
    command = next(command for command in app.registered_commands if command.name == verb)
    example = (command.help or "").partition("Example:")[2]
    shown = list(_command_lines("\n".join(line.strip() for line in example.splitlines())))
    assert any(words[0] == verb for words in shown), f"the help of rmsh {verb} has no example"
    assert not [name for words in shown for name in _unknown(words)]


@by_name
def test_relative_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text(encoding="utf-8")))
    targets = [link.partition("#") for link in links if not re.match(r"[a-z]+:", link)]
    assert [path for path, _, _ in targets if not (page.parent / path).exists()] == []
    anchors = [((page.parent / path) if path else page, anchor) for path, _, anchor in targets if anchor]
    assert [(_name(file), anchor) for file, anchor in anchors if anchor not in _anchors(file)] == []


def _anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as mkdocs and forges make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.resolve().read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.strip().lower())) for heading in headings}


def test_every_dependency_is_listed_with_its_licence() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    entries = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    names = {re.split(r"[^\w-]", entry)[0].lower() for entry in entries} - {"rmsh"}
    listed = re.findall(r"^\| ([\w-]+) \|", (PROJECT / "THIRD_PARTY.md").read_text().lower(), re.MULTILINE)
    assert names - set(listed) == set()


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (__version__, "Apache-2.0")


@pytest.mark.parametrize(
    ("line", "unknown"),
    [
        ("rmsh doctor --json", []),
        ("$ rmsh doctor -q \\\n  --json | jq .", []),
        ("rmsh doctor --jsno", ["--jsno"]),
        ("rmsh docter", ["docter"]),
        ("rmsh --version", ["--version"]),
        ("rmsh library info photos --json", []),
        ("rmsh library inof photos", ["inof"]),
        ("rmsh library backup photos --ou copy", ["--ou"]),
        ("rmsh doctor --json=1 > out.txt --jsno", []),
    ],
)
def test_the_check_of_commands_finds_what_does_not_exist(line: str, unknown: list[str]) -> None:
    assert [name for words in _command_lines(line) for name in _unknown(words)] == unknown


def test_blocks_are_found_with_their_line() -> None:
    page = "# Title\n\n```python\nx = 1\n```\n\n```sh runs\nrmsh doctor\n```\n\n```sh\nls\n```\n"
    assert list(_blocks(page, "python", "sh runs")) == [("python", 4, "x = 1\n"), ("sh runs", 8, "rmsh doctor\n")]
    assert [block.line for block in _blocks(page, "sh")] == [12]
