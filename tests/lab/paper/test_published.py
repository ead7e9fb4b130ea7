from __future__ import annotations

from lab.paper.published import paper_score, setting_difference


def test_the_papers_tables_are_whole() -> None:
    methods = ("CMFH", "UCH", "SePH", "DCMH", "TDH", "SSAH", "SVHN", "RMSH")
    for table, names in ((1, methods), (2, ("RMSH-T", "RMSH-C", "RMSH-P", "RMSH"))):
        for dataset in ("mirflickr25k", "nuswide", "mscoco"):
            scores = [
                paper_score(table, dataset, direction=d, method=m, bits=b)
                for d in ("i2t", "t2i")
                for m in names
                for b in (16, 32, 64, 128)
            ]
            assert all(score is not None and 0.1 < score < 0.7 for score in scores)
    assert paper_score(2, "nuswide", direction="t2i", method="RMSH-C", bits=128) == 0.6069


def test_the_paper_has_no_numbers_for_other_data() -> None:
    assert paper_score(1, "scenes", direction="i2t", method="RMSH", bits=64) is None
    assert setting_difference("scenes") is None
