"""Methods that are kept for comparison with those of the product, in the same registry.

A name that ends in "-reading" is a method that the RMSH paper names and of which no code and no full text was found:
its structure follows the abstract, its losses are ours. Readings stay out of rankings.
"""

from __future__ import annotations

from rmsh.methods import METHODS

METHODS.add("cmdvh-reading", "lab.methods.cmdvh:CMDVH")
METHODS.add("egdh-reading", "lab.methods.egdh:EGDH")
METHODS.add("glint", "lab.methods.glint:GLINT")
