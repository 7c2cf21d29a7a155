"""The Iris study: its runs are the solver's, its tables and verdicts follow from them."""

import io
import json
import shutil

import numpy as np
import pytest
from rich.console import Console

from deepprox.applications.iris import __main__ as command
from deepprox.applications.iris import rivals, run
from deepprox.applications.iris.plain import Curves
from deepprox.applications.iris.setting import CELLS, GAMMAS, MUS, PENALISED, PRINTED, TRAIN, draw_split, pose
from deepprox.applications.iris.tables import common_stop, markdown, passes, with_error
from deepprox.applications.iris.verdicts import judge
from deepprox.solve import Options, initial, solve


@pytest.fixture(scope="module")
def printed():
    return io.StringIO()


@pytest.fixture(scope="module")
def result(tmp_path_factory, printed):
    with pytest.MonkeyPatch.context() as without_r:
        without_r.setattr(shutil, "which", lambda name: None)
        out = tmp_path_factory.mktemp("iris")
        return run(splits=1, quick=True, out=out, seed=3, console=Console(file=printed, width=200))


def table(result, word):
    (found,) = (t for t in result.tables if word in t.title)
    return found


def outcomes(study):
    return {verdict.claim: verdict.outcome for verdict in judge(study)}


def test_tables_have_the_cells_of_the_paper(result):
    for word in ("Table 2", "Classification rates"):
        cells = [(float(row[0]), float(row[1])) for row in table(result, word).rows]
        assert cells == list(CELLS)
    assert [float(row[2]) for row in table(result, "Table 2").rows] == list(PRINTED.values())
    assert len(table(result, "Early stopping").rows) == len(PENALISED) + len(MUS) + 1
    assert len(table(result, "Comparison").rows) == 2 * len(GAMMAS) + 4


def test_shares_are_dense_without_a_penalty_and_fall_with_it(result):
    for mu in MUS:
        for method in ("plain", "ours"):
            assert result.study.mean("share", method, 0.0, mu) == 1
        shares = [result.study.mean("share", "ours", gamma, mu) for gamma in GAMMAS]
        assert shares == sorted(shares, reverse=True) and shares[-1] < 0.2
    assert outcomes(result.study)["ours: the share falls with gamma_w"] == "met"


def test_our_penalised_fits_are_certified(result):
    for cell in PENALISED:
        (fit,) = result.study.cell("ours", *cell).itertuples()
        assert fit.status == "converged" and fit.certificate <= 1e-6


def test_a_lane_is_the_solver_without_its_join_phase(result):
    gamma, mu = 0.67, 1.0
    problem = pose(draw_split(3, 0), gamma)
    n = result.study.plain.curves.primal.shape[1]
    rho = tuple(np.asarray(mu) for _ in problem.network.blocks)
    options = Options(join=False, rho=rho, max_iter=n, tol=0.0)
    history = solve(problem, initial(problem, 3), options).history
    curves = result.study.plain.cell(gamma, mu)
    np.testing.assert_allclose(
        TRAIN * np.array([row["objective"] for row in history]), curves.primal[0], 1e-6
    )
    np.testing.assert_array_equal([row["n_nonzero"] for row in history], np.round(83 * curves.share[0]))


def test_verdicts_follow_from_the_numbers(result):
    study = result.study
    dense = study._replace(cells=study.cells.assign(share=1.0, test=0.9))
    told = outcomes(dense)
    assert told["ours: at gamma_w 0 all weights are non-zero"] == "met"
    for claim in (
        "ours: the share falls with gamma_w",
        "ours: share at or below the paper's in the penalised cells",
        "ours: mean test rate at least 95% in the penalised cells",
        "ours: test rate at least nnet's in the penalised cells",
    ):
        assert told[claim] == "missed"
    own = "ours: test rate not below our own dense cell by more than one standard error"
    assert told[own] == "not judged"
    cells = study.cells.loc[study.cells.index.repeat(2)].reset_index(drop=True)
    two = study._replace(n_splits=2, cells=cells.assign(test=np.where(cells.gamma > 0, 0.9, 1.0)))
    assert outcomes(two)[own] == "missed"
    assert outcomes(two._replace(cells=cells.assign(test=1.0)))[own] == "met"
    meet = "plain ADMM: primal and dual objective come together"
    curves = study.plain.curves
    together = study.plain._replace(curves=curves._replace(dual=1.005 * curves.primal))
    apart = study.plain._replace(curves=curves._replace(dual=1.02 * curves.primal))
    assert outcomes(study._replace(plain=together))[meet] == "met"
    assert outcomes(study._replace(plain=apart))[meet] == "missed"


