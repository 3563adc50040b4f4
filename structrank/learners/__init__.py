"""RankNet, LambdaRank, LambdaMART, McRank, StructRankTrees, SPSA training, and diagnostics of trained models.

Names load when first used.
"""

from structrank._support.lazy import names_of

_HOME = {
    "RankNet": "rankers",
    "LambdaRank": "rankers",
    "LambdaMART": "mart",
    "McRank": "mcrank",
    "StructRankTrees": "structured_trees",
    "SPSARanker": "direct",
    **dict.fromkeys(("CrossEntropy", "Sigmoid", "Tier", "Graded", "IterationDependent"), "objectives"),
    **dict.fromkeys(("Exponential", "Linear"), "schedules"),
    "lambda_gradients": "gradients",
    "swap_gains": "gradients",
    "local_optimality": "optimality",
    "smoothness": "weight_curves",
    **dict.fromkeys(("lambda_agreement", "lambda_contribution", "labels_at_top"), "diagnostics"),
    **dict.fromkeys(("LambdaAgreementDisplay", "LambdaContributionDisplay", "TopLabelsDisplay"), "plotting"),
    "LocalOptimalityDisplay": "plotting",
    "SmoothnessDisplay": "plotting",
    "TrainingDisplay": "plotting",
}

__all__ = list(_HOME)
__getattr__, __dir__ = names_of(globals(), _HOME)
