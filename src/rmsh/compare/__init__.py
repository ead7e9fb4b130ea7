"""Compare methods: a grid of runs becomes one JSON result per run, and tables of them."""
