"""All Newton steps of one convex block in one program: the same minimum as by any other way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone

from deepprox import DeepRegressor, losses, penalties
from deepprox.estimators.session import Session
from deepprox.joining import one_block
from deepprox.joining.certificate import flatten
from deepprox.joining.join import join
from deepprox.struct import struct
from stages.problems import problem

GIVEN = {
    "softmax, l1": {},
    "softmax, groups": {"penalty": penalties.GroupL2(0.02)},
    "squared, constraint": {"loss": losses.Squared(), "penalty": penalties.NonNegative(), "bias": True},
}
each = pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)


def silent(phase, rows):
    """Nobody listens."""


@each
def test_second_derivatives_are_those_of_the_objective(given):
    posed, W = problem(hidden=(), **given)
    w, flat = flatten(posed, W)
    objective = lambda w: flat.loss_and_gradient(w)[0] + flat.penalty(w)  # noqa: E731
    both = jax.jit(lambda w: (one_block.second_derivatives(flat, w), jax.hessian(objective)(w)))
    np.testing.assert_allclose(*both(w), atol=1e-12)


@each
def test_every_start_ends_in_the_minimum_that_other_steps_find(given, monkeypatch):
    posed, W = problem(hidden=(), **given)
    W = tuple(np.abs(w) for w in W)  # some constraint allows no others
    zero = tuple(0 * w for w in W)
    found = [join(posed, start, 1e-8, 500, silent) for start in (W, zero)]
    monkeypatch.setattr(one_block, "suits", lambda _: False)
    found.append(join(posed, W, 1e-8, 500, silent))
    assert {one.status for one in found} == {"converged"}
    np.testing.assert_allclose([one.objective for one in found], found[-1].objective, rtol=1e-10)
    assert len({tuple((one.W[0] != 0).ravel()) for one in found}) == 1


def test_steps_never_rise_and_stop_when_told():
    rng = np.random.default_rng(0)
    posed, W = problem(hidden=(), loss=losses.Poisson(), k=1, penalty=penalties.L1(0.05))
    posed = posed.__class__(posed.network, posed.loss, posed.X, rng.poisson(40, (40, 1)) + 0.0, posed.weight)
    start = (0 * W[0],)  # Newton's step from here is e^39 too long
    told = one_block.descend(posed, start, (), 1.0, 1e-8, 500)
    values = [step.objective for step in told.steps]
    assert told.certificate <= 1e-8 and np.all(np.diff(values) <= 1e-12 * np.abs(values[1:]))
    assert len(one_block.descend(posed, start, (), 1.0, 1e-8, 2).steps) == 2
    assert join(posed, start, 1e-8, 2, silent).status == "max_iter"


@struct
class Cauchy(losses.Loss):
    """``log(1 + |eta - y|^2)``, which is not convex."""

    def value(self, eta, y):
        return jnp.log1p(((eta - y) ** 2).sum(-1))

    def mean(self, eta):
        return eta


@pytest.mark.parametrize(
    "given",
    [
        {"hidden": (), "loss": Cauchy()},
        {"hidden": (5,)},
        {"hidden": (), "penalty": penalties.MCP(0.1)},
        {"hidden": (), "penalty": penalties.Nuclear(0.1)},
        {"hidden": (), "p": 100},
    ],
    ids=["loss not convex", "hidden block", "not convex", "kinks away from zero", "many weights"],
)
def test_what_it_is_not_for(given):
    assert one_block.suits(problem(hidden=())[0])
    assert not one_block.suits(problem(**given)[0])


def test_a_loss_that_is_not_convex_starts_from_different_weights():
    X, y = np.random.default_rng(0).normal(size=(2, 30, 1))
    convex = DeepRegressor((), alpha=0.01, n_init=3, random_state=0)
    other = clone(convex).set_params(loss=Cauchy(), max_iter=1)
    sessions = Session(convex), Session(other)
    posed = [session.pose(session.read(X, y[:, 0])) for session in sessions]
    starts = [session.starts(p.problem, p.scale)[0] for session, p in zip(sessions, posed)]
    distinct = [len({(W[0] + 0.0).tobytes() for W in some}) for some in starts]
    assert distinct == [1, 3]
