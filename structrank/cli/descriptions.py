"""Descriptions of models and data, as a dict for JSON and as lines of text."""

from __future__ import annotations

from structrank.cli.options import given

_N_SHOWN = 10  # weights, query ids


def model_facts(model):
    """Describe a model as a dict."""
    facts = {"class": type(model).__name__, "parameters": model.get_params(deep=False)}
    if hasattr(model, "preparation_"):
        from structrank.models.ranker import raw_names
        from structrank.preparation import describe

        facts["parameters"]["preparation"] = [repr(step) for step in model.preparation_]
        facts["preparation"] = describe(model.preparation_, raw_names(model))
    elif "preparation" in facts["parameters"]:
        del facts["parameters"]["preparation"]  # None
    if hasattr(model, "n_features_in_"):
        facts["features"] = model.n_features_in_
    if hasattr(model, "certificate_"):
        facts |= _training_facts(model)
    return facts


def _training_facts(model):
    """Describe the training of a structured SVM."""
    names = getattr(model.after_preparation(), "feature_names_in_", None)
    names = range(1, model.coef_.size + 1) if names is None else names.tolist()  # LETOR counts from 1
    weights = sorted(zip(names, model.coef_.tolist(), strict=True), key=lambda pair: -abs(pair[1]))
    certificate, rounds = model.certificate_, getattr(model, "rounds_", ())
    kind = rounds[0].kind if rounds else None
    return {
        "iterations": model.n_iter_,
        "stop_reason": model.stop_reason_,
        "notes": list(model.notes_),
        "ramp": kind == "prediction",
        "convex": kind is None,
        "certificate": {"primal": certificate.primal, "dual": certificate.dual, "gap": certificate.gap},
        "health": vars(model.health_),
        "polish": vars(model.polish_) if hasattr(model, "polish_") else None,
        "weights": [{"feature": name, "weight": weight} for name, weight in weights],
    }


def model_lines(facts):
    """Return the lines that show the facts of a model."""
    lines = [
        ("class", facts["class"]),
        ("trained", ", ".join(f"{name}={value!r}" for name, value in facts["parameters"].items())),
    ]
    if "features" in facts:
        lines.append(("features", facts["features"]))
    for step in facts.get("preparation", ()):
        lines.append(("preparation", step["step"]))
        constants = [f"{name} {value:.6g}" for name, value in step["constants"].items()]
        if constants:
            lines.append(("", ", ".join(constants[:_N_SHOWN]) + (", ..." if len(constants) > _N_SHOWN else "")))
    return lines + _training_lines(facts) if "certificate" in facts else lines


def _training_lines(facts):
    first, last = facts["certificate"]["dual"], facts["certificate"]["primal"]
    health = facts["health"]
    which = "" if facts["convex"] else f"of the last convex problem solved{' for the ramp bound' if facts['ramp'] else ''}: "
    lines = [
        ("iterations", f"{facts['iterations']}, {facts['stop_reason']}"),
        ("certificate", f"{which}objective {last:.6g}; the optimum lies between {first:.6g} and {last:.6g}"),
        (
            "health",
            f"objective {health['objective_ratio']:.4g} times that of w = 0; |w| {health['norm']:.4g}; "
            f"mean slack {health['mean_slack']:.4g}",
        ),
    ]
    if health["parts"]:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in health["parts"].items())
        lines.append(("", f"shares of the criteria in the gradient norm at 0: {shares}"))
    if facts["polish"] and facts["polish"]["steps"]:
        before, after = facts["polish"]["train"]
        text = f"{facts['polish']['measure']} of the training queries {before:.4f} -> {after:.4f}"
        lines.append(("polished", f"{text}; certificate and health are those of the weights before polishing"))
    lines += [("note", text) for text in facts["notes"]]
    shown = facts["weights"][:_N_SHOWN]
    lines.append(("weights", f"the {len(shown)} largest of {len(facts['weights'])}"))
    return lines + [("", f"{entry['weight']:<+13.6g}feature {entry['feature']}") for entry in shown]


def data_facts(data, arguments):
    """Describe a data set as a dict."""
    import numpy as np

    from structrank import metrics

    settings = given(arguments, "relevant_from")
    graded = "relevant_from" in settings and settings["relevant_from"] is None
    measure = metrics.PairAccuracy() if graded else metrics.AUC(**settings)
    defined = metrics.evaluate(data.y, np.zeros(len(data)), data.qid, measure, per_query=True)
    (values,) = defined.values()
    sizes = np.unique(data.qid, return_counts=True)[1]
    labels, counts = np.unique(data.y, return_counts=True)
    return {
        "rows": len(data),
        "queries": defined.n_queries,
        "features": data.X.shape[1],
        "feature_names": list(getattr(data.X, "columns", ())),
        "labels": {f"{label:g}": count for label, count in zip(labels.tolist(), counts.tolist(), strict=True)},
        "documents_per_query": {"least": sizes.min(), "median": float(np.median(sizes)), "most": sizes.max()},
        "relevant_from": None if graded else measure.relevant_from,
        "queries_without_both_kinds": defined.query_ids[np.isnan(values)].tolist(),
        "document_ids": data.docid is not None,
    }


def shard_facts(folder):
    """Describe a folder of shards as a dict, after comparing all files with their checksums."""
    from structrank import datasets

    shards = datasets.open_shards(folder)
    for shard in shards:
        shard.verify()
    checked = sum(len(shard.checksums) for shard in shards)
    return {"parts": len(shards), "rows": shards.n_docs, "features": shards.n_features, "verified_files": checked}


def shard_lines(facts):
    """Return the lines that show the facts of a folder of shards."""
    n = facts["verified_files"]
    found = f"{n} files agree with their checksums" if n else "none, so damage is not detected; write_shards adds checksums"
    return [("parts", facts["parts"]), ("rows", facts["rows"]), ("features", facts["features"]), ("checksums", found)]


def kinds(facts):
    """Return a phrase for the documents that a query must have to be used."""
    lowest = facts["relevant_from"]
    return "different labels" if lowest is None else f"both relevant (label >= {lowest:g}) and irrelevant documents"


def data_lines(facts):
    """Return the lines that show the facts of a data set."""
    sizes, without = facts["documents_per_query"], facts["queries_without_both_kinds"]
    shown, names = (
        ", ".join(map(str, all_[:_N_SHOWN])) + (", ..." if len(all_) > _N_SHOWN else "")
        for all_ in (without, facts["feature_names"])
    )
    return [
        ("rows", facts["rows"]),
        ("queries", f"{facts['queries']}, of {sizes['least']} to {sizes['most']} rows, median {sizes['median']:g}"),
        ("", f"{len(without)} without {kinds(facts)}" + (f": qid {shown}" if without else "")),
        ("features", f"{facts['features']}: {names}" if names else facts["features"]),
        ("labels", ", ".join(f"{label}: {count}" for label, count in facts["labels"].items())),
        ("document ids", "yes" if facts["document_ids"] else "no"),
    ]
