"""UCH: coupled cycle-GANs for unsupervised cross-modal hashing (Li, Deng, Wang, Xie, Gao, Tao, AAAI 2019).

A re-implementation from the paper's description, without labels: no public code exists, and what is not described is an
engineer's reading. Two cycles are learned at once. In the outer one a picture becomes a representation r (the hidden
layer), and r becomes a text; in the inner one r becomes a code z, and z the representation of the text; and the same
from texts to pictures. With G_ab the map from modality a to b in either cycle, each direction minimises

    adversarial(G_ab(x_a) for x_b) + cycle |x_a - G_ba(G_ab(x_a))|_1 + paired |G_ab(x_a) - x_b|^2,

and the codes quantisation |z - sgn(z)|^2 + alignment |z_image - z_text|^2. The paired term is what uses that a picture
and a text belong together.

What is ours, besides deep.py: errors are relative to the size of what is copied, because the scales of features,
representations and codes differ; representations are constant where they are copied, else they would shrink; each
decoder is one layer; discriminators and the rest step together, with Adam's usual moments; passing for real weighs 0.1,
because with 1 one direction stayed at chance level; codes are normalised over the batch before their tanh, because else
nothing keeps a bit from one value for all items, which 13 of 16 bits took.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812  # its customary name
from pydantic import Field
from torch import Tensor, nn

from rmsh.core.types import MODALITIES, Modality
from rmsh.methods.deep import DeepConfig, DeepMethod, HashObjective
from rmsh.training.adversarial import discriminator, fooling_loss, telling_loss
from rmsh.training.loop import Batch, Outcome, TrainingSet
from rmsh.training.losses import quantisation_loss

__all__ = ["UCH", "Objective", "UCHConfig", "absolute_error", "squared_error"]

_OTHER: dict[Modality, Modality] = {"image": "text", "text": "image"}


class UCHConfig(DeepConfig):
    """Options of UCH."""

    learning_rate: float = Field(1e-4, gt=0, description="of Adam, where it begins")
    adversarial: float = Field(0.1, ge=0, description="weight of passing for real")
    cycle: float = Field(10.0, ge=0, description="weight of coming back to the start")
    paired: float = Field(1.0, ge=0, description="weight of meeting the item's other modality")
    quantisation: float = Field(0.1, ge=0, description="weight of being near a binary code")
    alignment: float = Field(1.0, ge=0, description="weight of one code for both modalities")


class UCH(DeepMethod):
    """Coupled cycle-GANs.

    Example:
        >>> from rmsh.data.synthetic.generated import generate_pairs
        >>> method = UCH(bits=16, epochs=1, hidden=8).fit(generate_pairs(60))
        >>> method.encode(generate_pairs(60).images, "image").packed.shape
        (60, 2)
    """

    name = "uch"
    summary = "two coupled cycle-GANs, one for representations and one for codes, without labels"
    reference = (
        "Li, Deng, Wang, Xie: Coupled CycleGAN: Unsupervised Hashing Network for Cross-Modal Retrieval, AAAI 2019"
    )
    supervised = False
    Config = UCHConfig
    default_epochs = 6
    original_epochs = "not known"
    config: UCHConfig

    def _objective(self, data: TrainingSet) -> Objective:
        return Objective(data, self.config)


class Objective(HashObjective):
    """Both cycles in both directions, and the discriminators of what they make."""

    def __init__(self, data: TrainingSet, config: UCHConfig) -> None:
        super().__init__(data, config, output="tanh", batch_norm=True)
        for network in (self.image, self.text):
            if network.norm is not None:
                network.norm.requires_grad_(False)  # an offset that learns would let a bit be constant again
        self.config = config
        widths = {"image": data.images.shape[1], "text": data.texts.shape[1]}
        self.outer = nn.ModuleDict({m: nn.Linear(config.hidden, widths[m]) for m in MODALITIES})
        self.inner = nn.ModuleDict({m: nn.Linear(config.bits, config.hidden) for m in MODALITIES})
        self.judges = nn.ModuleDict()
        for m in MODALITIES:
            self.judges[f"{m} features"] = discriminator(widths[m], widths=(512, 256), slope=0.2)
            self.judges[f"{m} representation"] = discriminator(config.hidden, widths=(512, 256), slope=0.2)

    def forward(self, batch: Batch) -> Outcome:
        networks = {"image": self.image, "text": self.text}
        x = {"image": self.image.scaling(batch.images), "text": self.text.scaling(batch.texts)}
        r = {m: networks[m].represent(x[m]) for m in MODALITIES}
        z = {m: networks[m].code(r[m]) for m in MODALITIES}
        terms: dict[str, Tensor] = {}
        for start in MODALITIES:
            end = _OTHER[start]
            made = self.outer[end](r[start])
            back = self.outer[start](networks[end].represent(made))
            terms |= self._cycle_terms(f"{end} features", made, x[end], back, x[start])
            made = F.relu(self.inner[end](z[start]))
            back = F.relu(self.inner[start](networks[end].code(made)))
            terms |= self._cycle_terms(f"{end} representation", made, r[end], back, r[start])
        bits = self.config.bits
        for m in MODALITIES:
            signs = torch.where(z[m].detach() >= 0, 1.0, -1.0)
            terms[f"{m} quantisation"] = self.config.quantisation * quantisation_loss(z[m], signs).mean() / bits
        terms["alignment"] = self.config.alignment * quantisation_loss(z["image"], z["text"]).mean() / bits
        return Outcome(terms)

    def _cycle_terms(self, name: str, made: Tensor, end: Tensor, back: Tensor, start: Tensor) -> dict[str, Tensor]:
        """The losses of one direction of one cycle: start -> made (like end) -> back (like start)."""
        config, judge = self.config, self.judges[name]
        return {
            f"{name} telling": telling_loss(judge, end, made),
            f"{name} fooling": config.adversarial * fooling_loss(judge, made),
            f"{name} cycle": config.cycle * absolute_error(back, start),
            f"{name} paired": config.paired * squared_error(made, end),
        }


def absolute_error(made: Tensor, real: Tensor) -> Tensor:
    """The mean |made - real|, by the root mean square of real, which is constant.

    Example:
        >>> absolute_error(torch.tensor([[1.0, 2.0]]), torch.tensor([[2.0, 2.0]])).item()
        0.25
    """
    real = real.detach()
    return (made - real).abs().mean() / real.square().mean().sqrt().clamp_min(1e-6)


def squared_error(made: Tensor, real: Tensor) -> Tensor:
    """The mean (made - real)^2, by the mean square of real, which is constant.

    Example:
        >>> squared_error(torch.tensor([[1.0, 2.0]]), torch.tensor([[2.0, 2.0]])).item()
        0.125
    """
    real = real.detach()
    return (made - real).square().mean() / real.square().mean().clamp_min(1e-12)
