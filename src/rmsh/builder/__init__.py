"""From a folder of images to a searchable library with a report; more items can be added later."""

from rmsh.builder.build import BuildConfig, Built, build

__all__ = ["BuildConfig", "Built", "build"]
