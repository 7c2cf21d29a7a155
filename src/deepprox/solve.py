"""Split, then join: from random weights to a certified solution."""

from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from deepprox import batches
from deepprox.blocks import Block
from deepprox.budget import Budget
from deepprox.diary import Diary, Stages, Watch
from deepprox.joining import quasi_newton, working_set
from deepprox.joining.certificate import unravel
from deepprox.joining.descent import stack, unstack
from deepprox.joining.join import Joined, join
from deepprox.joining.kinks import no_slopes
from deepprox.joining.live import SMALL, canonical
from deepprox.joining.point import look
from deepprox.joining.quasi_newton import Memory
from deepprox.problem import Network, Problem, Weights
from deepprox.room import as_it_is, room
from deepprox.runtime import keep_memory, precision, products_asked
from deepprox.scouting import FORK, leak, scout
from deepprox.screening import in_turns, suits
from deepprox.solution import Solution
from deepprox.splitting import admm
from deepprox.splitting import state as state_
from deepprox.splitting.continuation import automatic_rho
from deepprox.splitting.residuals import satisfied
from deepprox.splitting.segments import at_splits, group, grouped
from deepprox.splitting.state import State
from deepprox.spreading import same
from deepprox.struct import replace

SWEEPS = 10  # a chunk of the split phase: what one call of a compiled program does

_BEGUN: list[bool] = []  # whether this process has begun its first fit

MESSAGES = {
    "converged": "converged: the certificate is within tol",
    "settled": "settled: the primal and dual residuals are within tol (join=False)",
    "max_iter": "stopped at max_iter with the certificate above tol: raise max_iter or tol",
    "stalled": "stalled with the certificate above tol: no step lowers the objective any more, at a kink of "
    "a link or a loss or at the limits of {dtype}: raise tol or try more starts (n_init)",
    "drawn": "stopped after {n} steps on rows drawn at random: only networks of all rows are joined",
    "diverged": "diverged: the objective is not finite: standardize the inputs, raise alpha or lower rho",
}


class Options(NamedTuple):
    """How a problem is solved; the defaults need no tuning.

    A ``batch`` of rows, unless it is 0, makes ``steps`` steps on as many drawn at random, in place of sweeps.
    ``warm``: the start is near a solution, so Newton steps come first. ``widths``: lower bounds on compacted
    hidden widths, to avoid recompilation.
    ``splits`` are the hidden blocks whose pre-activations are split, numbered from 1, or None for all;
    the output is always split. ``rho`` holds constraint weights to keep, one for each block (numbers,
    or columns over observations), or None to start them from the penalties and let them grow. Pruning stops
    after ``tries`` unsuccessful removals. With a ``budget`` batches come first, and what they have left out
    stays out where the penalty alone would let too much in.
    """

    sweeps: int = 40
    batch: int = 0
    steps: int = 3000
    join: bool = True
    warm: bool = False
    widths: tuple[int, ...] = ()
    splits: tuple[int, ...] | None = None
    rho: tuple[Any, ...] | None = None
    pace: admm.Pace = admm.Pace()
    inner: admm.Inner = admm.Inner()
    tries: int = 2
    budget: Budget | None = None
    max_iter: int = 2000
    tol: float = 1e-6


def initial(problem: Problem, seed: int | tuple[int, ...], n_starts: int = 1) -> list[Weights]:
    """Random weights, with the output bias, if there is one, at the best constant prediction."""
    rng = np.random.default_rng(seed)
    starts = [problem.network.init(rng, problem.X.shape[1]) for _ in range(n_starts)]
    last = problem.network.blocks[-1]
    if last.bias:
        for W in starts:
            last.biases(W[-1])[:] = problem.level
    return [tuple(w.astype(np.asarray(problem.y).dtype) for w in W) for W in starts]


def allowed(block: Block, W: np.ndarray) -> np.ndarray:
    """The weights, brought to where the penalty is finite: it may be a constraint."""
    V: Any = W
    return W if np.isfinite(block.value(V)) else np.asarray(block.prox(V, 1.0))


def all_allowed(network: Network, W: Weights) -> Weights:
    """The same of all blocks."""
    return tuple(allowed(block, w) for block, w in zip(network.blocks, W, strict=True))


