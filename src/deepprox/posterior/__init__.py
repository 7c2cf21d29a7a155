"""The posterior of a fitted network: draws by proximal Langevin, NUTS, Polya-Gamma Gibbs and Laplace."""

from deepprox.posterior.draws import Draws
from deepprox.posterior.sampling import sample_posterior

__all__ = ["Draws", "sample_posterior"]
