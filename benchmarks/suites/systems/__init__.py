"""The systems: each a function ``fit(task, seed, effort) -> weights``. A new one is a function and a line."""

from typing import NamedTuple

OURS, PEERS = "ours", "peers"


class System(NamedTuple):
    """What a table calls it, its module and function here, whose Python runs it, and its efforts.

    An effort is what the system itself offers to say how long it should work: a tolerance, a number of
    iterations, a share of zeros. Every effort is a run from the beginning.
    """

    name: str
    module: str
    function: str
    home: str
    efforts: tuple[float, ...]


LINEAR = (
    System("deepprox", "ours", "deepprox", OURS, (1e-3, 1e-4, 1e-5, 1e-6, 1e-8)),
    System("skglm", "linear", "skglm", PEERS, (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)),
    System("celer", "linear", "celer", PEERS, (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)),
    System("glmnet (R)", "linear", "glmnet", PEERS, (1e-5, 1e-7, 1e-9, 1e-11, 1e-13)),
    System("scikit-learn saga", "linear", "saga", PEERS, (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)),
    System("scikit-learn liblinear", "linear", "liblinear", PEERS, (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)),
)
STEPS = (100, 150, 200, 300, 400, 600, 1000, 1500)
SPARSE = (
    System("deepprox", "ours", "deepprox_to", OURS, (90, 115, 140, 190, 265, 390, 1e-3, 1e-6)),
    System("SciPy L-BFGS-B on W+ - W-", "ours", "l_bfgs_b", OURS, STEPS),
    System("SciPy L-BFGS-B, single precision", "ours", "l_bfgs_b_single", OURS, STEPS),
    System("PyTorch proximal Adam", "gradient", "proximal_adam", PEERS, (60, 200, 600, 1200)),
    System("dlADMM", "dladmm", "dladmm", PEERS, (20, 60, 200)),
)
DENSE = (
    System("scikit-learn MLP adam", "gradient", "mlp_adam", PEERS, (200,)),
    System("scikit-learn MLP lbfgs", "gradient", "mlp_lbfgs", PEERS, (200,)),
    System("nnet (R), logistic units", "gradient", "nnet", PEERS, (100,)),
    System("PyTorch Adam", "gradient", "adam", PEERS, (100,)),
)
LEVELS = (0.90, 0.95, 0.98)
AT_LEVELS = (
    System("deepprox", "ours", "deepprox_at", OURS, LEVELS),
    System("deepprox, refitted", "ours", "deepprox_refitted_at", OURS, LEVELS),
    System("deepprox, batches, validated", "ours", "deepprox_batches_at", OURS, LEVELS),
    System("Adam, pruned globally", "gradient", "pruned_globally", PEERS, LEVELS),
    System("Adam, pruned globally, retrained", "gradient", "pruned_globally_retrained", PEERS, LEVELS),
    System("Adam, pruned by layer", "gradient", "pruned_by_layer", PEERS, LEVELS),
    System("Adam, pruned by layer, retrained", "gradient", "pruned_by_layer_retrained", PEERS, LEVELS),
    System("Adam, pruned gradually", "gradient", "pruned_gradually", PEERS, LEVELS),
    System("proximal Adam", "gradient", "proximal_adam_at", PEERS, LEVELS),
)
