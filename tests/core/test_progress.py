"""Progress: the time left is estimated from the speed so far."""

from __future__ import annotations

from rmsh.core.progress import Progress


def test_time_left_follows_from_the_speed_so_far() -> None:
    assert Progress("train", 2, 10, "epoch", seconds=3.0).seconds_left == 12.0


def test_finished_work_has_no_time_left() -> None:
    assert Progress("train", 10, 10, "epoch", seconds=3.0).seconds_left == 0.0


def test_there_is_no_estimate_before_the_first_unit() -> None:
    assert Progress("train", 0, 10, "epoch", seconds=3.0).seconds_left is None


def test_reports_do_not_share_their_values() -> None:
    first, second = (Progress("train", 1, 2, "epoch", seconds=1.0) for _ in range(2))
    assert first.values is not second.values
