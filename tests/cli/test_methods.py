"""`rmsh methods`: the whole catalogue, one method, what is missing, what is unknown."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from rmsh.cli.main import app, run
from rmsh.core.errors import MissingExtraError
from rmsh.methods import METHODS

runner = CliRunner()


def test_every_method_is_listed_with_its_line_reference_and_options() -> None:
    done = runner.invoke(app, ["methods"], env={"COLUMNS": "300"})
    assert done.exit_code == 0
    for shown in ("cca-itq", "no labels", "canonical correlation", "CVPR 2014", "cmfh: bits, seed, weight, mu"):
        assert shown in done.stdout


def test_json_has_all_methods_with_typed_options() -> None:
    pytest.importorskip("torch")
    value = json.loads(runner.invoke(app, ["methods", "--json"]).stdout)
    by_name = {entry["name"]: entry for entry in value["methods"]}
    assert list(by_name) == METHODS.names()
    assert (by_name["scm"]["supervised"], by_name["cmfh"]["supervised"]) == (True, False)
    options = {option["name"]: option for option in by_name["cmfh"]["options"]}
    assert options["database_codes"]["allowed"] == "view, unified"
    assert by_name["cmfh"]["presets"] == ["original"]


def test_one_method_shows_what_its_options_do() -> None:
    done = runner.invoke(app, ["methods", "seph"], env={"COLUMNS": "300"})
    for shown in ("CVPR 2015", "needs labels", "k-means, random", "number of training pairs, drawn at random"):
        assert shown in done.stdout


@pytest.mark.parametrize(("words", "start"), [(["methods"], "iterative"), (["methods", "rmsh"], "each standardised")])
def test_the_second_line_of_a_sentence_is_not_indented(words: list[str], start: str) -> None:
    pytest.importorskip("torch")
    shown = runner.invoke(app, words, env={"COLUMNS": "80"}).stdout
    cells = [cell for line in shown.splitlines() for cell in line.split("│")]
    assert any(cell.startswith(f" {start}") for cell in cells)
    assert not any(cell.startswith("  ") and cell.strip() for cell in cells)


def test_an_unknown_method_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["methods", "cca-it"]) == 2
    assert "no method called 'cca-it'; did you mean 'cca-itq'?" in capsys.readouterr().err


def test_a_method_whose_extra_is_missing_is_named_and_the_rest_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    from rmsh.methods import catalogue, method_class

    def without_torch(name: str) -> object:
        if name == "rmsh":
            raise MissingExtraError("The method 'rmsh' learns with torch")
        return method_class(name)

    monkeypatch.setattr(catalogue, "method_class", without_torch)
    done = runner.invoke(app, ["methods", "--json"])
    value = json.loads(done.stdout)
    assert value["missing"] == ["The method 'rmsh' learns with torch"]
    assert "rmsh" not in [entry["name"] for entry in value["methods"]]
    assert "learns with torch" in done.stderr
