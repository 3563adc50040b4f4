"""The structured loss of a query: criteria with their feature maps, how slacks are joined, and what counts as relevant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from structrank import criteria, oracles
from structrank._support import checks
from structrank.feature_maps import PartialOrder, Permutation, orders_ties

# First words of a remark; what uses binary relevance, and what to write instead, follow.
BINARISED = "Labels have more than two grades, but "


@dataclass(frozen=True)
class StructuredLoss:
    r"""All that the risk depends on besides the data; made once by `of`, and passed on.

    .. math:: \max_y [w \cdot \phi_l(x, y) - w \cdot \phi_l(x, y^*) + \Delta_l(y^*, y)], \quad l = 1, 2, \ldots

    Attributes
    ----------
    criteria, feature_maps : tuple
        Delta_l and phi_l.
    makers : tuple of callable
        Make the oracle of each pair for queries of up to a length, see `structrank.oracles`.
    weights : tuple of float
        C_l / C of each criterion, for separate slacks.
    relevant_from : float or None
        Lowest label that counts as relevant; None uses labels as grades.
    slack : {"separate", "shared"}
        For several criteria: the weighted sum of their risks, or per query the largest of their losses.
    query_weight : {"equal", "pairs"}
        Whether a query counts as 1 or by its number of pairs with different labels; either is multiplied by its weight.

    Examples
    --------
    >>> StructuredLoss.of([criteria.MAP(), criteria.NDCG(k=5)]).names
    ('map (phi_po)', 'ndcg@5 (phi_po)')
    """

    criteria: tuple
    feature_maps: tuple
    makers: tuple
    weights: tuple
    relevant_from: float | None = 1
    slack: str = "separate"
    query_weight: str = "equal"

    @classmethod
    def of(cls, parsed, maps="auto", weights=None, *, decay="sqrt", relevant_from=1, slack="separate", query_weight="equal"):
        """Find the oracles of criteria, with one feature map for all, or a list; raise if there is none."""
        maps = maps if isinstance(maps, (list, tuple)) else [maps] * len(parsed)
        if len(maps) != len(parsed):
            raise ValueError(f"feature_map has {len(maps)} entries but criterion has {len(parsed)}; pass one for each.")
        graded = relevant_from is None
        pairs = [criteria.find_oracle(one, its_map, graded, decay) for one, its_map in zip(parsed, maps, strict=True)]
        if slack == "shared" and len(parsed) > 1 and any(orders_ties(its_map) for its_map, _ in pairs):
            raise ValueError("ties='score' of a feature map needs a slack for each criterion; use slack='separate'.")
        weights = (1.0,) * len(parsed) if weights is None else tuple(weights)
        return cls(tuple(parsed), *map(tuple, zip(*pairs, strict=True)), weights, relevant_from, slack, query_weight)

    def other(self, parsed, maps, weights=None, decay="sqrt"):
        """Return the loss of other criteria, with separate slacks, for the same queries."""
        settings = {"relevant_from": self.relevant_from, "query_weight": self.query_weight}
        return StructuredLoss.of(parsed, maps, weights, decay=decay, **settings)

    @property
    def shared(self):
        """Whether only the most violated of several criteria counts."""
        return self.slack == "shared" and len(self.criteria) > 1

    @property
    def orders_ties(self):
        """Whether a feature map orders the ties of the ideal ranking by score, so that the bound is not convex."""
        return any(map(orders_ties, self.feature_maps))

    @property
    def graded(self):
        """Whether labels are grades."""
        return self.relevant_from is None

    @property
    def names(self):
        """Criterion and feature map of each, for messages."""
        cuts = [getattr(criterion, "k", None) for criterion in self.criteria]
        parts = zip(self.criteria, cuts, self.feature_maps, strict=True)
        return tuple(f"{one.name}{'' if k is None else f'@{k}'} (phi_{its_map.name})" for one, k, its_map in parts)

    @property
    def name(self):
        """All names."""
        return " + ".join(self.names)

    def check_labels(self, labels):
        """Raise if a criterion does not support the grades."""
        if self.graded:
            for criterion in self.criteria:
                criterion.check_grades(labels)

    def sweep(self, kind, longest):
        """Return what a pass over queries of up to `longest` documents needs; see `structrank.training.risk.Risk.plane`.

        Returns
        -------
        made : list
            Oracles.
        shared : bool
            Whether only the most violated oracle counts in each query.
        weights : (n_oracles,) array
        """
        if kind in ("prediction", "ideal"):  # each criterion has its own
            ideal, maps = kind == "ideal", self.feature_maps
            if ideal:  # phi_po is the same for all ideal rankings, so its part is 0
                maps = [its_map if orders_ties(its_map) else PartialOrder() for its_map in maps]
            pairs = zip(self.criteria, maps, strict=True)
            made, shared = [oracles.prediction(*pair, longest, self.graded, ideal) for pair in pairs], False
        else:
            which = range(len(self.criteria)) if kind == "risk" else [kind]
            made = [self.makers[one](self.criteria[one], self.feature_maps[one], longest) for one in which]
            shared = self.shared and kind == "risk"
        alone = self.shared or len(made) < len(self.criteria)
        return made, shared, np.ones(len(made)) if alone else np.array(self.weights)

    def remarks(self, has_grades):
        """Return a remark, in a list, if training reduces grades to binary relevance though it could use them."""
        usable = has_grades and self.relevant_from == 1 and all(one.graded_oracles for one in self.criteria)
        text = f"{BINARISED}training uses binary relevance (label >= 1); relevant_from=None trains on grades."
        return [text] if usable else []


class LossParameters:
    """Base class of estimators with the parameters of a structured loss.

    A subclass has the parameters `criterion`, `k`, `feature_map`, `discount`, `decay`, `slack`, `relevant_from` and `gain`.

    Examples
    --------
    >>> from structrank import StructRankSVM
    >>> [criterion.name for criterion in StructRankSVM(["map", "mrr"]).parsed_criteria()]
    ['map', 'mrr']
    """

    criterion: Any
    feature_map: Any
    # Whether training has the rounds that `Permutation(ties="score")` needs.
    _trains_in_rounds: ClassVar[bool] = False

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

    def _structured_loss(self, weights=None, query_weight="equal"):
        """Return the `StructuredLoss`; raise if a parameter is not valid, whatever the data."""
        Permutation(self.decay)
        checks.check_choice("slack", self.slack, ("separate", "shared"))
        if self.relevant_from is not None:
            checks.check_number("relevant_from", self.relevant_from)
        settings = {"relevant_from": self.relevant_from, "slack": self.slack, "query_weight": query_weight}
        loss = StructuredLoss.of(self.parsed_criteria(), self.feature_map, weights, decay=self.decay, **settings)
        if loss.orders_ties and not self._trains_in_rounds:
            raise ValueError(f"{type(self).__name__} does not support ties='score' of the permutation map; use ties='mean'.")
        return loss
