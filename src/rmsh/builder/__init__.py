"""The builder's road: from a folder of pictures to a library with a report, and more items later."""

from rmsh.builder.build import BuildConfig, Built, build

__all__ = ["BuildConfig", "Built", "build"]
