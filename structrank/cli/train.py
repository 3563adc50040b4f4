"""Train a model and save it.

structrank train train.txt -o map.structrank
structrank train train.txt --criterion ndcg@5 -C 0.1 1 10 100 --validation vali.txt -o ndcg.structrank
structrank train clicks.csv --label relevance --qid query --docid url -C 0.1 1 10 -o clicks.structrank
structrank train train.txt --criterion map --criterion ndcg-nc --slack shared -o combo.structrank
structrank train train.csv --bounds price:-inf:0 clicks:0:inf --l1 0.1 -o careful.structrank
structrank train train.txt --import my_criteria --criterion precision@5 -o precision.structrank
"""

from __future__ import annotations

import os
from dataclasses import replace

from structrank._support.files import check_writable
from structrank.cli.descriptions import data_facts, kinds, model_facts, model_lines
from structrank.cli.input import check_exists, check_not_read, read_parts
from structrank.cli.options import (
    CUTOFF,
    DISCOUNTS,
    LEARNER,
    POSITIVE,
    add_clean,
    add_jobs,
    add_penalty,
    add_relevant_from,
    add_training,
    given,
    penalty_of,
    preparation_of,
)
from structrank.cli.output import collecting_warnings, print_result, save_trained, stdout_to_stderr


def add_options(parser):
    """Add the options of the command."""
    add_training(parser, "queries to choose C on, by the criterion's own measure; with at least 1,000 there are no inner folds")
    parser.add_argument(
        "--criterion",
        action="append",
        metavar="NAME",
        help="auc, map (default), ndcg@10, ndcg-nc, mrr@10, dorm@10, err@10 (with --relevant-from none), or one that --import "
        "registers; repeat to train on several",
    )
    parser.add_argument(
        "-C",
        nargs="+",
        type=POSITIVE,
        default=[1.0],
        help="weight of the training loss (default 1); of several values the best is used, by --validation and by inner folds "
        "of the training queries",
    )
    parser.add_argument("--k", type=CUTOFF, help="rank cutoff of criteria named without one (default 10); none for no cutoff")
    parser.add_argument(
        "--feature-map",
        action="append",
        metavar="NAME",
        help="auto (default), po, mrr, dorm or 'dorm(ties=score)'; with several criteria, one for all, or one for each",
    )
    parser.add_argument("--discount", choices=DISCOUNTS, help="discount of ndcg and dorm (default kdd08)")
    parser.add_argument("--slack", choices=["separate", "shared"], help="slacks of several criteria (default separate)")
    add_relevant_from(parser, graded=True)
    add_clean(parser)
    parser.add_argument("--tol", type=POSITIVE, help="stopping tolerance, in units of the loss (default 0.001)")
    parser.add_argument(
        "--bound",
        choices=["convex", "ramp", "auto"],
        help="bound to minimise (default convex); auto uses the ramp bound if the convex bound is vacuous",
    )
    add_jobs(parser, "threads")
    add_penalty(parser)


