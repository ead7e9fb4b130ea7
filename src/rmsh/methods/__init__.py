"""Methods: each learns hash functions from pairs. One file per method; base.py defines the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmsh.core.errors import MissingExtraError, install_command
from rmsh.core.registry import Registry

if TYPE_CHECKING:
    from rmsh.methods.base import Method

__all__ = ["DEFAULT_METHOD", "METHODS", "create", "method_class"]

DEFAULT_METHOD = "nest"  # learns from labels, pairs or both (docs/explanation/nest.md)

METHODS = Registry(
    "method",
    "rmsh.methods",
    {
        "cca-itq": "rmsh.methods.cca_itq:CCAITQ",
        "classifier-itq": "rmsh.methods.classifier_itq:ClassifierITQ",
        "cmfh": "rmsh.methods.cmfh:CMFH",
        "dcmh": "rmsh.methods.dcmh:DCMH",
        "nest": "rmsh.methods.nest:NEST",
        "rmsh": "rmsh.methods.rmsh:RMSH",
        "rotation": "rmsh.methods.rotation:Rotation",
        "scm": "rmsh.methods.scm:SCM",
        "seph": "rmsh.methods.seph:SePH",
        "ssah": "rmsh.methods.ssah:SSAH",
        "svhn": "rmsh.methods.svhn:SVHN",
        "tdh": "rmsh.methods.tdh:TDH",
        "uch": "rmsh.methods.uch:UCH",
    },
)


def method_class(name: str) -> type[Method]:
    """The class of a method by name; ConfigError if it is unknown, MissingExtraError if it needs torch."""
    try:
        cls: type[Method] = METHODS.load(name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError(
            f"The method {name!r} requires torch, which is not installed; run: {install_command('train')}"
        ) from error
    return cls


def create(name: str = DEFAULT_METHOD, *, preset: str | None = None, **options: Any) -> Method:
    """Create an unfitted method.

    Args:
        name: a name listed by ``rmsh methods``.
        preset: a named set of options of that method.
        options: fields of the method's ``Config``; they take precedence over the preset.

    Raises:
        ConfigError: the name, the preset or an option is unknown, or a value is out of range.
        MissingExtraError: the method needs torch.
    """
    return method_class(name)(preset=preset, **options)
