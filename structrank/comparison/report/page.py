"""The report as HTML.

Names, ids and notes come from the data: they are escaped here, and set as text by the script.
"""

from __future__ import annotations

import collections
import datetime
import json
import math
import string
from html import escape

from structrank._support import html
from structrank._support.files import check_writable
from structrank.comparison.rendering import BELOW, VACUOUS, explanations, short_notes
from structrank.comparison.report.contents import N_TOP, gather

_UNDEFINED = "\N{EN DASH}"
# How many different labels the summary of the data counts one by one.
_MOST_LABELS = 8
_SORTABLE = ' class="sortable"'


def write_report(table, path):
    """Write the report of a `CriterionTable`, see `CriterionTable.to_report`."""
    check_writable(path)
    title = f"StructRank report: {', '.join(table.datasets)}"
    script = html.resource("report.js", "structrank.comparison.report")
    html.write_page(path, "the report", title, render(gather(table)), script=script)


def render(contents):
    """Return the body of the page of `Contents`."""
    table = contents.table
    return string.Template(html.resource("report.html", "structrank.comparison.report")).substitute(
        summary=escape(_summary(table)),
        criterion_table=_criterion_table(table),
        legend=_legend(table),
        tests=_tests(table),
        notes=_notes(table),
        limits=_limits(contents),
        data_summary=_data_summary(contents),
        settings=_settings(contents),
        versions=html.pairs(contents.versions),
        data=_as_json(contents.data),
    )


