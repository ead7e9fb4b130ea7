"""Methods that are kept for comparison with those of the product, in the same registry."""

from __future__ import annotations

from rmsh.methods import METHODS

METHODS.add("glint", "lab.methods.glint:GLINT")