def test_without_r_stored_rates_are_shown_and_said_to_be(result, printed):
    assert rivals.ABSENT in result.notes and rivals.INSTALL in printed.getvalue()
    of_r = result.study.rivals[result.study.rivals.method.str.startswith("R ")]
    assert set(of_r.method) == {"R nnet, size 10", "R e1071 svm"} and len(of_r) == 40
    assert of_r.source.str.startswith("stored, R 4").all()


def test_r_gives_the_stored_rates_again():
    rscript = rivals.find_r()
    if rscript is None:
        pytest.skip("R with nnet and e1071 is not here")
    found, kept = rivals.with_r(rscript, 0, 2), rivals.stored()
    if set(found.source.radd("stored, ")) != set(kept.source):
        pytest.skip("another version of R than the one that the stored rates are from")
    kept = kept[kept.split < 2].reset_index(drop=True)
    np.testing.assert_allclose(found[["train", "test"]], kept[["train", "test"]], atol=1e-5)


def test_a_broken_r_is_said_to_be_broken(tmp_path):
    broken = tmp_path / "Rscript"
    broken.write_text("#!/bin/sh\necho no such package >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(RuntimeError, match="no such package"):
        rivals.with_r(str(broken), 0, 1)


def test_everything_is_saved(result, printed):
    names = {path.name: path for path in result.files}
    assert all(path.stat().st_size > 500 for path in result.files)
    for picture in ("figure1.png", "figure2.png", "shares.png"):
        assert names[picture].read_bytes().startswith(b"\x89PNG")
    record = json.loads(names["result.json"].read_text())
    assert [verdict["claim"] for verdict in record["verdicts"]] == [v.claim for v in result.verdicts]
    page = names["tables.md"].read_text(encoding="utf-8")
    assert all(markdown(t) in page for t in result.tables)
    assert all(f"{v.outcome:<10} {v.claim}" in printed.getvalue() for v in result.verdicts)


def test_splits_are_disjoint_and_seeded():
    split, again, other = draw_split(1, 0), draw_split(1, 0), draw_split(1, 1)
    assert split.X.shape == (105, 4) and split.X_test.shape == (45, 4)
    np.testing.assert_array_equal(split.X, again.X)
    assert not np.array_equal(split.y, other.y)
    np.testing.assert_allclose(split.X.mean(0), 0, atol=1e-12)
    raw = draw_split(1, 0, standardize=False)
    together = np.concatenate([raw.X, raw.X_test])
    assert together.sum() == pytest.approx(2078.7)  # centimetres of all flowers


def test_stops_and_gaps_of_known_curves():
    share = np.array([0.9, 0.5, 0.4, 0.3])
    assert passes(share, 0.4) == 3 and passes(share, 0.2) is None
    shares = [np.array([1.0, PRINTED[cell], 0.0]) for cell in PENALISED]
    assert common_stop(shares, MUS) == (2, 0.0)
    primal = np.full((1, 20), 10.0)
    dual = primal + np.r_[np.full(18, 5.0), 0.1, -0.2]
    assert Curves(primal, dual, None, None, None).gap() == pytest.approx([0.02])
    assert with_error([0.9, 1.0], 1, 100) == "95.0 ± 5.0" and with_error([0.5], 2) == "0.50"


def test_the_command_passes_its_options_on(monkeypatch, tmp_path):
    given = []
    monkeypatch.setattr(command, "run", lambda *options: given.extend(options))
    monkeypatch.setattr(
        "sys.argv", ["iris", "--splits", "2", "--quick", "--out", str(tmp_path), "--seed", "5"]
    )
    command.main()
    assert given == [2, True, tmp_path, 5]


def test_bad_options_are_refused(tmp_path):
    with pytest.raises(ValueError, match="splits must be at least 1"):
        run(splits=0, out=tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="out must be a folder"):
        run(out=tmp_path / "file")
