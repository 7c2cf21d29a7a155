"""Steps of the join phase: what they cost, and how far they go."""

from functools import partial

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from deepprox import links, losses, penalties
from deepprox.joining import hessian as hessian_
from deepprox.joining import kinks, quasi_newton
from deepprox.joining.certificate import flatten, ravel, unravel
from deepprox.joining.finish import At, finish, further
from deepprox.joining.model import Model
from deepprox.joining.point import look
from deepprox.solve import Options, solve
from deepprox.struct import replace
from stages.problems import problem


@pytest.mark.parametrize(
    ("penalty", "diagonal"),
    [(penalties.MCP(0.01, 20.0), True), (penalties.L2(0.1), True), (penalties.GroupL2(0.01, "input"), False)],
    ids=["MCP", "L2", "GroupL2"],
)
def test_all_columns_of_a_penalty_are_formed_only_where_it_is_not_diagonal(penalty, diagonal, monkeypatch):
    posed, W = problem(penalty=penalty, hidden=(3,))
    w, back = ravel_pytree(W)
    live, formed, columns = np.arange(w.size)[::2], [], hessian_._penalty_hessian
    monkeypatch.setattr(hessian_, "_penalty_hessian", lambda *args: formed.append(1) or columns(*args))
    H = hessian_.penalty_hessian(posed.network, W, live)
    full = jax.jit(jax.hessian(lambda v: posed.network.penalty(back(v))))(w)
    np.testing.assert_allclose(H, np.asarray(full)[np.ix_(live, live)], atol=1e-12)
    assert len(formed) == (not diagonal)


def held_solution():
    """A ReLU network on the shapes of other tests, certified with pre-activations at their kinks."""
    for seed in range(4):
        posed, W = problem(links.ReLU(), penalties.L1(0.01), hidden=(8,), n=120, seed=seed)
        found = solve(posed, [W], Options(tol=1e-6))
        if found.n_held:
            return posed, found
    raise AssertionError("no solution holds a kink")


def test_newton_steps_from_a_held_point_begin_with_its_kinks(monkeypatch):
    """A step without kinks cannot go down there, however much it is damped."""
    posed, found = held_solution()
    blocks = tuple(replace(block, penalty=penalties.L1(0.0101)) for block in posed.network.blocks)
    stronger = replace(posed, network=replace(posed.network, blocks=blocks))
    solved, minimise = [], Model.minimise
    monkeypatch.setattr(Model, "minimise", lambda *args: solved.append(1) or minimise(*args))
    end = finish(stronger, found.W, kinks.no_slopes(posed), 1.0, 1e-6, 100)
    assert end.certificate <= 1e-6 and len(solved) <= 2 * len(end.steps)


def test_a_damped_step_is_doubled_while_it_goes_down():
    posed, W = problem(penalty=penalties.L1(0.01), hidden=(5,))
    none, w = kinks.no_slopes(posed), ravel(W)
    at = partial(look, posed, slopes=none, step=1.0)
    start = at(W=W)
    slope = np.asarray(start.gradient) + np.asarray(start.penalty_gradient)
    side, free = np.where(np.asarray(start.kinked), np.sign(w), 0), np.arange(w.size)
    short = unravel(w - 1e-3 * slope, W)
    before = At(W, none, start, 1.0, free=free)
    after = further(posed, before, before._replace(W=short, point=at(W=short)), side)
    end, point = after.W, after.point
    assert float(point.objective) < float(at(W=short).objective) < float(start.objective)
    assert (ravel(end) * side >= 0).all() and (ravel(end)[side != 0] == 0).any()
    doublings = np.log2(np.abs(ravel(end) - w).max() / np.abs(1e-3 * slope).max())
    assert doublings > 2
    # the next would have been higher
    again = w - 2 * 2 ** round(doublings) * 1e-3 * slope
    again = unravel(np.where(again * side < 0, 0, again), W)
    assert float(at(W=again).objective) >= float(point.objective)


def test_a_refused_trial_is_cut_to_the_minimum_along_its_direction():
    """Squared loss of one block is a parabola along every direction."""
    posed, W = problem(penalty=penalties.Zero(), hidden=(), loss=losses.Squared())
    W = tuple(np.zeros_like(w) for w in W)

    @jax.jit
    def scaled(size):
        w, flat = flatten(replace(posed, X=size * posed.X), W)
        loss, g = flat.loss_and_gradient(w)
        bend = jax.jvp(lambda v: flat.loss_and_gradient(v)[1], (w,), (g,))[1]
        after, ok = quasi_newton.advance(flat, quasi_newton.start(w, loss, loss, g, 1.0))
        # the first trial is g / |g|_1 long
        return abs(g).sum() * (g @ g) / (g @ bend), after.share, ok

    def best_size(wanted):
        size = 100.0
        for _ in range(8):  # the share falls as what is read grows, nearly in proportion
            size *= float(scaled(size)[0]) / wanted
        return size

    for wanted, cut in ((0.35, 0.35), (0.01, quasi_newton.LEAST_CUT)):
        exact, share, ok = scaled(best_size(wanted))
        assert float(exact) == pytest.approx(wanted, rel=1e-6)
        assert not ok and float(share) == pytest.approx(cut, rel=1e-6)
