"""``structrank train``: train a model and save it."""

from __future__ import annotations

from structrank.cli.descriptions import data_facts, kinds, model_facts, model_lines
from structrank.cli.input import check_not_read, check_writable, read_data
from structrank.cli.options import (
    CUTOFF,
    DISCOUNTS,
    POSITIVE,
    add_clean,
    add_command,
    add_jobs,
    add_relevant_from,
    given,
    naming_options,
    with_options,
)
from structrank.cli.output import print_json, print_lines, stdout_to_stderr

_PARAMETERS = ("criterion", "feature_map", "k", "discount", "slack", "relevant_from", "tol", "bound")


def add_train(commands):
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "train",
        run,
        "train a model and save it",
        """
          structrank train train.txt -o map.structrank
          structrank train train.txt --criterion ndcg --k 5 -C 0.1 1 10 100 --validation vali.txt -o ndcg.structrank
          structrank train train.txt --criterion map --criterion ndcg-nc --slack shared -o combo.structrank
          structrank train train.txt --import my_criteria --criterion precision --k 5 -o precision.structrank
        """,
        _PARAMETERS,
    )
    parser.add_argument("data", metavar="DATA", help="file in LETOR format")
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="file for the model")
    parser.add_argument(
        "--criterion",
        action="append",
        metavar="NAME",
        help="auc, map (default), ndcg, ndcg-nc, mrr, dorm, or one that --import registers; repeat to train on several",
    )
    parser.add_argument(
        "-C",
        nargs="+",
        type=POSITIVE,
        default=[1.0],
        help="weight of the training loss (default 1); with several values, the best on --validation is used",
    )
    parser.add_argument(
        "--validation", default=None, metavar="FILE", help="choose C by the criterion's own measure on these data"
    )
    parser.add_argument("--k", type=CUTOFF, help="rank cutoff of ndcg, mrr and dorm (default 10); none for no cutoff")
    parser.add_argument(
        "--feature-map",
        action="append",
        metavar="NAME",
        help="auto (default), po, mrr or dorm; with several criteria, one for all, or repeat the option, one for each",
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
    parser.add_argument(
        "--scale-columns",
        dest="column_scale",
        choices=["std"],
        default=None,
        help="std: divide columns by their standard deviation within queries while training (default: as they are)",
    )
    parser.add_argument(
        "--checkpoint", default=None, metavar="FOLDER", help="folder for checkpoints, so that an interrupted run can resume"
    )
    add_jobs(parser, "threads")


def run(arguments, report):
    """Run the command; `report` prints a line on stderr."""
    if len(arguments.C) > 1 and arguments.validation is None:
        raise ValueError("several values of C need --validation FILE, on which the best is chosen.")
    if given(arguments, "clean") and getattr(arguments, "relevant_from", 1) is None:
        raise ValueError("--clean needs relevant and irrelevant documents, but --relevant-from is none.")
    check_writable(arguments.output)
    check_not_read(arguments.output, [arguments.data, arguments.validation])

    from structrank import StructRankSVM
    from structrank.datasets.cleaning import clean, clean_part
    from structrank.datasets.letor import conform

    settings = given(arguments, *_PARAMETERS)
    for name in ("criterion", "feature_map"):
        if len(settings.get(name, [])) == 1:
            (settings[name],) = settings[name]
    model = StructRankSVM(**settings, C=arguments.C[0], scale=arguments.column_scale, n_jobs=arguments.jobs, verbose=1)
    with naming_options(*_PARAMETERS):
        model.check_parameters()

    train = read_data(arguments, arguments.data)
    Cs, validation = sorted(set(arguments.C)), None
    if arguments.validation is not None:
        train, validation = conform([train, read_data(arguments, arguments.validation)])
        if given(arguments, "clean"):
            validation = clean(validation, arguments.clean, **given(arguments, "relevant_from"))
        facts = data_facts(validation, arguments)
        if len(facts["queries_without_both_kinds"]) == facts["queries"]:
            raise ValueError(f"{arguments.validation}: no query has {kinds(facts)}, so C cannot be chosen on it.")
    if given(arguments, "clean"):
        train, removed = clean_part(train, arguments.clean, **given(arguments, "relevant_from"))
        report(f"cleaned: {removed.documents:,} to {removed.left:,} documents of {arguments.data}")
    with naming_options("checkpoint"), stdout_to_stderr():
        try:
            models = model.fit_path(train.X, train.y, qid=train.qid, Cs=Cs, checkpoint=arguments.checkpoint)
        except ValueError as error:
            raise ValueError(str(error) if "checkpoint" in str(error) else f"{arguments.data}: {error}") from None
    interrupted = len(models) < len(Cs) or any(model.stop_reason_ == "interrupted" for model in models)
    Cs = [model.C for model in models]
    reached = None
    if validation is not None:
        reached = [model.score(validation.X, validation.y, qid=validation.qid) for model in models]
    best = reached.index(max(reached)) if reached else len(models) - 1
    model = models[best].set_params(verbose=0)
    model.save(arguments.output)

    facts = {"model": arguments.output, "C": Cs[best]}
    if reached:
        facts["validation"] = [{"C": C, "score": score} for C, score in zip(Cs, reached, strict=True)]
    facts |= model_facts(model)
    facts["notes"] = [with_options(note, _PARAMETERS) for note in facts["notes"]]
    if arguments.json:
        print_json(facts)
    else:
        lines = [("model", facts["model"])]
        if reached:
            scores = ", ".join(f"C={C:g}: {score:.4f}" for C, score in zip(Cs, reached, strict=True))
            lines.append(("validation", f"chose C={Cs[best]:g} of {scores}"))
        print_lines(lines + model_lines(facts))
    if interrupted:
        raise KeyboardInterrupt(f"the model so far is in {arguments.output}")
