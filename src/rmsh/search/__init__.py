"""Search: a query in, ranked hits out."""

from rmsh.search.query import Query
from rmsh.search.searcher import Searcher

__all__ = ["Query", "Searcher"]
