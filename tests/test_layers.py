"""The architecture: which package may import which, and rules for every source file."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "rmsh"
FILES = sorted(SOURCE.rglob("*.py"))

# A package imports only from packages above it, and from itself.
LAYERS = [
    "core",
    "codes",
    "hash_function",
    "model",
    "models",
    "data",
    "coding",
    "metrics",
    "codes_file",
    "retrieval_set",
    "features",
    "training",
    "methods",
    "index",
    "library",
    "pipeline",
    "shards",
    "milvus",
    "search",
    "serve",
    "builder",
    "compare",
    "cli",
    "__main__",
]

_LAB_MODULE = re.compile(r"lab(\.\w+)*(:\w+)?")  # "lab.paper", or "lab.paper.page:write" as in a registry

Problems = Iterator[tuple[int, str]]  # line, what is wrong


def _layer(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def _imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every imported name in full, with its line: also inside functions and under TYPE_CHECKING."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def imports_from_below(tree: ast.Module, layer: str) -> Problems:
    """Imports of rmsh that go against the order of LAYERS."""
    allowed = {*LAYERS[: LAYERS.index(layer) + 1], "__version__"}
    for line, name in _imported(tree):
        package, _, rest = name.partition(".")
        if package == "rmsh" and rest.split(".")[0] not in allowed:
            yield line, f"{layer} imports {name}, which is not above it in LAYERS"


def imports_of_the_lab(tree: ast.Module, _layer: str) -> Problems:
    """Imports of ``lab``, which is not in the wheel: statements anywhere, and names passed to an import function."""
    for line, name in _imported(tree):
        if name.split(".")[0] == "lab":
            yield line, f"the product imports {name}; the lab imports the product, never the reverse"
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _LAB_MODULE.fullmatch(node.value):
            yield node.lineno, f"{node.value!r} names a module of the lab"


def forbidden_imports(tree: ast.Module, _layer: str) -> Problems:
    """Formats that run code when they are read."""
    for line, name in _imported(tree):
        if name.split(".")[0] in {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}:
            yield line, f"{name} reads files that run code; write safetensors or JSON"


def unsafe_calls(tree: ast.Module, layer: str) -> Problems:
    """Loading that unpickles, and printing from library code."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name, keywords = ast.unparse(node.func), {word.arg: ast.unparse(word.value) for word in node.keywords}
        if name == "torch.load" and keywords.get("weights_only") != "True":
            yield node.lineno, "torch.load unpickles without weights_only=True"
        if name in {"np.load", "numpy.load"} and keywords.get("allow_pickle") == "True":
            yield node.lineno, "np.load unpickles with allow_pickle=True"
        if name == "print" and layer != "cli":
            yield node.lineno, "library code never prints; return the text, or report progress"


def assert_statements(tree: ast.Module, _layer: str) -> Problems:
    """Checks that vanish under python -O."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield node.lineno, "assert does not check input; raise an error of rmsh.core.errors"


def missing_docstring(tree: ast.Module, _layer: str) -> Problems:
    """A file without a docstring that states its purpose."""
    if not ast.get_docstring(tree):
        yield 1, "the file does not start with a sentence about its purpose"


RULES = [imports_from_below, imports_of_the_lab, forbidden_imports, unsafe_calls, assert_statements, missing_docstring]


def test_every_source_file_has_a_layer() -> None:
    unknown = {_layer(path) for path in FILES} - {*LAYERS, "__init__"}
    assert not unknown, f"{sorted(unknown)} is not in LAYERS of {__file__}; add it there, below everything it imports"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_source_file_breaks_a_rule(rule: Callable[[ast.Module, str], Problems]) -> None:
    broken = [
        f"{path.relative_to(SOURCE.parent.parent)}:{line}: {problem}"
        for path in FILES
        if _layer(path) in LAYERS or rule is not imports_from_below
        for line, problem in rule(ast.parse(path.read_text(encoding="utf-8")), _layer(path))
    ]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (imports_from_below, "def f():\n    from rmsh.cli import main"),
        (imports_from_below, "if TYPE_CHECKING:\n    from rmsh import cli"),
        (imports_from_below, "import numpy\nimport rmsh.cli.main"),
        (imports_from_below, "\nfrom rmsh import Codes"),
        (imports_of_the_lab, "def f():\n    from lab.paper import report"),
        (imports_of_the_lab, "\nimport lab"),
        (imports_of_the_lab, "\nimportlib.import_module('lab.tuning')"),
        (imports_of_the_lab, "\nREGISTRY = {'report': 'lab.paper.report:write'}"),
        (forbidden_imports, "\nfrom pickle import loads"),
        (unsafe_calls, "\ntorch.load(path, map_location='cpu')"),
        (unsafe_calls, "\nnp.load(path, allow_pickle=True)"),
        (unsafe_calls, "\nprint(1)"),
        (assert_statements, "def f():\n    assert x"),
    ],
)
def test_a_rule_finds_what_it_forbids(rule: Callable[[ast.Module, str], Problems], source: str) -> None:
    assert [line for line, _ in rule(ast.parse(source), "codes")] == [2]


def test_what_is_allowed_is_not_reported() -> None:
    source = (
        '"""Job."""\nfrom rmsh import __version__\nfrom rmsh.core.errors import X\ntorch.load(p, weights_only=True)'
    )
    assert not [problem for rule in RULES for problem in rule(ast.parse(source), "codes")]
    assert not list(unsafe_calls(ast.parse("print(1)"), "cli"))


def test_a_file_without_a_docstring_is_reported() -> None:
    assert list(missing_docstring(ast.parse("x = 1"), "codes"))
