"""The claim that each part of RMSH counts."""

from __future__ import annotations

from collections.abc import Sequence

from lab.paper.claims.claim import Claim, more, open_claim, place, verdict
from lab.paper.lineup import ABLATIONS, line_up_ablation
from lab.paper.outcomes import DIRECTIONS, Outcome, done, mean_score
from lab.paper.significance import compare

__all__ = ["check_ablation"]


def check_ablation(outcomes: Sequence[Outcome], dataset: str) -> Claim:
    """What each part is worth, and where removing it costs nothing."""
    statement = "Each part counts: without triplet loss, classification or pseudo-codes NDCG falls."
    costs = asked = sure = waiting = 0
    details: list[str] = []
    for bits, variants in line_up_ablation(outcomes, dataset).items():
        whole = done(variants.get("RMSH", []))
        for name in ABLATIONS:
            group = done(variants.get(name, []))
            waiting += 0 if group and whole else len(DIRECTIONS)
            for direction in DIRECTIONS if group and whole else ():
                test = compare(whole, group, direction)
                apart = mean_score(whole, direction) - mean_score(group, direction)
                worth = apart if test is None else test.difference
                asked, costs = asked + 1, costs + (worth > 0)
                sure += bool(worth > 0 and test and test.significant)
                details.append(f"{name}, {place(direction, bits)}: {test or f'{worth:+.4f}, not tested'}.")
    if not asked:
        return open_claim(statement)
    words = f"Removing a part costs in {costs} of {asked} comparisons, in {sure} of them significantly"
    words += more(waiting, "comparisons") + " RMSH minus variant:"
    return Claim(statement, verdict(costs, asked, waiting=waiting), words, tuple(details))
