"""What is asked and answered over HTTP, with its limits; the OpenAPI description is made of these."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rmsh.core.types import Modality  # noqa: TC001 (pydantic reads it)
from rmsh.serve.limits import MOST_HITS, MOST_SKIPPED, MOST_TEXT, MOST_WHERE

__all__ = ["About", "Found", "FoundItem", "ItemCodes", "Label", "Options", "Parameters", "Problem", "Queried"]

Hex = Annotated[str, Field(pattern=r"^([0-9a-f]{2}){1,64}$", description="A packed code, as hexadecimal bytes.")]
Id = Annotated[str, Field(min_length=1, max_length=1_000)]


class Options(BaseModel):
    """What may be said about any search."""

    model_config = ConfigDict(extra="forbid")

    to: Modality = Field("image", description="Whether codes of pictures or of texts are searched.")
    k: int = Field(24, ge=1, le=MOST_HITS, description="How many hits.")
    skip: int = Field(0, ge=0, le=MOST_SKIPPED, description="How many of the nearest to pass over: the pages before.")
    where: str = Field("", max_length=MOST_WHERE, description="A filter, such as `label=dog and not label=cat`.")
    codes: bool = Field(False, description="Whether to tell the code of each hit.")


class Parameters(Options):
    """A search by words, from an item, or with a code; exactly one of them."""

    text: str | None = Field(None, max_length=MOST_TEXT, description="Words to search with.")
    item: Id | None = Field(None, description="The id of an item to search onward from.")
    by: Modality | None = Field(None, description="Whether the item's picture or its text is meant.")
    code: Hex | None = None
    model: str | None = Field(None, max_length=64, description="The fingerprint of the model that made the code.")

    @model_validator(mode="after")
    def _one_query(self) -> Parameters:
        if sum(given is not None for given in (self.text, self.item, self.code)) != 1:
            raise ValueError("give exactly one of text, item and code")
        if (self.code is None) != (self.model is None):
            raise ValueError("code and model belong together: give both or neither")
        if self.by is not None and self.item is None:
            raise ValueError("by belongs to item: give both, or leave it out")
        return self


class Label(BaseModel):
    """A label of an item."""

    name: str
    matches: bool = Field(description="Whether the query names it, or the item searched from has it too.")


class FoundItem(BaseModel):
    """An item that was found."""

    id: str
    distance: int = Field(description="In how many bits its code differs from the query's.")
    text: str | None
    labels: list[Label]
    has_picture: bool = Field(description="Whether `api/picture` shows one.")
    code: Hex | None = Field(description="The code that was compared, where it was asked for.")


class Queried(BaseModel):
    """The query as it was understood; code and model ask the same again without its text or picture."""

    kind: Literal["text", "picture", "item", "code"]
    code: Hex
    model: str
    bits: int


class Found(BaseModel):
    """A page of hits, nearest first."""

    query: Queried
    to: Modality
    skip: int
    more: bool = Field(description="Whether there are hits after these.")
    hits: list[FoundItem]


class ItemCodes(BaseModel):
    """An item with its codes."""

    id: str
    text: str | None
    labels: list[str]
    has_picture: bool
    bits: int
    image_code: Hex | None
    text_code: Hex | None


class About(BaseModel):
    """What is served."""

    name: str
    items: int
    bits: int
    model: str = Field(description="The fingerprint of the model.")
    method: str
    takes: list[Modality] = Field(description="What a raw query may be: the model has an encoder for it.")
    credit: str = Field(description="Whom to thank for the pictures; empty where nobody is named.")
    most_upload: int = Field(description="Bytes of a picture.")
    most_text: int = Field(description="Characters of a text.")


class Problem(BaseModel):
    """Why a request was refused, in one sentence."""

    error: str