def _as_json(data):
    """Return JSON without <, > and &, so that it cannot end a script element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


# ---- Parts of HTML


def _head(text, number=False, sortable=False):
    """Return a column header; a sortable one has a button, which the keyboard reaches too."""
    kind = ' class="number"' if number else ""
    if not sortable:
        return f'<th scope="col"{kind}>{escape(text)}</th>'
    return f'<th scope="col"{kind} aria-sort="none"><button type="button">{escape(text)}</button></th>'


def _cell(text, value=None, style=""):
    """Return a cell with text; `value` is the number to sort by."""
    if value is None:
        return f"<td>{escape(text)}</td>"
    value = "" if math.isnan(value) else repr(float(value))
    classes = f"number {style}".strip()
    return f'<td class="{classes}" data-value="{value}">{escape(text)}</td>'


def _count(number, noun):
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


# ---- Sections


def _summary(table):
    n_queries = sum(table.n_queries.values())
    parts = [_count(len(table.trainers), "trainer"), _count(len(table.datasets), "data set")]
    parts += [_count(n_queries, "test query"), datetime.date.today().isoformat()]
    return " · ".join(parts)


def _criterion_table(table):
    marks = table.marks()
    groups = "".join(
        f'<th class="start" scope="colgroup" colspan="{len(table.measures)}">{escape(dataset)} '
        f"<small>{escape(_count(table.n_queries[dataset], 'query'))}</small></th>"
        for dataset in table.datasets
    )
    heads = [_head("Trained on", sortable=True)]
    heads += [_head(measure, number=True, sortable=True) for _, measure in table.columns]
    noted = {trainer for trainer, _, _ in table.notes}
    body = []
    for name in table.trainers:
        sign = ' <a class="noted" href="#notes" title="has notes on training">!</a>' if name in noted else ""
        cells = [f'<th scope="row"><span>{escape(name)}</span>{sign}</th>']
        for dataset, measure in table.columns:
            mean, mark = table.means[name, dataset, measure], marks[name, dataset, measure]
            styles = [{"**": "best", "*": "second"}.get(mark.rstrip("<v"), "")]
            styles += [style for sign, style in (("<", "below"), ("v", "vacuous")) if sign in mark]
            styles.append("start" if measure == table.measures[0] else "")
            text = _UNDEFINED if math.isnan(mean) else f"{mean:.3f}"
            cells.append(_cell(text, mean, " ".join(filter(None, styles))))
        body.append(cells)
    if table.n_above < len(body):  # sorting moves the rule with its row
        body[table.n_above] = f'<tr class="rule">{"".join(body[table.n_above])}</tr>'
    inside = html.table([["<td></td>", groups], heads], body, f'{_SORTABLE} id="criterion-table"')
    return html.scroll("Criterion table", inside)


def _legend(table):
    marks = [
        ("best", "0.9", "best of its column"),
        ("second", "0.8", "second best"),
        ("below", "0.7", BELOW.replace("<=", "≤")),
    ]
    if any(table.vacuous.values()):
        marks.append(("vacuous", "0.6", VACUOUS))
    items = [f'<li><span class="sample {style}">{text}</span> {escape(what)}</li>' for style, text, what in marks]
    if table.notes:
        items.append('<li><span class="sample noted">!</span> has notes on training</li>')
    lines = "".join(f"<p>{escape(text)}.</p>" for text in explanations(table))
    return f'<ul class="legend">{"".join(items)}</ul>{lines}'


def _tests(table):
    frame = table.significance()
    if frame.empty:
        return ""
    heads = [_head(text, sortable=True) for text in ("Data set", "Measure", "Trained on", "Best")]
    names = ("difference", "p_t", "p_t_holm", "p_randomisation", "p_randomisation_holm")
    texts = ("Difference", "t-test", "t-test, Holm", "randomisation", "randomisation, Holm")
    heads += [_head(text, number=True, sortable=True) for text in texts]
    body = []
    for place, record in zip(frame.index, frame.to_dict("records"), strict=True):
        numbers = [record[name] for name in names]
        shown = [f"{numbers[0]:+.4f}".replace("-", "\N{MINUS SIGN}"), *(f"{p:.2g}" for p in numbers[1:])]
        shown = [_UNDEFINED if math.isnan(number) else text for number, text in zip(numbers, shown, strict=True)]
        cells = [_cell(str(text)) for text in (*place, record["best"])]
        body.append(cells + [_cell(text, number) for text, number in zip(shown, numbers, strict=True)])
    return (
        "<details><summary>Paired tests against the best, in full</summary><p>Two-sided p-values, paired by query, and "
        "corrected for the number of rows of the column by Holm's method. The best row is chosen on the same queries, so "
        "p-values are optimistic about differences from it.</p>"
        f"{html.scroll('Paired tests', html.table([heads], body, _SORTABLE))}</details>"
    )


def _notes(table):
    if not table.notes:
        return ""
    full = "".join(
        f"<li><b>{escape(trainer)}</b>, {escape(dataset)}, fold {fold + 1}: {escape(text)}</li>"
        for (trainer, dataset, fold), texts in table.notes.items()
        for text in texts
    )
    return (
        f'<section class="callout" id="notes" aria-labelledby="notes-head"><h3 id="notes-head">Notes on training</h3>'
        f"{html.items(short_notes(table))}<details><summary>All notes in full</summary><ul>{full}</ul></details></section>"
    )


def _limits(contents):
    """Return a sentence on what the report omits of single queries; empty if nothing."""
    datasets = contents.data["datasets"]
    n_queries = sum(dataset["nQueries"] for dataset in datasets)
    n_valued = sum(len(dataset["ids"]) for dataset in datasets)
    n_ranked = sum(ranking is not None for dataset in datasets for ranking in dataset["rankings"])
    texts = []
    if n_valued < n_queries:
        texts.append(
            f"To keep the file small, it holds the values of {n_valued:,} of {n_queries:,} test queries: those on which the "
            "trainers differ most. Counts are of all queries."
        )
    if n_ranked < n_valued:
        texts.append(
            f"To keep the file small, it holds the rankings of {n_ranked:,} of {n_queries:,} test queries: those on which "
            "the trainers differ most."
        )
    longest = max((ranking["nDocs"] for dataset in datasets for ranking in dataset["rankings"] if ranking), default=0)
    if longest > N_TOP:
        texts.append(f"Rankings are cut after {N_TOP} documents.")
    return "".join(f'<p class="quiet">{escape(text)}</p>' for text in texts)


def _data_summary(contents):
    sections = [_describe_dataset(contents, dataset) for dataset in contents.table.datasets]
    least = "above 0" if contents.relevant_from is None else f"of at least {contents.relevant_from:g}"
    sections.append(
        f'<p class="quiet">A query of one kind has only documents with a label {least}, or none: it carries no training '
        "signal, and its AUC is undefined.</p>"
    )
    return "".join(sections)


def _describe_dataset(contents, dataset):
    title = f"<h3>{escape(dataset)}</h3>"
    parts = [part for part in contents.parts if part["data set"] == dataset]
    if contents.table.n_folds[dataset] == 1:
        return title + _parts_table(dataset, parts)
    pooled = _parts_table(f"{dataset}, test parts", [_pooled([part for part in parts if part["part"] == "test"])])
    return f"{title}{pooled}<details><summary>All folds and parts</summary>{_parts_table(dataset, parts)}</details>"


def _pooled(parts):
    """Add up the test parts of all folds."""
    labels = collections.Counter()
    for part in parts:
        labels.update(part["labels"])
    sums = {name: sum(part[name] for part in parts) for name in ("n_docs", "n_queries", "one_kind")}
    return {**parts[0], **sums, "labels": labels, "fold": None}


def _parts_table(name, parts):
    labels = sorted({label for part in parts for label in part["labels"]})
    rest = labels[_MOST_LABELS:] if len(labels) > _MOST_LABELS + 1 else []
    labels = labels[: len(labels) - len(rest)]
    texts = ["Documents", "Queries", "Features", "Queries of one kind", *(f"Label {label:g}" for label in labels)]
    texts += [f"{len(rest)} other labels"] if rest else []
    heads = [_head("Fold"), _head("Part"), *(_head(text, number=True) for text in texts)]
    body = []
    for part in parts:
        counts = [part[name] for name in ("n_docs", "n_queries", "n_features", "one_kind")]
        counts += [part["labels"].get(label, 0) for label in labels]
        counts += [sum(part["labels"].get(label, 0) for label in rest)] if rest else []
        cells = [_cell("all" if part["fold"] is None else str(part["fold"] + 1)), _cell(part["part"])]
        body.append(cells + [_cell(f"{count:,}", count) for count in counts])
    return html.scroll(f"Data of {name}", html.table([heads], body))


def _settings(contents):
    table = contents.table
    texts = {f"measure {name}": text or "no settings" for name, text in table.measure_settings.items()}
    texts |= contents.settings
    chosen = sorted({cell.C for cell in table.cells if cell.C is not None})
    if chosen:
        texts["C chosen"] = ", ".join(f"{C:g}" for C in chosen)
    texts["seed of the tests"] = str(table.random_state)
    inside = html.pairs(texts)
    if contents.trainer_settings:
        inside += f"<h3>Trainers</h3>{html.pairs(contents.trainer_settings)}"
    return inside
