"""`python -m rmsh`: the `rmsh` command, for when it is not on the path."""

from __future__ import annotations

from rmsh.cli.main import main

if __name__ == "__main__":
    main()
