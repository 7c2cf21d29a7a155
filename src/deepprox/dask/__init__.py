"""Networks fitted to Dask collections: every worker has some rows, and only sums are sent."""

try:
    import dask.array
    import dask.dataframe  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"deepprox.dask needs Dask, its arrays, tables and scheduler: pip install 'deepprox[dask]' ({error})."
    ) from error

from deepprox.dask.estimators import DeepClassifier, DeepRegressor

__all__ = ["DeepClassifier", "DeepRegressor"]
