"""The command that compiles ahead."""

import json

from structrank import cli


def test_warmup_reports_what_it_compiled(capsys):
    assert cli.main(["warmup", "auc", "--json"]) == 0
    out, err = capsys.readouterr()
    assert set(json.loads(out)["compiled"]) == {"LETOR files", "auc"}
    assert err.splitlines()[-1].startswith("structrank warmup: auc: ")


def test_an_unknown_criterion_is_an_error_before_any_work(capsys):
    assert cli.main(["warmup", "auc", "maps"]) == 2
    assert capsys.readouterr().err.startswith("structrank warmup: error: CRITERION maps is not known")
