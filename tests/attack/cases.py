"""Every public estimator, function and word, each of its arguments in turn with hostile values.

What there is to call is read from signatures, so that a new argument joins by itself; what a call needs
beside it comes from ``NEEDS``. Which values an argument meets is drawn from a seed of its own name.
"""

import inspect
import zlib
from typing import NamedTuple

import numpy as np

import deepprox
from attack import pool
from deepprox.posterior import Draws
from deepprox.selection import Comparison, Path, Stability

SEED = 20261118
VALUES = {
    kind: [line for line in getattr(pool, kind).splitlines() if line]
    for kind in ("ANYTHING", "TABLES", "COLUMNS")
}
KINDS = {"X": "TABLES", "y": "COLUMNS", "sample_weight": "COLUMNS"}
PLAIN = ("DeepClassifier", "DeepRegressor")
ESTIMATORS = [name for name in deepprox.__all__ if inspect.isclass(getattr(deepprox, name))]
FUNCTIONS = [name for name in deepprox.__all__ if inspect.isfunction(getattr(deepprox, name))]
WORDS = ("penalties", "links", "losses", "activities")
RECORDS = {
    "along()": Path,
    "compared()": Comparison,
    "stability()": Stability,
    "drawn('DeepRegressor')": Draws,
}
INNER = (
    "outputs",
    "mean",
    "interval",
    "responses",
)  # of draws: what the estimators call with what they checked
NEEDS = {
    "X": "X",
    "y": "target",
    "path": "'here'",
    "estimator": "small('DeepRegressor', hidden_layer_sizes=())",
    "model": "small('DeepRegressor', hidden_layer_sizes=())",
    "estimators": "[fitted('DeepRegressor'), small('DeepRegressor', hidden_layer_sizes=())]",
    "by": "'aic'",
    "mask": "np.ones((1, 3), bool)",
}
CHEAP = {
    "stability_selection": {"n_pairs": "1"},
    "path": {"alphas": "[0.3, 0.1]"},
    "sample_posterior": {"n_chains": "2", "n_draws": "4", "n_warmup": "4"},
    "degrees_of_freedom": {"n_draws": "2"},
}
# what asks for time alone: no check can tell a request for a day from one for ever
PATIENCE = (
    "sample_posterior.thin",
    "sample_posterior.n_warmup",
    "degrees_of_freedom.n_draws",
    "stability_selection.n_pairs",
)
FOR_EVER = ("10**9", "2**31", "2**63", "2**64", "10**400")
ONCE = [  # what broke once
    "small('DeepRegressor', hidden_layer_sizes=10**9).fit(X, y)",
    "small('DeepRegressor', hidden_layer_sizes=10**5).fit(X, y)",
    "small('DeepRegressor', hidden_layer_sizes=iter([3])).fit(X, y)",
    "small('DeepRegressor', batch_size=10**9).fit(X, y)",
    "small('DeepRegressor', n_init=10**9).fit(X, y)",
    "small('DeepRegressor').fit(RNG.normal(size=(24, 100_000)), y)",
    "path(small('DeepRegressor'), X, y, 10**7)",
    "small('DeepRegressor', loss=losses.Softmax()).fit(X, y)",
    "small('DeepRegressor', join='no').fit(X, y)",
    "small('DeepRegressor', standardize='no').fit(X, y)",
    "small('DeepRegressor', standardize=np.nan).fit(X, y)",
    "small('DeepRegressor', penalize_bias='yes').fit(X, y)",
    "small('DeepRegressor', warm_start=np.nan).fit(X, y)",
    "small('DeepRegressor', alpha=10**400).fit(X, y)",
    "small('DeepRegressor', penalty=penalties.L1(np.inf)).fit(X, y)",
    "small('DeepRegressor', penalty=penalties.L0([1, 2])).fit(X, y)",
    "small('DeepRegressor', penalty=penalties.MCP(gamma=[1, 2])).fit(X, y)",
    "small('DeepClassifier', loss=losses.Hinge(width=[1, 2])).fit(X, labels)",
    "small('DeepRegressor', activity=activities.ActivityL1([1, 2])).fit(X, y)",
    "small('DeepRegressor', link=links.LpNorm(p=np.inf), hidden_layer_sizes=(4,)).fit(X, y)",
    "small('DeepRegressor', hidden_layer_sizes=(), penalize_bias=True,"
    " penalty=penalties.Mask(np.array([[False, True, True]]))).fit(X, y)",
    "small('DeepRegressor').fit(X * 1e155, y)",
    "small('DeepRegressor').fit(X * 1e-200, y)",
    "small('DeepRegressor').fit(X, y, np.full(24, '1'))",
    "small('DeepRegressor').fit(X, y, np.full(24, '2020-01-01', 'datetime64[D]'))",
    "small('DeepRegressor').fit(broken_rows('column'), y)",
    "small('DeepRegressor').fit(broken_rows('pointer'), y)",
    "stability_selection(small('DeepRegressor'), broken_rows('falling'), y, n_pairs=1)",
    "fit_stream(small('DeepRegressor', hidden_layer_sizes=()), X * 5e-324, y)",
    "small('DeepClassifier').fit(X, np.array(['a', None] * 12, object))",
    "small('DeepClassifierCV').fit(X, pd.Index(labels))",
    "small('DeepClassifierCV', standardize=(i for i in [1, 2])).fit(X, labels)",
    "fitted('DeepRegressor').report('here', X[:23], y)",
    "fitted('DeepRegressor').report('here', X, y, posterior=2)",
    "fitted('DeepRegressor').predict(np.broadcast_to(1.0, (10**10, 2)))",
    "fitted('DeepRegressor').predict(table(c=pd.Categorical(labels)))",
    "small('DeepRegressor').fit(X, y, np.broadcast_to(1.0, 10**10))",
]


