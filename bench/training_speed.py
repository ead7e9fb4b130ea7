"""Training speed: pairs a second, and which share of a step is matrix products."""

from __future__ import annotations
import argparse
def main(arguments: argparse.Namespace) -> None: ...
