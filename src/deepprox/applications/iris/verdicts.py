"""What the paper claims and what we claim, judged by the numbers of the run."""

from typing import NamedTuple

import numpy as np

from deepprox.applications.iris.setting import CELLS, GAMMAS, MUS, PENALISED, PRINTED
from deepprox.applications.iris.tables import TOGETHER, Study, standard_error

ENOUGH = 0.95  # mean test rate that a sparse network should have

METHODS = {"plain": "plain ADMM", "ours": "ours"}


class Verdict(NamedTuple):
    """A claim, "met", "missed" or "not judged", and the numbers that say so."""

    claim: str
    outcome: str
    evidence: str


def judge(study: Study) -> list[Verdict]:
    """All verdicts."""
    both = [check(study, method) for method in METHODS for check in (dense_is_dense, share_falls)]
    dense = [as_good_as_dense(study, method) for method in ("ours", "plain")]
    return [
        *both,
        sparser_than_printed(study),
        accurate(study),
        *dense,
        beside_nnet(study),
        curves_meet(study),
    ]


def dense_is_dense(study: Study, method: str) -> Verdict:
    """All weights are non-zero without a penalty."""
    shares = [study.cell(method, 0.0, mu).share.min() for mu in MUS]
    claim = f"{METHODS[method]}: at gamma_w 0 all weights are non-zero"
    return _verdict(claim, min(shares) == 1, f"lowest share {min(shares):.3f}")


def share_falls(study: Study, method: str) -> Verdict:
    """The mean share falls at every step of gamma_w, for every mu."""
    shares = np.array([[study.mean("share", method, gamma, mu) for gamma in GAMMAS] for mu in MUS])
    told = "; ".join(f"mu {mu:g}: " + ", ".join(f"{s:.3f}" for s in row) for mu, row in zip(MUS, shares))
    return _verdict(
        f"{METHODS[method]}: the share falls with gamma_w", bool((np.diff(shares) < 0).all()), told
    )


def sparser_than_printed(study: Study) -> Verdict:
    """Our mean share is at or below the paper's in every penalised cell."""
    shares = {cell: study.mean("share", "ours", *cell) for cell in PENALISED}
    good = [shares[cell] <= PRINTED[cell] for cell in PENALISED]
    nearest = max(PENALISED, key=lambda cell: shares[cell] - PRINTED[cell])
    pair = f"{shares[nearest]:.3f} against {PRINTED[nearest]:.2f}"
    told = f"{sum(good)} of 9 cells; nearest {pair} at {_at(nearest)}"
    return _verdict("ours: share at or below the paper's in the penalised cells", all(good), told)


def accurate(study: Study) -> Verdict:
    """Our mean test rate is at least 95 % in every penalised cell."""
    rates = {cell: study.mean("test", "ours", *cell) for cell in PENALISED}
    worst = min(rates, key=rates.__getitem__)
    good = [rate >= ENOUGH for rate in rates.values()]
    told = f"{sum(good)} of 9 cells; lowest {rates[worst]:.1%} at {_at(worst)}"
    return _verdict(f"ours: mean test rate at least {ENOUGH:.0%} in the penalised cells", all(good), told)


def as_good_as_dense(study: Study, dense_method: str) -> Verdict:
    """Split by split, our test rate is on average not below a dense one by more than a standard error.

    The plain ADMM's dense network is stopped on its way, our own is not: that may tell them apart.
    """
    whose = "our own" if dense_method == "ours" else "the plain ADMM's"
    claim = f"ours: test rate not below {whose} dense cell by more than one standard error"
    if study.n_splits < 2:
        return Verdict(claim, "not judged", "one split has no standard error")
    lacks = {}
    for gamma, mu in PENALISED:
        dense = study.cell(dense_method, 0.0, mu).test.to_numpy()
        difference = study.cell("ours", gamma, mu).test.to_numpy() - dense
        lacks[gamma, mu] = difference.mean(), standard_error(difference)
    good = [mean >= -error for mean, error in lacks.values()]
    worst = min(lacks, key=lambda cell: lacks[cell][0] + lacks[cell][1])
    mean, error = lacks[worst]
    told = f"{sum(good)} of 9 cells; least {100 * mean:+.1f} ± {100 * error:.1f} points at {_at(worst)}"
    return _verdict(claim, all(good), told)


def beside_nnet(study: Study) -> Verdict:
    """Our lowest mean test rate over the penalised cells is at least nnet's."""
    nnet = study.rivals[study.rivals.method.str.contains("nnet")]
    lowest = min(study.mean("test", "ours", *cell) for cell in PENALISED)
    told = f"lowest {lowest:.1%}, nnet {nnet.test.mean():.1%} ({nnet.source.iloc[0]}, {len(nnet)} splits)"
    return _verdict(
        "ours: test rate at least nnet's in the penalised cells", lowest >= nnet.test.mean(), told
    )


def curves_meet(study: Study) -> Verdict:
    """Primal and dual objective of the plain ADMM end together, in every cell and every split."""
    gaps = {cell: study.plain.cell(*cell).gap() for cell in CELLS}
    apart = [cell for cell in CELLS if (gaps[cell] > TOGETHER).any()]
    told = f"{len(CELLS) - len(apart)} of {len(CELLS)} cells within {TOGETHER:.0%} in all splits"
    if apart:
        told += "; apart at " + ", ".join(
            f"{_at(c)} ({(gaps[c] > TOGETHER).sum()} of {len(gaps[c])})" for c in apart
        )
    return _verdict("plain ADMM: primal and dual objective come together", not apart, told)


def _verdict(claim: str, holds: bool, evidence: str) -> Verdict:
    return Verdict(claim, "met" if holds else "missed", evidence)


def _at(cell: tuple[float, float]) -> str:
    return f"gamma_w {cell[0]:g}, mu {cell[1]:g}"
