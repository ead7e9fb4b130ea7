"""Methods that are compared with those of the product, in the same registry: recent ones as losses on frozen features.

`python -m lab.methods` is the command line of rmsh with these methods.

A name that ends in "-reading" is a method that the RMSH paper names and of which no code and no full text was found:
its structure follows the abstract, its losses are ours. Readings stay out of rankings.
"""

from __future__ import annotations

from rmsh.methods import METHODS

METHODS.add("cmdvh-reading", "lab.methods.cmdvh:CMDVH")
METHODS.add("egdh-reading", "lab.methods.egdh:EGDH")
METHODS.add("glint", "lab.methods.glint:GLINT")
METHODS.add("cirh", "lab.methods.cirh:CIRH")
METHODS.add("dchmt", "lab.methods.dchmt:DCHMT")
METHODS.add("dgcpn", "lab.methods.dgcpn:DGCPN")
METHODS.add("dhaph", "lab.methods.dhaph:DHaPH")
METHODS.add("dnph", "lab.methods.dnph:DNPH")
METHODS.add("dsph", "lab.methods.dsph:DSPH")
METHODS.add("mith", "lab.methods.mith:MITH")
METHODS.add("scbch", "lab.methods.scbch:SCBCH")
METHODS.add("twdh", "lab.methods.twdh:TwDH")
METHODS.add("ucch", "lab.methods.ucch:UCCH")