class Case(NamedTuple):
    """A line of Python, and the value that it tries, which is made before."""

    value: str
    code: str
    target: str = "y"


class Place(NamedTuple):
    """An argument of something that can be called: how it is called, and how many values it meets."""

    name: str
    code: str
    kind: str
    many: int
    target: str = "y"

    def cases(self):
        """Its values, drawn from a seed of its name."""
        patient = self.name.endswith(PATIENCE)
        values = [value for value in VALUES[self.kind] if not (patient and value in FOR_EVER)]
        rng = np.random.default_rng([SEED, zlib.crc32(self.name.encode())])
        return [
            Case(value, self.code, self.target) for value in rng.permutation(values)[: self.many].tolist()
        ]


def target_of(name):
    """What a model of this name takes as its response, in the namespace of cases."""
    return "labels" if "Classifier" in name else "y"


def call(function, name, before, target, many, drop=(), **changed):
    """A place for each argument of a function, called as ``before(...)``."""
    known = inspect.signature(function).parameters
    names = [n for n, p in known.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and n not in drop]
    needed = {n: NEEDS[n] for n in names if known[n].default is inspect.Parameter.empty}
    needed |= CHEAP.get(function.__name__, {}) | changed
    for argument in names:
        given = needed | {argument: "VALUE"}
        code = f"{before}({', '.join(f'{n}={given[n]}' for n in names if n in given)})"
        kind = KINDS.get(argument, "ANYTHING")
        yield Place(f"{name}.{argument}", code, kind, many if kind == "ANYTHING" else 2 * many, target)


def of_estimators():
    """Parameters of every estimator, and what it fits."""
    for name in ESTIMATORS:
        cls, target, plain = getattr(deepprox, name), target_of(name), name in PLAIN
        for parameter in inspect.signature(cls).parameters:
            code = f"small({name!r}, {parameter}=VALUE).fit(X, target)"
            yield Place(f"{name}.{parameter}", code, "ANYTHING", 7 if plain else 2, target)
        yield from call(cls.fit, f"{name}.fit", f"small({name!r}).fit", target, 12 if plain else 3, ("self",))


def of_methods():
    """Arguments of what a fitted estimator can be asked."""
    for name in PLAIN:
        cls, target = getattr(deepprox, name), target_of(name)
        for method in sorted(dir(cls)):
            function = getattr(cls, method)
            ours = inspect.isfunction(function) and function.__module__.startswith("deepprox")
            if method.startswith("_") or method == "fit" or not ours:  # what is scikit-learn's is its own
                continue
            model = f"small({name!r})" if method == "partial_fit" else f"fitted({name!r})"
            yield from call(function, f"{name}.{method}", f"{model}.{method}", target, 3, ("self",))


def of_functions():
    """Arguments of the functions."""
    for name in FUNCTIONS:
        changed = {"path": "saved()"} if name == "load" else {}
        yield from call(getattr(deepprox, name), name, name, "y", 5, **changed)


def of_words():
    """Fields of the vocabulary, in networks that use them."""
    for vocabulary in WORDS:
        module = getattr(deepprox, vocabulary)
        for name, word in sorted(vars(module).items()):
            if (
                not inspect.isclass(word)
                or inspect.isabstract(word)
                or not word.__module__.startswith(f"deepprox.{vocabulary}")
            ):
                continue
            classes = word.__module__.endswith("classes")
            noun = {"penalties": "penalty", "links": "link", "losses": "loss", "activities": "activity"}[
                vocabulary
            ]
            model, target = ("DeepClassifier", "labels") if classes else ("DeepRegressor", "counts")
            layer = "" if noun == "penalty" else "**LAYER, "
            for field in inspect.signature(word).parameters:
                given = f"{layer}{noun}={vocabulary}.{name}({field}=VALUE)"
                code = f"deepprox.{model}({given}).fit(X, target)"
                if noun == "penalty":
                    code = f"small({model!r}, hidden_layer_sizes=(), {given}).fit(X, target)"
                yield Place(f"{vocabulary}.{name}.{field}", code, "ANYTHING", 6, target)


def of_records():
    """Arguments of what paths, comparisons and draws can be asked."""
    for made, cls in RECORDS.items():
        for method, function in sorted(vars(cls).items()):
            if inspect.isfunction(function) and not method.startswith("_") and method not in INNER:
                yield from call(function, f"{cls.__name__}.{method}", f"{made}.{method}", "y", 3, ("self",))


def places():
    """Every argument there is."""
    for some in (of_estimators, of_methods, of_functions, of_words, of_records):
        yield from some()


def all_cases():
    """The whole attack, in parts that share compiled programs and one process."""
    parts = {name: [] for name in (*PLAIN, "choosing", "words", "functions")}
    for place in places():
        name = place.name.split(".")[0]
        part = "choosing" if name in ESTIMATORS else "words" if name in WORDS else "functions"
        parts[name if name in PLAIN else part] += place.cases()
    return parts
