"""Search: a query in, ranked hits out."""
