"""Measurements: quality on real data, speed and memory. Each writes JSON under lab/results and prints a table."""

from rmsh.data.open import DATASETS
from rmsh.methods import METHODS

# What the product does not need is in its registries wherever the lab is imported.
METHODS.add("glint", "lab.methods.glint:GLINT")
DATASETS.add("coco66k", "lab.benchmarks.coco66k:open_coco66k")