def solve(
    problem: Problem,
    starts: list[Weights],
    options: Options,
    watch: Watch | None = None,
    memory: Memory | State | None = None,
    stages: Stages | None = None,
) -> Solution:
    """Split, then join, from one or many starting weights.

    ``memory`` is that of a solution on these data, found in the same way; ``stages`` are those of this run
    that are done.
    """
    check_spread(problem, options)
    keep_memory()
    plain = options.join and options.rho is None and options.budget is None
    if plain and suits(problem.network, problem.X.shape[1], problem.allsum):
        return by_inputs(problem, starts, options, watch, stages or Stages())
    # without a join phase a fit nearby begins with all variables, and a budget counts all weights
    seen = room(problem) if options.join and options.budget is None else as_it_is(problem)
    run = Run(seen.problem, options, stages or Stages(), Diary(len(starts), watch))
    run.stages.diary, given = run.diary, [seen.put(W) for W in starts]
    if isinstance(memory, Memory):
        memory = seen.put_memory(memory)
    found = told(run, best_of(run, run.stages.run(lambda: given), memory))
    if isinstance(found.memory, Memory):
        found = replace(found, memory=seen.take_memory(found.memory))
    return replace(found, W=seen.take(found.W), live=seen.take_live(found.live))


def best_of(run: "Run", starts: list[Weights], memory: Memory | State | None) -> "Best":
    """The best start, where it ended."""
    problem, options = run.problem, run.options
    # from a solution on these data all is finite that any penalty with its kinks at zero allows
    known = options.warm and memory is not None and problem.network.smooth
    free = options.join and options.budget is None and not (options.batch or options.sweeps)
    by_columns = free and working_set.takes(problem)
    # where rows are many, a look at all of them costs more than one at every penalty
    if by_columns or (not known and (options.batch or not all(finite(problem, W) for W in starts))):
        starts = [all_allowed(problem.network, W) for W in starts]
    if by_columns:
        return one_by_one(run, starts)
    return joined(run, starts, memory) if options.join else split_alone(run, starts, memory)


def told(run: "Run", found: "Best") -> Solution:
    """The record of where the best start ended."""
    options = run.options
    end, best, history = found.joined, found.best, run.diary.rows(found.best)
    last = history[-1] if history else {"primal": np.nan, "dual": np.nan}  # not even one finite sweep
    message = MESSAGES[end.status].format(dtype=end.W[0].dtype)
    if found.straight:
        message += f" ({found.straight} of {len(found.objectives)} starts skipped the split phase)"
    if found.held:
        message += ", among networks with the same zeros"
    found.objectives[best] = end.objective
    facts = {name: fact for name, fact in end._asdict().items() if name not in ("slopes", "step")}
    return Solution(
        **facts | {"n_iter": len(history)},
        penalty=end.objective - end.loss,
        primal=0.0 if options.join else last["primal"],
        dual=0.0 if options.join else last["dual"],
        message=message,
        starts=tuple(found.objectives.tolist()),
        history=history,
        seconds=run.diary.seconds,
        held=found.held,
    )


def as_drawn(problem: Problem, W: Weights, steps: int) -> Solution:
    """The record of weights that steps on random rows have left, and nothing else has seen."""
    W, live = canonical(problem.network, all_allowed(problem.network, W))
    at = look(problem, W, no_slopes(problem), 1.0)
    objective, loss, certificate = (float(number) for number in (at.objective, at.loss, at.certificate))
    status = "drawn" if np.isfinite(objective) else "diverged"
    row = {"phase": "batch", "iteration": 1, "objective": objective, "loss": loss}
    return Solution(
        W=W,
        live=live,
        objective=objective,
        loss=loss,
        penalty=objective - loss,
        certificate=certificate,
        primal=0.0,
        dual=0.0,
        status=status,
        message=MESSAGES[status].format(n=steps),
        n_iter=1,
        n_held=0,
        strict=None,
        starts=(objective,),
        history=[row | {"n_nonzero": sum(int(np.count_nonzero(w)) for w in W)}],
        seconds={},
    )


