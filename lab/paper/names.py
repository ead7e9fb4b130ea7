"""How readers know methods and directions, and which methods the paper compares."""

from __future__ import annotations

__all__ = ["COMPARED", "DIRECTION_TITLES", "title_of"]

COMPARED = ("cmfh", "uch", "seph", "dcmh", "tdh", "ssah", "svhn", "rmsh")  # in the order of the paper's Table 1
DIRECTION_TITLES = {"i2t": "I → T", "t2i": "T → I"}

_TITLES = {
    "cmfh": "CMFH",
    "uch": "UCH",
    "seph": "SePH",
    "dcmh": "DCMH",
    "tdh": "TDH",
    "ssah": "SSAH",
    "svhn": "SVHN",
    "rmsh": "RMSH",
    "glint": "GLINT",
    "scm": "SCM",
    "cca-itq": "CCA-ITQ",
    "classifier-itq": "classifier-ITQ",
    "cca-cosine": "no codes: CCA",
    "logistic": "no codes: logistic regression",
    "mlp": "no codes: MLP classifier",
}


def title_of(method: str) -> str:
    """A method as its paper writes it; one that is not known by its own name.

    Example:
        >>> title_of("seph"), title_of("mine")
        ('SePH', 'mine')
    """
    return _TITLES.get(method, method)