def run(arguments, report):
    """Run the command; `report` prints a line on stderr."""
    if given(arguments, "clean") and getattr(arguments, "relevant_from", 1) is None:
        raise ValueError("--clean needs relevant and irrelevant documents, but --relevant-from is none.")
    check_writable(arguments.output)
    check_not_read(arguments.output, [arguments.data, arguments.validation])

    from structrank import StructRankSVM
    from structrank.datasets.cleaning import clean, clean_part
    from structrank.models.fitting import keep_steps

    settings = given(arguments, *LEARNER)
    for name in ("criterion", "feature_map"):
        if len(settings.get(name, [])) == 1:
            (settings[name],) = settings[name]
    preparation = preparation_of(arguments)
    settings |= {"scale": arguments.scale, "penalty": penalty_of(arguments), "preparation": preparation}
    model = StructRankSVM(**settings, C=arguments.C[0], n_jobs=arguments.jobs, verbose=1)
    model.check_parameters()

    check_exists(arguments.data, arguments.validation)
    train, validation = read_parts(arguments, arguments.data, arguments.validation)
    learned = None
    if given(arguments, "clean") and preparation is not None:
        # Documents are dropped by their prepared values, and the others keep those of the whole query, as in serving.
        train, validation, learned = _prepared(arguments, preparation, train, validation)
        model.preparation = None
    if validation is not None:
        if given(arguments, "clean"):
            validation = clean(validation, arguments.clean, **given(arguments, "relevant_from"))
        facts = data_facts(validation, arguments)
        if len(facts["queries_without_both_kinds"]) == facts["queries"]:
            raise ValueError(f"{arguments.validation}: no query has {kinds(facts)}, so C cannot be chosen on it.")
    if given(arguments, "clean"):
        train, removed = clean_part(train, arguments.clean, **given(arguments, "relevant_from"))
        report(f"cleaned: {removed.documents:,} to {removed.left:,} documents of {arguments.data}")
    Cs = sorted(set(arguments.C))
    with stdout_to_stderr(), collecting_warnings() as warned:
        try:
            model, scores, interrupted = _train(model, train, validation, Cs, arguments.checkpoint)
        except ValueError as error:
            raise ValueError(str(error) if "checkpoint" in str(error) else f"{arguments.data}: {error}") from None
    if learned is not None:
        keep_steps(model, {"preparation": preparation}, *learned)
    save_trained(model.set_params(verbose=0), arguments.output)

    facts = {"model": arguments.output, "C": model.C}
    if scores:
        facts["held_out"] = [{"C": C, "score": score} for C, score in scores.items()]
    facts |= model_facts(model)
    lines = [("model", facts["model"])]
    if scores:
        shown = ", ".join(f"C={C:g}: {score:.4f}" for C, score in scores.items())
        lines.append(("held out", f"chose C={model.C:g} of {shown}" if len(scores) > 1 else shown))
    unseen = [note for note in facts["notes"] if note not in warned]  # the others are on stderr
    print_result(arguments, facts, lines + model_lines({**facts, "notes": unseen}))
    for edge, inner, beyond in ((0, 1, "smaller"), (-1, -2, "larger")):
        if len(scores) > 2 and Cs[edge] == model.C and scores[Cs[edge]] > scores[Cs[inner]]:
            report(f"note: C={model.C:g} is at the edge of the values given with -C; a {beyond} one may be better")
    if interrupted:
        raise KeyboardInterrupt(f"the model so far is in {arguments.output}")


def _prepared(arguments, preparation, train, validation):
    """Return training and validation data, prepared; and the fitted steps, the number of raw columns, and their names."""
    from structrank._support.checks import as_matrix
    from structrank.models.fitting import names_of_columns
    from structrank.preparation import fit_steps, prepare

    columns = getattr(train.X, "columns", None)
    names = names_of_columns(columns, train.X.shape[1])
    try:
        steps, X = fit_steps(preparation, as_matrix(train.X), train.qid, names)
    except ValueError as error:
        raise ValueError(f"{arguments.data}: {error}") from None
    if validation is not None:
        validation = replace(validation, X=prepare(steps, as_matrix(validation.X), validation.qid, names))
    return replace(train, X=X), validation, (steps, len(names), columns)


def _train(model, train, validation, Cs, checkpoint):
    """Train and choose C; return the model, the score of each C, and whether training was interrupted."""
    from structrank import choose_C

    data = train.X, train.y, train.qid
    if len(Cs) == 1:
        (model,) = model.fit_path(*data, Cs=Cs, checkpoint=checkpoint)
        scores = {} if validation is None else {model.C: model.score(validation.X, validation.y, qid=validation.qid)}
        return model, scores, model.stop_reason_ == "interrupted"
    path = choose_C(*data, model, Cs=Cs, validation=validation, checkpoint=checkpoint)
    scores = dict(zip(path.Cs, path.means.tolist(), strict=True))
    if path.interrupted or validation is not None:
        return path.trained, scores, path.interrupted
    folder = None if checkpoint is None else os.path.join(checkpoint, "whole")
    (model,) = model.fit_path(*data, Cs=[path.C], checkpoint=folder)
    return model, scores, model.stop_reason_ == "interrupted"