def by_inputs(
    problem: Problem, starts: list[Weights], options: Options, watch: Watch | None, stages: Stages
) -> Solution:
    """The solution of a network of many inputs: on some of them from the best start, then on others."""
    diary, found = Diary(len(starts), watch), []
    run, stages.diary = Run(problem, options, stages, diary), diary

    def begin(few: Problem, starts: list[Weights], aim: float) -> Joined:
        first = run._replace(problem=few, options=options._replace(tol=aim))
        found.append(best_of(first, stages.run(lambda: starts), None))
        return found[0].joined

    def go_on(few: Problem, W: Weights, memory: Memory | None, aim: float) -> Joined:
        best, tries = found[0].best, options.tries if aim <= options.tol else 0
        left = max(options.max_iter - diary.length(best), 0)
        note = partial(diary.tell, lane=best)
        return join(few, W, aim, left, note, True, options.widths, memory, stages, tries)

    end = in_turns(problem, starts, options.tol, options.warm, begin, go_on)
    diary.lap("join")
    return told(run, found[0]._replace(joined=end))


class Run(NamedTuple):
    """A problem that is being solved: how, what is done of it, and its history."""

    problem: Problem
    options: Options
    stages: Stages
    diary: Diary

    @property
    def left(self) -> int:
        """How many iterations are left."""
        return self.options.max_iter - self.diary.length(0)


class Best(NamedTuple):
    """The best start: where it ended, its number, all objectives, and how many skipped the split phase.

    ``held`` is the network with the zeros that were held, if any were.
    """

    joined: Joined
    best: int
    objectives: np.ndarray
    straight: int = 0
    held: Network | None = None


def one_by_one(run: Run, starts: list[Weights]) -> Best:
    """The join phase of every start, once of equal ones, where that is sooner than to choose among them."""
    problem, options, stages, diary = run
    ends: list[Joined] = []
    first = [next(k for k, W in enumerate(starts) if (W[0] == V[0]).all()) for V in starts]
    for k, W in enumerate(starts):
        tell = partial(diary.tell, lane=k)
        again = ends[first[k]] if first[k] < k else None
        ends.append(again or join(problem, W, options.tol, options.max_iter, tell, stages=stages))
    objectives = np.array([end.objective for end in ends])
    best = int(np.argmin(np.where(np.isfinite(objectives), objectives, np.inf)))
    diary.lap("join")
    return Best(ends[best], best, objectives)


def joined(run: Run, starts: list[Weights], memory: Memory | State | None) -> Best:
    """Splitting or random rows, then the join phase of the best start."""
    problem, options, stages, diary = run
    dtype = starts[0][0].dtype
    if options.budget is not None:
        return confined(run, starts, options.budget)
    # many starts look for the way in single precision; the best of them goes it in full
    rough, starts = (problem, starts) if len(starts) == 1 else in_dtype((problem, starts), np.float32)
    ways = routes(run._replace(problem=rough), starts)
    starts, objectives, route = scout(rough, ways, options.tol, run.left, diary, stages)
    best = int(np.argmin(objectives))
    chosen = in_dtype(starts[best], dtype)
    if starts[best][0].dtype != dtype and not finite(problem, chosen):
        chosen = all_allowed(problem.network, chosen)  # as where rows are drawn
    end = finished(run, problem, chosen, best, None if isinstance(memory, State) else memory)
    return Best(end, best, objectives, int(route.sum()))


def finished(run: Run, problem: Problem, W: Weights, best: int, memory: Memory | None = None) -> Joined:
    """The join phase of the best start."""
    _, options, stages, diary = run
    end = join(
        problem,
        W,
        options.tol,
        max(options.max_iter - diary.length(best), 0),
        partial(diary.tell, lane=best),
        options.warm,
        options.widths,
        memory,
        stages,
        options.tries,
    )
    diary.lap("join")
    return end


def confined(run: Run, starts: list[Weights], budget: Budget) -> Best:
    """Batches within a budget, then the join phase of the best start: with its zeros held, if it must be."""
    problem, _, stages, diary = run
    drawn = stages.run(draw, run, starts)
    diary.lap("batch")
    objectives = np.array([float(look(problem, W, no_slopes(problem), 1.0).objective) for W in drawn])
    best = int(np.argmin(np.where(np.isfinite(objectives), objectives, np.inf)))
    if not budget.binds(drawn[best]):
        end = finished(run, problem, drawn[best], best)
        if budget.holds(problem.network, end.W):
            return Best(end, best, objectives)
    network = budget.held(problem.network, drawn[best])
    end = finished(run, replace(problem, network=network), drawn[best], best)
    return Best(end, best, objectives, held=network)


