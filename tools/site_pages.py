"""What mkdocs cannot read from docs/: pages generated when the site is built, and links that leave docs/.

mkdocs.yml names this file as a hook. The command line is described by typer, the HTTP API by FastAPI, so neither page
can be out of date. Notebooks become pages of text and code, and some files of the project's folder pages of their own.
"""

from __future__ import annotations

import inspect
import json
import os.path
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import typer.main
from mkdocs.structure.files import File

from rmsh.cli.main import app
from rmsh.serve.app import create_app
from rmsh.serve.security import Access

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

PROJECT = Path(__file__).resolve().parent.parent
COPIES = {  # pages, and the files whose text they have
    "project/changelog.md": "CHANGELOG.md",
    "project/contributing.md": "CONTRIBUTING.md",
    "explanation/discrepancies.md": "DISCREPANCIES.md",
}
PAGE_OF = {source: page for page, source in COPIES.items()} | {"README.md": "index.md"}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_BETWEEN = re.compile(r"(?<=\d) ([±/] )(?=\d)")  # in pairs of scores, of which each stays on one line
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {target: (PROJECT / source).read_text(encoding="utf-8") for target, source in COPIES.items()}
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            notebook = json.loads(file.content_string)
            pages[file.src_uri.replace(".ipynb", ".md")] = describe_notebook(notebook, Path(file.src_uri).name)
    for uri, text in pages.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Fill in generated parts, let links to copied files lead to their pages, and name other files without a link."""
    here = page.file.src_uri
    for name, describe in GENERATED.items():
        mark = f"<!-- generated: {name} -->"
        markdown = markdown.replace(mark, describe()) if mark in markdown else markdown
    origin = COPIES.get(here, f"docs/{here}")
    parts = _FENCE.split(markdown.replace("\n```sh runs\n", "\n```sh\n"))
    parts[::2] = [_BETWEEN.sub("\u00a0\\1", part).replace("± ", "±\u00a0") for part in parts[::2]]
    parts[::2] = [_LINK.sub(lambda match: _inside(match, origin, here), part) for part in parts[::2]]
    return "".join(parts)


def _inside(match: re.Match[str], origin: str, here: str) -> str:
    """A link of the file `origin` as it is on the page `here`."""
    picture, text, link = match.groups()
    if re.match(r"[a-z]+:|#", link):
        return match[0]
    path, _, anchor = link.partition("#")
    target = os.path.normpath(os.path.join(os.path.dirname(origin), path))
    uri = PAGE_OF.get(target, target.removeprefix("docs/") if target.startswith("docs/") else None)
    if uri and uri.endswith(".ipynb") and not here.startswith("notebooks/"):
        uri = uri.replace(".ipynb", ".md")
    if uri is None:
        return text if target in text else f"{text} (`{target}`)"
    relative = os.path.relpath(uri, os.path.dirname(here) or ".")
    return f"{picture}[{text}]({relative}{'#' + anchor if anchor else ''})"


def describe_commands() -> str:
    """Every command with its help, arguments and options."""
    lines = []
    for name, command in _commands(typer.main.get_command(app), "rmsh"):
        text = inspect.cleandoc(command.help or "").replace("\b\n", "")
        before, _, example = text.partition("Example:\n")
        lines += [f"## {name}", "", before.strip(), ""]
        if example:
            lines += ["```sh", inspect.cleandoc(example), "```", ""]
        lines += ["| argument or option | meaning | default |", "|---|---|---|", *map(_parameter, command.params), ""]
    return "\n".join(lines)


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for verb, inner in command.commands.items():
        yield from _commands(inner, f"{name} {verb}")


def _parameter(part: Any) -> str:
    names = part.metavar or part.name.upper()
    if part.param_type_name == "option":
        value = "" if part.is_flag else f" {part.metavar or part.type.name.upper()}"
        names = ", ".join((*part.opts, *part.secondary_opts)) + value
    default = "required" if part.required else "" if part.default in (None, False, ()) else f"`{part.default}`"
    return f"| `{_cell(names)}` | {_cell(getattr(part, 'help', None) or '')} | {_cell(default)} |"


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def describe_routes() -> str:
    """Every route of the HTTP API with its parameters."""
    unused: Any = SimpleNamespace(overview=None, metrics=None)  # a description needs no library
    app: Any = create_app(unused, Access())
    while not hasattr(app, "openapi"):  # inside its middleware
        app = app._app
    schema = app.openapi()
    lines = []
    for path, methods in schema["paths"].items():
        for method, route in methods.items():
            lines += [f"### {method.upper()} {path}", "", route.get("description", ""), ""]
            fields = [*map(_field, route.get("parameters", ())), *_form(schema, route)]
            if fields:
                lines += ["| parameter | meaning | default |", "|---|---|---|", *fields, ""]
    return "\n".join(lines)


def _field(field: Mapping[str, Any]) -> str:
    schema = field.get("schema", field)
    meaning = _cell(field.get("description") or schema.get("description") or "")
    allowed = next((kind["enum"] for kind in (schema, *schema.get("anyOf", ())) if "enum" in kind), ())
    meaning += (" One of " + ", ".join(f"`{value}`" for value in allowed) + ".") if allowed else ""
    default = "required" if field.get("required") else schema.get("default")
    return f"| `{field['name']}` | {meaning.strip()} | {'' if default in (None, []) else default} |"


def _form(schema: Mapping[str, Any], route: Mapping[str, Any]) -> Iterator[str]:
    for body in route.get("requestBody", {}).get("content", {}).values():
        name = body.get("schema", {}).get("$ref", "").rpartition("/")[2]
        form = schema["components"]["schemas"].get(name, {})
        for field, described in form.get("properties", {}).items():
            yield _field({"name": field, "required": field in form.get("required", ()), **described})


def describe_notebook(notebook: Mapping[str, Any], name: str) -> str:
    """A notebook as a page: its text, and its code without outputs."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f"{title}\n\n[Download this notebook]({name})\n{rest}\n"


GENERATED = {"commands": describe_commands, "routes": describe_routes}  # what stands for a comment with this name
