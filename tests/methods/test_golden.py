"""Golden runs: what every method learns from fixed data and a fixed seed, compared with stored values.

A changed result needs a new ``version`` of the method, so that stored results of the old one can be recognised as
outdated. After raising it, add the new values with ``python tests/methods/test_golden.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lab.methods  # noqa: F401  # adds GLINT
from rmsh.data.synthetic.generated import generate_pairs
from rmsh.methods import METHODS, create, method_class
from rmsh.metrics.evaluate import evaluate

GOLDEN = Path(__file__).with_name("golden.json")
# Few steps, so that the rounding of another BLAS has no time to grow.
_FEW_STEPS = {"epochs": 2, "batch": 50, "hidden": 32}
_FEW_ITERATIONS = {"iterations": 10}
OPTIONS: dict[str, dict[str, Any]] = {
    "cca-itq": _FEW_ITERATIONS,
    "classifier-itq": _FEW_STEPS | _FEW_ITERATIONS,
    "cmfh": _FEW_ITERATIONS,
    "glint": {"epochs": 1, "batch": 50, "hidden": 32, "steepness": 1.0, "learning_rate": 1e-3},
    "nest": {"epochs": 1, "batch": 50, "hidden": 32, "steepness": 1.0},
    "rotation": {},
    "scm": {},
    "seph": {"iterations": 10, "anchor_count": 20},
}
VALUES = 8  # projected values stored for each modality


def digest(name: str) -> dict[str, Any]:
    """NDCG and a few relaxed values of one method."""
    pairs = generate_pairs(200, image_dim=24, text_dim=16, noise=0.8)
    method = create(name, bits=16, seed=0, **OPTIONS.get(name, _FEW_STEPS)).fit(pairs)
    image, text = (method.encode(pairs.features(m), m) for m in ("image", "text"))
    labels = np.asarray(pairs.labels)
    values = {m: method.project(pairs.features(m), m)[0, :VALUES] for m in ("image", "text")}
    return {
        "ndcg": round(evaluate(image, text, labels, labels, k=50).ndcg.value, 4),
        **{m: [round(float(v), 4) for v in row] for m, row in values.items()},
    }


@pytest.mark.parametrize("name", METHODS.names())
def test_a_method_learns_what_its_version_learned_before(name: str) -> None:
    version = method_class(name).version
    stored = json.loads(GOLDEN.read_text(encoding="utf-8"))[name]
    assert str(version) in stored, (
        f"{GOLDEN.name} has no version {version} of {name}; run: python {Path(__file__).name}"
    )
    wanted, found = stored[str(version)], digest(name)
    # Other instruction sets of a CPU move NDCG by up to 0.001 and values by up to 0.006.
    same = abs(found["ndcg"] - wanted["ndcg"]) < 0.01 and np.allclose(
        [found["image"], found["text"]], [wanted["image"], wanted["text"]], rtol=0.01, atol=0.02
    )
    assert same, (
        f"{name} gives another model than version {version} did: {found} instead of {wanted}. If that is intended, "
        f"raise {name}'s version to {version + 1} and run: python tests/methods/test_golden.py"
    )


def _regenerate() -> None:
    """Add the values of versions that are not stored yet; stored ones stay."""
    stored = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
    for name in METHODS.names():
        versions = stored.setdefault(name, {})
        versions.setdefault(str(method_class(name).version), digest(name))
    rows = [f' "{name}": {json.dumps(versions)}' for name, versions in sorted(stored.items())]
    GOLDEN.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    _regenerate()