def routes(run: Run, starts: list[Weights]) -> list[list[Weights]]:
    """Where the starts may go on from: after steps on random rows, or after splitting or straight."""
    problem, options, stages, diary = run
    if options.batch:
        drawn = stages.run(draw, run, starts)
        drawn = revive(problem, drawn, starts) if run.left else drawn  # without steps to come it stays empty
        diary.lap("batch")
        return [drawn]
    if not options.sweeps:
        return [starts]
    ready = ahead(problem, starts, options)
    swept = stages.run(split, run, starts).W
    swept = revive(problem, swept, starts) if run.left else swept
    if problem.allsum.in_memory:
        swept = leak(problem, swept, options.tol, run.left, diary, stages)
    few = problem.n_weights <= SMALL
    # else every step of another route is a pass over the rows
    fork = (few or problem.allsum.in_memory) and run.left > FORK * quasi_newton.CHUNK
    ready.result()
    diary.lap("split")
    return [swept, starts] if fork else [swept]


def split_alone(run: Run, starts: list[Weights], memory: Memory | State | None) -> Best:
    """The split phase's best weights as they are: the paper's ADMM."""
    problem, state = run.problem, memory if isinstance(memory, State) else None
    starts, settled, state = run.stages.run(split, run, starts, state)
    looks = [look(problem, W, no_slopes(problem), 1.0) for W in starts]
    objectives = np.array([float(at.objective) for at in looks])
    best = int(np.argmin(np.where(np.isfinite(objectives), objectives, np.inf)))
    status = "settled" if settled[best] else "max_iter" if np.isfinite(objectives[best]) else "diverged"
    W, at = tuple(np.asarray(w) for w in starts[best]), looks[best]
    numbers = float(at.objective), float(at.loss), float(at.certificate)
    own = jax.tree.map(lambda a: a[best], state) if len(starts) > 1 else state
    live = canonical(problem.network, W)[1]
    run.diary.lap("split")
    return Best(Joined(W, live, *numbers, 0, 0.0, None, status, 0, own), best, objectives)


def finite(problem: Problem, W: Weights) -> bool:
    """Whether the objective is."""
    return bool(np.isfinite(look(problem, W, no_slopes(problem), 1.0).objective))


def check_spread(problem: Problem, options: Options) -> None:
    """One sentence where observations that are spread would have to meet outside ``allsum``."""
    network = problem.network
    tied = [block.activity for block in network.blocks if block.activity and not block.activity.additive]
    if problem.allsum != same and tied:
        raise ValueError(
            f"{type(tied[0]).__name__} ties observations together, which are apart here: leave out devices, "
            f"or use ActivityL1, which charges every observation on its own."
        )
    some = options.splits is not None and len(options.splits) < len(network.blocks) - 1
    if problem.allsum.chained and options.sweeps and some:
        raise ValueError("A reducer adds in one order, and segments have none: use splits='all' or 'none'.")


def ahead(problem: Problem, starts: list[Weights], options: Options) -> Future:
    """The first program of the join phase, compiled in a thread while the split phase compiles its own.

    Only at the first fit of a process: waiting for a compiler is what a first fit mostly is.
    """
    done: Future = Future()
    if _BEGUN or problem.allsum != same:
        done.set_result(None)
        return done
    _BEGUN.append(True)
    W = stack(starts)
    w = np.concatenate([part.reshape(*part.shape[:-2], -1) for part in W], axis=-1)
    number, dtype = np.zeros(w.shape[:-1], w.dtype), w.dtype

    def compile_it() -> None:
        with precision(dtype):
            state = problem.allsum.resident(quasi_newton.start(w, number, number, w, number))
            tol, limit = np.asarray(options.tol, dtype), np.int32(0)  # no steps: compiled, and nothing done
            quasi_newton.chunk(problem, W, state, tol, limit, lanes=len(starts) > 1)

    return ThreadPoolExecutor(1).submit(compile_it)


