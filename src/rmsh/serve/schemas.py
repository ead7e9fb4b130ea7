"""Request and response models; the OpenAPI description is generated from them."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rmsh.core.types import Modality
from rmsh.library.duplicates import Kind as DuplicateKind  # noqa: TC001
from rmsh.serve.limits import MOST_HITS, MOST_SKIPPED, MOST_TEXT, MOST_WHERE

_MOST_PARTS = 8  # of each kind
Hex = Annotated[str, Field(pattern=r"^([0-9a-f]{2}){1,64}$", description="Packed code in hexadecimal.")]
Kind: TypeAlias = Literal["text", "picture", "item", "code", "composed"]
Id = Annotated[str, Field(min_length=1, max_length=1_000, pattern=r"^[^\x00]*[^\s\x00-\x1f][^\x00]*$")]  # not blank


class Parts(BaseModel):
    """Options of every search, and the parts of a query: words, items and codes, which are added up or subtracted."""

    model_config = ConfigDict(extra="forbid")

    to: Modality = Field("image", description="Modality of the codes to search.")
    k: int = Field(24, ge=1, le=MOST_HITS, description="Number of hits.")
    skip: int = Field(0, ge=0, le=MOST_SKIPPED, description="Number of hits to skip, for paging.")
    where: str = Field("", max_length=MOST_WHERE, description="Filter, e.g. `label=dog and not label=cat`.")
    codes: bool = Field(False, description="Include the code of each hit.")
    rank: Literal["best", "codes"] = Field("best", description="Order by everything known, or by distance alone.")
    text: str | None = Field(
        None, max_length=MOST_TEXT, description="Words to search for; a lone `+` adds and a lone `-` subtracts."
    )
    item: list[Id] = Field([], max_length=_MOST_PARTS, description="Find items similar to this ID; repeatable.")
    minus_item: list[Id] = Field([], max_length=_MOST_PARTS, description="Item to subtract; repeatable.")
    by: Modality | None = Field(None, description="Use the image or the text code of the items.")
    code: list[Hex] = Field([], max_length=_MOST_PARTS, description="Code of an earlier search; repeatable.")
    minus_code: list[Hex] = Field([], max_length=_MOST_PARTS, description="Code to subtract; repeatable.")
    model: str | None = Field(None, max_length=64, description="Fingerprint of the model that made the codes.")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if bool(self.code or self.minus_code) != (self.model is not None):
            raise ValueError("code and model must be given together")
        if self.by is not None and not (self.item or self.minus_item):
            raise ValueError("by requires item")
        if self.text is not None and sum(word in ("+", "-") for word in self.text.split()) > _MOST_PARTS:
            raise ValueError(f"text may have at most {_MOST_PARTS} lone + or -")
        return self


class Parameters(Parts):
    """A search without an upload."""

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.text is None and not self.item and not self.code:
            raise ValueError("give text, item or code")
        return self


class Label(BaseModel):
    """A label of an item."""

    name: str
    matches: bool = Field(description="Whether the query mentions it, or the query item has it too.")


class Matched(BaseModel):
    """Why an item was found."""

    score: float = Field(description="Orders the hits; 0 for an unrelated item.")
    image: float | None = Field(description="Similarity of its image, -1 to 1.")
    caption: float | None = Field(description="Similarity of its text, -1 to 1.")
    words: list[str] = Field(description="Words of the query in its text, labels or file name.")
    labels: list[str] = Field(description="Its labels that the query names.")
    weak: bool = Field(description="Whether unrelated items reach this score.")


class FoundItem(BaseModel):
    """A hit."""

    id: str
    distance: int = Field(description="Number of bits that differ from the query.")
    text: str | None
    labels: list[Label]
    has_picture: bool = Field(description="Whether `/api/picture` returns an image.")
    code: Hex | None = Field(description="The code that was compared, if requested.")
    match: Matched | None = Field(description="None if hits are ordered by distance.")


class Queried(BaseModel):
    """The query; code and model repeat it without its text or image."""

    kind: Kind
    code: Hex
    model: str
    bits: int


class Found(BaseModel):
    """A page of hits, best first."""

    query: Queried
    to: Modality
    skip: int
    more: bool = Field(description="Whether more hits follow.")
    hits: list[FoundItem]
    hints: list[str] = Field(description="Sentences about labels of the filter that no item has; mostly empty.")


class ItemCodes(BaseModel):
    """An item with its codes."""

    id: str
    text: str | None
    labels: list[str]
    has_picture: bool
    bits: int
    image_code: Hex | None
    text_code: Hex | None


class Count(BaseModel):
    """A value, and the number of items that have it."""

    value: str
    count: int


class Facet(BaseModel):
    """Values that a filter `name=value` finds, the most frequent first."""

    name: Literal["label", "camera", "keyword", "rating"]
    values: list[Count]
    more: bool = Field(description="Whether there are more values.")


class Facets(BaseModel):
    """What results can be narrowed down by; counts refer to the whole library."""

    photos: int = Field(description="Number of image files whose facts are known.")
    facets: list[Facet] = Field(description="Only those that some item has.")
    months: list[Count] = Field(description="Months in which images were taken, such as 2024-06, in order.")


class Grouping(BaseModel):
    """Which groups of duplicates to list."""

    model_config = ConfigDict(extra="forbid")

    kind: DuplicateKind | None = Field(None, description="Only groups of this kind.")
    k: int = Field(24, ge=1, le=MOST_HITS, description="Number of groups.")
    skip: int = Field(0, ge=0, le=MOST_SKIPPED, description="Number of groups to skip, for paging.")


class Duplicate(BaseModel):
    """An image of a group."""

    id: str
    text: str | None
    width: int
    height: int
    bytes: int
    date: str | None = Field(description="When it was taken, such as 2024-06-30T17:05:00.")


class DuplicateGroup(BaseModel):
    """Images that belong together, the best one first."""

    kind: DuplicateKind
    count: int = Field(description="Number of images; those listed may be fewer.")
    images: list[Duplicate]


class Duplicates(BaseModel):
    """A page of groups, those with most images first."""

    counts: dict[DuplicateKind, int] = Field(description="Number of groups of each kind.")
    more: bool = Field(description="Whether more groups follow.")
    groups: list[DuplicateGroup]


class About(BaseModel):
    """The library that is served."""

    name: str
    items: int
    bits: int
    model: str = Field(description="Fingerprint of the model.")
    method: str
    takes: list[Modality] = Field(description="Modalities of raw queries that the model can encode.")
    composes: bool = Field(description="Whether a query may have several parts.")
    credit: str = Field(description="Attribution of the images; may be empty.")
    warning: str = Field(description="Why searches may find little, and the remedy; mostly empty.")
    most_upload: int = Field(description="Largest upload in bytes.")
    most_text: int = Field(description="Longest text in characters.")


class Problem(BaseModel):
    """Why a request was rejected, in one sentence."""

    error: str
