"""Train every criterion on the embedded data and print the train-vs-test criterion table: ``python -m structrank``.

With arguments it is the command line: ``python -m structrank train ...``.
"""

import sys

_HEADING = """\
StructRank: which criterion to train on, for which test measure (the table of KDD 2008, Figure 9)

Data: digits is retrieval by example among handwritten digits, synthetic a noisy linear utility; both
come with the package. Each row chose its C by its own criterion, on validation queries and inner folds.
Criteria: NDCG and MRR look at 10 ranks, NDCG-NC at all; MRR has two feature maps; COMBO is MAP,
NDCG-NC and MRR (phi_po) at once; DORM is NDCG with the permutation map; all with the convex bound.
"""


def main():
    """Print the table; progress goes to stderr, if that is a terminal."""
    from structrank import compare, datasets

    synthetic = datasets.make_ranking(n_queries=300, n_docs=(10, 30), relevant_share=0.15, random_state=0)
    folds = {"digits": datasets.load_digits_retrieval(), "synthetic": synthetic}
    table = compare(folds, n_jobs=-1, verbose=int(sys.stderr.isatty()))
    print(_HEADING)
    print(table)


if __name__ == "__main__":
    if sys.argv[1:]:
        from structrank import cli

        sys.exit(cli.main())
    main()
