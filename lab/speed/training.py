"""Training speed of RMSH: pairs per second, and the share of a step spent in matrix products.

The products are also timed alone, interleaved with real steps; medians are compared.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lab.data import coco66k, write_measurement
from rmsh.methods.rmsh import RMSH, Objective
from rmsh.training.loop import Batch, TrainingSet, reproducible

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 150
DELTA = 11.0


def main() -> None:
    """Measure two batch sizes with the default options, write the result and print the table."""
    data = _data()
    rows = [measure(data, batch) for batch in (128, 512)]
    write_measurement("speed/training", {"threads": torch.get_num_threads(), "batches": rows})
    print("batch | pairs/s | step ms | products ms | share | one epoch of coco66k")
    for row in rows:
        print(
            f"{row['batch']:5} | {row['pairs_per_second']:7.0f} | {row['step_ms']:7.2f} | {row['products_ms']:11.2f} | "
            f"{row['share']:5.2f} | {row['epoch_seconds']:.1f} s"
        )


def _data() -> TrainingSet:
    opened = coco66k("minilm")
    pairs = opened.pairs.take(opened.split.train)  # type: ignore[union-attr]
    return TrainingSet(pairs.features("image"), pairs.features("text"), np.asarray(pairs.labels))


def measure(data: TrainingSet, batch: int) -> dict[str, Any]:
    """Time whole steps (batch, forward, backward, Adam) and the products in them alone."""
    objective = Objective(data, RMSH(batch=batch, delta=DELTA).config).train()
    optimizer = torch.optim.Adam(objective.parameters(), lr=1e-3, fused=True)
    order = np.random.default_rng(0).permutation(len(data))

    def step(i: int) -> None:
        rows = order[i * batch % (len(data) - batch) :][:batch]
        terms = objective(data.batch(rows)).terms
        optimizer.zero_grad(set_to_none=True)
        torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    products = _products(objective, data.batch(order[:batch]))
    with reproducible(0, 0):
        steps, alone = _interleaved(step, products)
    return {
        "batch": batch,
        "step_ms": 1e3 * steps,
        "products_ms": 1e3 * alone,
        "share": alone / steps,
        "pairs_per_second": batch / steps,
        "epoch_seconds": len(data) / batch * steps,
    }


def _products(objective: Objective, batch: Batch) -> Callable[[int], None]:
    """Every matrix product of a step: hash networks, classifier, pseudo-codes, distances and shared labels.

    A linear layer takes three products: forward, gradient of its input, gradient of its weights. The first layer of a
    hash network needs no gradient of its input, and shared labels need no gradient.
    """
    n, bits, classes = len(batch.labels), objective.config.bits, batch.labels.shape[1]
    hidden = objective.config.hidden
    first = [_matrices(n, x.shape[1], hidden) for x in (batch.images, batch.texts)]
    whole = [_matrices(n, hidden, bits) for _ in range(2)]
    whole += [_matrices(6 * n, bits, classes)]  # classifier: codes, unions, intersections
    whole += [_matrices(2 * n, 2 * bits, bits) for _ in range(2)]  # pseudo-codes
    whole += [_matrices(2 * n, bits, 2 * n)]  # distances
    labels = batch.labels

    def run(_: int) -> None:
        for x, weight, gradient in first:
            torch.mm(x, weight)
            torch.mm(x.T, gradient)
        for x, weight, gradient in whole:
            torch.mm(x, weight)
            torch.mm(gradient, weight.T)
            torch.mm(x.T, gradient)
        torch.mm(labels, labels.T)

    return run


def _matrices(rows: int, inputs: int, outputs: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.randn(rows, inputs), torch.randn(inputs, outputs), torch.randn(rows, outputs)


def _interleaved(*actions: Callable[[int], None]) -> list[float]:
    """The median time of each action, measured in turns."""
    times: list[list[float]] = [[] for _ in actions]
    for i in range(STEPS):
        for action, measured in zip(actions, times, strict=True):
            start = time.perf_counter()
            action(i)
            measured.append(time.perf_counter() - start)
    return [median(measured[STEPS // 6 :]) for measured in times]