def draw(run: Run, starts: list[Weights]) -> list[Weights]:
    """The batch phase: where its steps end."""
    problem, options, stages, diary = run
    lanes, dtype = len(starts) > 1, starts[0][0].dtype
    chunks = min(-(-options.steps // batches.STEPS), options.max_iter)
    total, products = np.int32(chunks * batches.STEPS), products_asked() or batches.PRODUCTS
    variables, first = stages.resumed((batches.start(stack(starts)), 0))
    state = problem.allsum.resident(batches.State(*variables))
    for k in range(first, chunks):
        number = np.int32(k * batches.STEPS)
        after, info = batches.chunk(
            problem, state, number, total, options.batch, lanes, products, options.budget
        )
        info = info._make(np.asarray(column) for column in info)
        if not np.isfinite(info.objective).all():
            break  # keep the last finite weights
        state = after
        diary.chunk("batch", info)
        stages.reached(tuple(state), k + 1)
    # a bound is another number in another precision
    return [all_allowed(problem.network, W) for W in in_dtype(unstack(state.W, lanes), dtype)]


class After(NamedTuple):
    """Where the split phase ended: weights, which starts met the residual tolerances, and all variables.

    The last are kept where nothing comes after, by one process for itself.
    """

    W: list[Weights]
    settled: np.ndarray
    state: State | None


def split(run: Run, starts: list[Weights], known: State | None = None) -> After:
    """The split phase, from ``Z = W F`` and no duals, or from those ``known`` of a solution nearby."""
    problem, options, stages, diary = run
    looks = [look(problem, W, no_slopes(problem), 1.0) for W in starts]
    splits, dtype = options.splits, starts[0][0].dtype
    if splits is None:
        splits = tuple(range(1, len(starts[0])))
    if options.rho is None:
        pulls = stack([unravel(at.penalty_gradient, W) for at, W in zip(looks, starts, strict=True)])
        rho, pace = automatic_rho(of_inputs(problem, pulls), splits), options.pace
    else:
        given = in_dtype(at_splits(options.rho, splits), dtype)
        rho, pace = stack([given] * len(starts)), options.pace._replace(growth=1.0)
    pace = admm.Pace(*(np.asarray(number, dtype) for number in pace))
    Z = stack([at_splits(at.Z, splits) for at in looks])
    state = state_.start(group(stack(starts), splits), Z, rho)
    if known is not None:
        state = replace(known, W=state.W)
    pieces = grouped(problem, splits)
    lanes = len(starts) > 1
    most = min(options.sweeps, options.max_iter) if options.join else options.max_iter
    state, settled, first = stages.resumed((state, np.zeros(len(starts), bool), 0))
    state = problem.allsum.resident(state)
    for k in range(first, -(-most // SWEEPS)):
        after, info = admm.chunk(pieces, state, pace, options.inner, min(SWEEPS, most - k * SWEEPS), lanes)
        info = info._make(np.asarray(column) for column in info)
        if not np.isfinite(info.objective[..., -1]).all():
            break  # keep the last finite weights
        state = after
        diary.chunk("split", info)
        settled = np.atleast_1d(satisfied(info._make(column[..., -1] for column in info), options.tol))
        if settled.all():
            break
        stages.reached(state, settled, k + 1)
    W = unstack(tuple(jax.tree.leaves(state.W)), lanes)
    gone = options.join or problem.allsum.world > 1  # of no use, or a part of it elsewhere
    return After(W, settled, None if gone else jax.tree.map(np.asarray, state))


def of_inputs(problem: Problem, of_weights: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """What there is for every weight, without columns that are no inputs."""
    widths = problem.network.widths(problem.n_inputs)
    return [each[..., : 1 + n] for each, n in zip(of_weights, widths, strict=True)]


def revive(problem: Problem, starts: list[Weights], before: list[Weights]) -> list[Weights]:
    """The starts, those that the split phase emptied put back to where they began."""
    alive = [all(mask.any() for mask in canonical(problem.network, W)[1].reads) for W in starts]
    return [W if lives else W0 for W, W0, lives in zip(starts, before, alive, strict=True)]


def in_dtype(tree: Any, dtype: Any) -> Any:
    """The same numbers in another precision."""

    def cast(leaf: Any) -> Any:
        floats = isinstance(leaf, np.ndarray | jax.Array) and np.issubdtype(leaf.dtype, np.floating)
        return np.asarray(leaf, dtype) if floats else leaf

    return jax.tree.map(cast, tree)
