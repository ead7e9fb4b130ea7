"""The options of RMSH, and what the paper prints of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from rmsh.coding.bounds import check_delta
from rmsh.methods.base import MethodConfig
from rmsh.training.networks import Scaling  # noqa: TC001  # pydantic reads it

if TYPE_CHECKING:
    from typing import Self

__all__ = ["PAPER", "PAPER_LITERAL", "RMSHConfig"]


class RMSHConfig(MethodConfig):
    """Options of RMSH; the defaults differ from the paper where it was better on validation (DISCREPANCIES.md)."""

    delta: float | None = Field(None, gt=0, description="minimum distance of dissimilar items; None: from the bounds")
    confidence: float = Field(0.9, gt=0.5, lt=1, description="p of the lower bound of delta")
    distance: Literal["hamming", "raw"] = Field("hamming", description="|z1-z2|^2/4, in bits; or |z1-z2|^2 as printed")

    lambda1: float = Field(0.3, ge=0, description="weight of intra-modal triplets")
    lambda2: float = Field(3.0, ge=0, description="weight of inter-modal triplets")
    lambda3: float = Field(0.3, ge=0, description="weight of the pseudo-codes' classification")
    lambda4: float = Field(0.1, ge=0, description="weight of quantisation")
    positive_weight: float | None = Field(None, gt=0, description="w_p; None: from the label frequencies")

    classification: bool = Field(True, description="False is the ablation RMSH-C")
    triplet: bool = Field(True, description="False is the ablation RMSH-T")
    pseudo_codes: bool = Field(True, description="False is the ablation RMSH-P")

    triplets_per_item: int = Field(4, ge=1, description="triplets drawn for each item of a batch")
    inter_anchor: Literal["max_tags", "query"] = Field("query", description="the reference of inter-modal triplets")
    mask_equal: bool = Field(True, description="no ranking of two partners that are equally similar")
    mask_empty: bool = Field(True, description="no terms for a pseudo-code whose label set is empty")
    class_reduction: Literal["sum", "mean"] = Field("sum", description="of the cross-entropy over the classes")
    heads: Literal["shared", "each"] = Field("shared", description="one classifier, or one for each modality")
    pseudo_networks: Literal["shared", "each"] = Field("shared", description="one f_u and f_t, or one each a modality")
    code_update: Literal["batch", "epoch"] = Field("batch", description="b from this batch, or from the last epoch")

    hidden: int = Field(1024, ge=1, description="width of the hidden layer")
    activation: Literal["tanh", "relu"] = Field("relu", description="of the hidden layer")
    batch_norm: bool = Field(True, description="batch normalisation before the last tanh")
    dropout: float = Field(0.2, ge=0, lt=1, description="of the hidden layer")
    scaling: Scaling = Field("norm", description="of the features: one factor for all, or each standardised")

    epochs: int | None = Field(None, ge=1, description="passes over the pairs; None: 10, more where pairs are few")
    batch: int | None = Field(None, ge=3, description="items a step; None: 256, fewer where pairs are few")
    learning_rate: float = Field(5e-3, gt=0, description="of Adam; the peak where it varies")
    schedule: Literal["constant", "one-cycle"] = Field("one-cycle", description="of the learning rate")

    @model_validator(mode="after")
    def _delta_fits_the_code(self) -> Self:
        if self.delta is not None:
            check_delta(self.delta, self.bits)
        return self


# Everything the paper states, and METHODS' default where it does not.
PAPER: dict[str, Any] = {
    "lambda1": 0.01,
    "lambda2": 0.1,
    "lambda3": 0.1,
    "lambda4": 0.1,
    "positive_weight": 30.0,
    "triplets_per_item": 1,
    "inter_anchor": "max_tags",
    "activation": "tanh",
    "batch_norm": False,
    "dropout": 0.0,
    "scaling": "standardise",
    "epochs": 50,
    "batch": 128,
    "learning_rate": 1e-3,
    "schedule": "constant",
}

# The same, and what we think are slips of the pen.
PAPER_LITERAL: dict[str, Any] = {**PAPER, "distance": "raw", "mask_equal": False, "mask_empty": False}
