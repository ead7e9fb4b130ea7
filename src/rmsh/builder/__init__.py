"""From a folder of images to a searchable library with a report; more items can be added later."""

from rmsh.builder.build import Built, build
from rmsh.builder.source import BuildConfig

__all__ = ["BuildConfig", "Built", "build"]
