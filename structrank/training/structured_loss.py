"""The parameters that define a structured loss, shared by the estimators that are trained on one."""

from __future__ import annotations

from structrank import criteria
from structrank._support import checks
from structrank.feature_maps import Permutation
from structrank.training.shard import Part

# First words of a remark; what uses binary relevance, and what to write instead, follow.
BINARISED = "Labels have more than two grades, but "


class StructuredLoss:
    """Base class of estimators with the parameters of a structured loss.

    A subclass has the parameters `criterion`, `k`, `feature_map`, `discount`, `decay`, `slack`, `relevant_from` and `gain`.

    Examples
    --------
    >>> from structrank import StructRankSVM
    >>> [criterion.name for criterion in StructRankSVM(["map", "mrr"]).parsed_criteria()]
    ['map', 'mrr']
    """

    def parsed_criteria(self):
        """Return the criteria as objects, one for each name or object in `criterion`."""
        listed = self._listed_criteria()
        if not listed:
            raise ValueError("criterion is an empty list; expected at least one criterion.")
        return [self._parse(criterion) for criterion in listed]

    def measures(self):
        """Return the measure of each criterion."""
        return [criterion.measure(self.relevant_from) for criterion in self.parsed_criteria()]

    def _listed_criteria(self):
        return list(self.criterion) if isinstance(self.criterion, (list, tuple)) else [self.criterion]

    def _parse(self, criterion):
        return criteria.parse(criterion, self.k, self.discount, self.gain)

    def check_loaded(self):
        """Raise unless the criteria of a loaded model are registered."""
        super().check_loaded()
        listed = self._listed_criteria()
        if {str(self.k), str(self.discount), str(self.gain)} != {"auto"} and not all(isinstance(one, str) for one in listed):
            # Earlier versions stored settings beside an object, which did not use them.
            objects = [self._parse(one) if isinstance(one, str) else one for one in listed]
            self.criterion = objects if len(objects) > 1 else objects[0]
            self.k = self.discount = self.gain = "auto"
        self.parsed_criteria()

    def _check_loss(self):
        """Raise if a parameter of the loss is not valid, whatever the data; return the criteria."""
        Permutation(self.decay)
        checks.check_choice("slack", self.slack, ("separate", "shared"))
        if self.relevant_from is not None:
            checks.check_number("relevant_from", self.relevant_from)
        return self.parsed_criteria()

    def _make_parts(self, weights, choose_map=None):
        """Return the parts of the objective.

        Parameters
        ----------
        weights : list of float
            C_l / C of each criterion.
        choose_map : callable, default None
            Function from the feature map given by the user and the criterion to the feature map to use.
        """
        parsed = self.parsed_criteria()
        maps = self.feature_map if isinstance(self.feature_map, (list, tuple)) else [self.feature_map] * len(parsed)
        if len(maps) != len(parsed):
            raise ValueError(f"feature_map has {len(maps)} entries but criterion has {len(parsed)}; pass one for each.")
        parts = []
        for criterion, feature_map, weight in zip(parsed, maps, weights, strict=True):
            chosen = feature_map if choose_map is None else choose_map(feature_map, criterion)
            found = criteria.find_oracle(criterion, chosen, self.relevant_from is None, self.decay)
            parts.append(Part(criterion, *found, weight))
        return parts

    def _binarised_remarks(self, has_grades):
        """Return a remark, in a list, if training reduces grades to binary relevance though it could use them."""
        usable = has_grades and self.relevant_from == 1 and all(one.graded_oracles for one in self.parsed_criteria())
        text = f"{BINARISED}training uses binary relevance (label >= 1); relevant_from=None trains on grades."
        return [text] if usable else []
