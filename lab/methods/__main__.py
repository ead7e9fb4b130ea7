"""The command line of rmsh with the methods of the lab: python -m lab.methods compare DATA --methods rmsh,dsph."""

import sys

import lab.methods  # noqa: F401  # which registers them
from rmsh.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
