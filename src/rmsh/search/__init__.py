"""Search: a query in, ranked hits out."""

from rmsh.search.searcher import Query, Searcher

__all__ = ["Query", "Searcher"]
