"""Database codes that use more than the modality searched: methods whose originals need both modalities, or labels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from rmsh.codes import Codes
from rmsh.core.errors import DataError
from rmsh.methods.base import Method

if TYPE_CHECKING:
    from rmsh.core.types import Modality
    from rmsh.data.pairs import Pairs
    from rmsh.hash_function import HashFunction
    from rmsh.model import Model


class DatabaseMethod(Method):
    """A method whose option ``database_codes`` says what database items are coded from."""

    @abstractmethod
    def _database(self) -> Mapping[str, HashFunction]:
        """After learning: functions of "image", "text" or "labels" whose sum codes an item; none: as a query."""

    def fit(self, pairs: Pairs, **options: Any) -> Self:
        """Learn as :meth:`Method.fit` does; the model contains the functions of database items."""
        super().fit(pairs, **options)
        self.model_ = replace(self.model, database=self._database())
        return self

    def encode_database(self, pairs: Pairs, modality: Modality) -> Codes:
        """The codes of database items that are searched in one modality, from what ``database_codes`` says."""
        return database_codes(self.model, pairs, modality)


def database_codes(model: Model, pairs: Pairs, modality: Modality) -> Codes:
    """The codes of database items that are searched in one modality; DataError if an item lacks what they need."""
    if not model.database:
        return model.encode(pairs.features(modality), modality, ids=pairs.ids)
    present = {"image": pairs.has_image, "text": pairs.has_text, "labels": pairs.labelled}
    for name in model.database:
        if missing := int((~present[name]).sum()):
            used = f"{' and '.join(model.database)} (database_codes={model.options['database_codes']!r})"
            found = f"{missing} database items have no {name}, and this model codes them from {used}"
            raise DataError(f"{pairs.source}: {found}; leave them out, or train with the default.")
    columns: Any = {"image": pairs.images, "text": pairs.texts, "labels": pairs.labels}
    return Codes.from_values(sum(function(columns[name]) for name, function in model.database.items()), pairs.ids)
