"""Hooks of Schemathesis: requests that are meant to be valid keep the rules that OpenAPI cannot express."""

from __future__ import annotations

import io

import schemathesis
from hypothesis import strategies
from PIL import Image


def _png(colour: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 6), colour).save(file, "PNG")
    return file.getvalue()


schemathesis.openapi.media_type("image/*", strategies.sampled_from([_png("red"), _png("blue")]))


PARTS = ("text", "item", "code")


@schemathesis.hook
def map_case(context: schemathesis.HookContext, case: schemathesis.Case) -> schemathesis.Case:
    """One part per search, because the model of these tests cannot compose, and a filter that can be parsed."""
    if case.meta is None or not case.meta.generation.mode.is_positive or case.path != "/api/search":
        return case
    query = case.query
    if query.get("where"):
        query["where"] = "label=red and not label=blue"
    (kept, *_) = [name for name in PARTS if query.get(name) and case.method == "GET"] or ["text"]
    for name in ("minus_item", "minus_code", *({*PARTS} - {kept})):
        query.pop(name, None)
    if kept != "item":
        query.pop("by", None)
    if kept != "code":
        query.pop("model", None)
    if case.method == "POST":
        query.pop("text", None)
    elif kept == "text":
        words = str(query.get("text") or "").translate({ord(sign): " " for sign in '+-"'})
        query["text"] = words if any(character.isalnum() for character in words) else "red"
    else:
        query[kept] = query[kept][:1] if isinstance(query[kept], list) else query[kept]
    if kept == "code":
        query["model"] = "0"
    return case
