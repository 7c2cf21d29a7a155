"""Units that do not pay: what is left out lowers the objective, and what is tried is sorted and undone."""

import numpy as np
import pytest

from deepprox import links, penalties
from deepprox.joining.join import join
from deepprox.joining.kinks import no_slopes
from deepprox.joining.point import look
from deepprox.joining.pruning import Less, lasts, missed_least, prune, to_the_end
from stages.problems import problem


def quiet(phase, rows):
    pass


def teller(told):
    return lambda phase, rows: told.append((phase, rows))


def level(posed, W):
    return float(look(posed, W, no_slopes(posed), 1.0).objective)


def n_live(W):
    return [int(w[:, 1:].any(0).sum()) for w in W[1:]]


@pytest.fixture(scope="module", params=[links.ReLU(), links.Tanh()], ids=str)
def joined(request):
    """Certified minima of several starts, all units kept."""
    out = []
    for seed in range(6):
        posed, W = problem(request.param, penalties.L1(np.asarray(0.05)), seed=seed)
        out.append((posed, join(posed, W, 1e-6, 1000, quiet)))
    return out


def test_pruning_never_raises_the_objective(joined):
    fewer = 0
    for posed, found in joined:
        told: list = []
        less = prune(posed, found.W, 1e-6, 400, 2, teller(told))
        assert less.objective == pytest.approx(level(posed, less.W), rel=1e-12)
        if less.memory is None:
            assert less.W is found.W and less.lasts > 1 and not any(rows for _, rows in told)
        else:
            assert less.objective < found.objective and sum(n_live(less.W)) < sum(n_live(found.W))
            assert {phase for phase, rows in told if rows} == {"prune"}
            fewer += 1
    assert fewer


def test_left_out_units_stay_out(joined):
    for posed, found in joined:
        for trial in missed_least(posed, found.W):
            gone = ~trial[1][:, 1:].any(0)
            after = to_the_end(posed, trial, np.inf, 1e-6, 50).W
            assert not after[0][gone].any() and not after[1][:, 1:][:, gone].any()


def test_what_is_missed_least_comes_first():
    posed, W = problem(links.ReLU(), hidden=(4, 3))
    W[1][2] = 0
    W[2][:, 3] = 0  # a unit of the second block is dead
    trials = missed_least(posed, W)
    levels = [level(posed, trial) for trial in trials]
    assert len(trials) == 6 and levels == sorted(levels)
    assert {tuple(n_live(trial)) for trial in trials} == {(3, 2), (4, 1)}


def test_units_pay_until_the_penalty_is_stronger():
    network = Less((), 2.0, 0.5, [], None)
    smaller = Less((), 2.25, 1.5, [], None)
    times = lasts(network, smaller)
    assert 0.5 + times * 1.5 == pytest.approx(1.5 + times * 0.75) and times > 1
    assert lasts(network, Less((), 2.25, 0.25, [], None)) == np.inf  # the smaller one is charged more


def test_trials_in_vain_leave_no_trace(joined):
    for posed, found in joined:
        told: list = []
        again = join(posed, found.W, 1e-6, 500, teller(told), warm=True, memory=found.memory, tries=1)
        assert again.status == "converged" and again.objective <= found.objective * (1 + 1e-9)
        assert again.n_iter == sum(len(rows) for _, rows in told)
        assert (again.lasts is None) == (not any(n_live(found.W)))
