"""Recoding: searchable with the old codes until all new ones are there, resumable, swapped in one step."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rmsh.codes import Codes
from rmsh.core.errors import CodesError, FormatError, RmshError
from rmsh.core.progress import Progress
from rmsh.core.types import Modality
from rmsh.library import Item, Library
from rmsh.library.maintenance import compact, describe
from rmsh.library.recode import recode
from rmsh.library.verify import verify
from rmsh.model import Model

Fill = Callable[..., None]
Code = Callable[..., Codes]
NAMES = [f"n{number}" for number in range(10)]


class Encoder:
    """Codes items with the new model, counts them, and does something before the batch of a number."""

    def __init__(self, code: Code, at: int = -1, act: Callable[[], object] = lambda: None) -> None:
        self.seen: list[str] = []
        self._code, self._at, self._act, self._calls = code, at, act, 0

    def __call__(self, items: Sequence[Item]) -> Mapping[Modality, Codes]:
        if self._calls == self._at:
            self._act()
        self._calls += 1
        names = [item.id for item in items]
        self.seen += names
        return {"text": self._code(names, bits=24)}


@pytest.fixture
def stocked(library: Library, fill: Fill) -> Library:
    fill(library, NAMES)
    return library


def _stop() -> None:
    raise KeyboardInterrupt


def _nearest(library: Library, query: Codes) -> list[str]:
    return [hit.item.id for (hit,) in library.search(query, 1, to="text", model=library.generation().fingerprint)]


def test_every_item_gets_a_new_code_and_readers_see_them_at_once(
    stocked: Library, folder: Path, new_model: Model, code: Code
) -> None:
    with Library.open(folder) as reader:
        assert _nearest(reader, code(NAMES)) == NAMES
        recode(stocked, new_model, encode=Encoder(code), batch=3)
        assert _nearest(reader, code(NAMES, bits=24)) == NAMES
        assert reader.model().fingerprint == new_model.fingerprint
    assert verify(folder).problems == ()


def test_the_library_is_searched_with_the_old_codes_meanwhile(
    stocked: Library, folder: Path, new_model: Model, code: Code
) -> None:
    found: list[list[str]] = []
    with Library.open(folder) as reader:
        recode(
            stocked, new_model, encode=Encoder(code, 2, lambda: found.append(_nearest(reader, code(NAMES)))), batch=3
        )
    assert found == [NAMES]


def test_a_recoding_that_was_stopped_goes_on_where_it_was(
    stocked: Library, folder: Path, new_model: Model, code: Code, model: Model
) -> None:
    first, second = Encoder(code, 2, _stop), Encoder(code)
    with pytest.raises(KeyboardInterrupt):
        recode(stocked, new_model, encode=first, batch=3)
    assert stocked.generation().fingerprint == model.fingerprint
    assert verify(folder).problems == ()
    recode(stocked, new_model, encode=second, batch=3)
    assert (first.seen, second.seen) == (NAMES[:6], NAMES[6:])
    assert stocked.generation() == (2, new_model.fingerprint, 24)


def test_what_is_added_updated_and_removed_meanwhile_has_its_place(
    stocked: Library, new_model: Model, code: Code, fill: Fill, model: Model
) -> None:
    def change() -> None:
        fill(stocked, ["late"])
        stocked.add([Item("n0")], {"text": code(["n0"])}, model=model.fingerprint, replace=True)
        stocked.remove(["n9"])

    recode(stocked, new_model, encode=Encoder(code, 3, change), batch=3)
    names = [*NAMES[:9], "late"]
    assert _nearest(stocked, code(names, bits=24)) == names
    assert stocked.count() == 10


def test_old_codes_are_kept_until_the_library_is_compacted(stocked: Library, new_model: Model, code: Code) -> None:
    recode(stocked, new_model, encode=Encoder(code))
    assert describe(stocked).counts["codes kept of older models"] == 10
    compact(stocked)
    assert describe(stocked).counts["codes kept of older models"] == 0
    assert describe(stocked).counts["text codes"] == 10


def test_compacting_keeps_what_a_stopped_recoding_has_done(stocked: Library, new_model: Model, code: Code) -> None:
    with pytest.raises(KeyboardInterrupt):
        recode(stocked, new_model, encode=Encoder(code, 1, _stop), batch=3)
    compact(stocked)
    again = Encoder(code)
    recode(stocked, new_model, encode=again)
    assert again.seen == NAMES[3:]


def test_a_recoding_with_yet_another_model_takes_the_place_of_an_unfinished_one(
    stocked: Library, folder: Path, new_model: Model, code: Code
) -> None:
    other = Model({"text": new_model.functions["text"]}, "other", {})
    assert other.fingerprint != new_model.fingerprint
    with pytest.raises(KeyboardInterrupt):
        recode(stocked, new_model, encode=Encoder(code, 1, _stop), batch=3)
    recode(stocked, other, encode=Encoder(code))
    assert stocked.model().fingerprint == other.fingerprint
    assert verify(folder).problems == ()


def test_a_recoding_whose_place_was_taken_is_told(stocked: Library, new_model: Model, code: Code) -> None:
    other = Model({"text": new_model.functions["text"]}, "other", {})

    def take_over() -> None:
        with pytest.raises(KeyboardInterrupt):
            recode(stocked, other, encode=Encoder(code, 0, _stop))

    with pytest.raises(RmshError, match="another model"):
        recode(stocked, new_model, encode=Encoder(code, 1, take_over), batch=3)


def test_recoding_with_the_model_in_use_does_nothing(stocked: Library, model: Model, code: Code) -> None:
    encoder = Encoder(code)
    recode(stocked, model, encode=encoder)
    assert (encoder.seen, stocked.generation().number) == ([], 1)


def test_an_empty_library_changes_its_model(library: Library, folder: Path, new_model: Model, code: Code) -> None:
    recode(library, new_model, encode=Encoder(code))
    assert library.generation() == (2, new_model.fingerprint, 24)
    assert verify(folder).problems == ()


def test_codes_of_another_length_than_the_model_makes_are_refused(
    stocked: Library, folder: Path, new_model: Model, code: Code
) -> None:
    with pytest.raises(CodesError, match=r"16 bits.* 24"):
        recode(stocked, new_model, encode=lambda items: {"text": code([item.id for item in items])})
    assert _nearest(stocked, code(NAMES)) == NAMES


def _all_but(code: Code, *names: str) -> Callable[[Sequence[Item]], Mapping[Modality, Codes]]:
    return lambda items: {"text": code([item.id for item in items if item.id not in names], bits=24)}


def test_items_that_get_no_code_are_named_after_all_others_and_the_old_codes_stay(
    stocked: Library, folder: Path, new_model: Model, code: Code
) -> None:
    with pytest.raises(CodesError, match=r"no code for 'n0', 'n4',"):
        recode(stocked, new_model, encode=_all_but(code, "n0", "n4"), batch=3)
    assert _nearest(stocked, code(NAMES)) == NAMES
    assert verify(folder).problems == ()


def test_a_recoding_that_lacked_a_code_ends_when_its_item_can_be_coded_or_is_gone(
    stocked: Library, folder: Path, new_model: Model, code: Code
) -> None:
    with pytest.raises(CodesError, match="no code for 'n0', 'n4'"):
        recode(stocked, new_model, encode=_all_but(code, "n0", "n4"), batch=3)
    stocked.remove(["n4"])
    again = Encoder(code)
    recode(stocked, new_model, encode=again)
    assert again.seen == ["n0"]
    assert _nearest(stocked, code(["n0", "n9"], bits=24)) == ["n0", "n9"]
    assert verify(folder).problems == ()


def test_many_items_without_a_code_are_not_all_named(
    library: Library, fill: Fill, new_model: Model, code: Code
) -> None:
    fill(library, [f"x{number}" for number in range(30)])
    with pytest.raises(CodesError, match=r"'x9' and more"):
        recode(library, new_model, encode=lambda _: {}, batch=7)


def test_progress_is_reported(stocked: Library, new_model: Model, code: Code) -> None:
    reports: list[Progress] = []
    recode(stocked, new_model, encode=Encoder(code), batch=4, on_progress=reports.append)
    assert [(report.done, report.total) for report in reports] == [(4, 10), (8, 10), (10, 10)]


def test_who_asks_for_the_model_while_it_is_exchanged_gets_the_new_one(
    stocked: Library, folder: Path, new_model: Model, code: Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Library.open(folder) as reader:
        known = iter([reader.generation()])
        recode(stocked, new_model, encode=Encoder(code))
        current = reader.generation()
        monkeypatch.setattr(reader, "generation", lambda: next(known, current))
        assert reader.model().fingerprint == new_model.fingerprint


# Between the swap and the last rename a machine may lose power at any step.


@pytest.mark.parametrize("survived", [0, 1, 2])
def test_a_power_cut_after_the_swap_is_put_right_by_the_next_writer(
    survived: int, *, stocked: Library, folder: Path, new_model: Model, code: Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    renames: list[Any] = []
    rename = os.rename

    def cut(source: Path, target: Path) -> None:
        if len(renames) == survived:
            raise KeyboardInterrupt
        renames.append(source)
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", cut)
        patch.setattr("rmsh.library.folder.write_manifest", lambda *_: _stop())
        with pytest.raises(KeyboardInterrupt):
            recode(stocked, new_model, encode=Encoder(code))
    stocked.close()
    with Library.open(folder) as reader:  # readers are served in between
        assert reader.model().fingerprint == new_model.fingerprint
        assert _nearest(reader, code(NAMES, bits=24)) == NAMES
    Library.open(folder, writable=True).close()
    assert verify(folder).problems == ()
    assert not [name for name in ("model.next", "model.old") if (folder / name).exists()]


def test_a_new_model_that_was_taken_away_is_missed_before_the_swap(
    stocked: Library, folder: Path, new_model: Model, model: Model, code: Code
) -> None:
    def take_away() -> None:
        (folder / "model.next" / "config.json").unlink()

    with pytest.raises(FormatError, match=f"no model .*{new_model.fingerprint}"):
        recode(stocked, new_model, encode=Encoder(code, 0, take_away))
    assert stocked.generation().fingerprint == model.fingerprint


def test_a_new_model_that_was_damaged_is_not_put_to_use_and_saved_again(
    stocked: Library, folder: Path, new_model: Model, model: Model, code: Code
) -> None:
    def damage() -> None:
        path = folder / "model.next" / "model.safetensors"
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)

    with pytest.raises(FormatError, match="does not match the fingerprint"):
        recode(stocked, new_model, encode=Encoder(code, 0, damage))
    assert stocked.generation().fingerprint == model.fingerprint
    recode(stocked, new_model, encode=Encoder(code))
    assert (stocked.model().fingerprint, verify(folder).problems) == (new_model.fingerprint, ())
