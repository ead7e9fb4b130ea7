"""The search page and its HTTP interface; `rmsh serve` starts it."""
