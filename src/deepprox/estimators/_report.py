"""The estimators' door to tables, pages, pictures and files."""

import os
from typing import TYPE_CHECKING, Any, Literal

from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from deepprox.checks import shown
from deepprox.estimators._fitted import Fitted
from deepprox.estimators._given import read_new_response
from deepprox.report.summary import summarize
from deepprox.report.table import Report
from deepprox.saving import save

if TYPE_CHECKING:
    import pandas as pd

    from deepprox.plotting import ConvergenceDisplay
    from deepprox.posterior import Draws
    from deepprox.report.network import NetworkDrawing


class ReportMixin:
    """What was fitted, shown and written."""

    fitted_: Fitted

    @property
    def history_(self) -> "pd.DataFrame":
        """One row for each iteration: phase, objective, loss, residuals, certificate, non-zeros.

        In the phase "batch" an iteration is 50 steps, and its loss the mean over the rows that they drew;
        in the phase "leaky" the objective is that of the network with leaky links; the phase "prune" begins
        with a unit left out, and higher than it ends.
        """
        check_is_fitted(self)
        import pandas as pd

        return pd.DataFrame(self.fitted_.solution.history)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file of data without code, read by :func:`deepprox.load`.

        Parameters
        ----------
        path : str or path
            The file, by custom with the ending ``.deepprox``. It is replaced in one go.
        """
        self.summary()  # its statistics need the data of the fit, which the file does not hold
        save(self, path)

    def to_onnx(self, dtype: Literal["float32", "float64"] = "float32") -> Any:
        """The fitted network as an ONNX model: live inputs and units only, standardising included.

        It reads ``X``, all columns of it, and gives ``label`` and ``probabilities`` (``decision`` for a loss
        without them) of a classifier, ``prediction`` of a regressor. Needs the package onnx.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default="float32"
            Precision of the model and of what it reads.

        Returns
        -------
        model : onnx.ModelProto
            For ``onnx.save``, or ``SerializeToString()`` for onnxruntime.
        """
        from deepprox.export import to_onnx

        check_is_fitted(self)
        return to_onnx(self, dtype)

    def summary(self) -> Report:
        """What was fitted and found: prints as aligned tables, shows as HTML in a notebook."""
        check_is_fitted(self)
        return summarize(self)

    def report(
        self,
        path: str | os.PathLike[str],
        X: Any,
        y: Any,
        *,
        title: str | None = None,
        regularization_path: Any = None,
        posterior: "Draws | None" = None,
    ) -> None:
        """Write a page about the fit: one HTML file that needs nothing else.

        Parameters
        ----------
        path : str or path
            The file.
        X, y : array-like
            Observations to judge the fit by, those of the fit or others.
        title : str, default=None
            Title of the page; the architecture otherwise.
        regularization_path : Path, default=None
            The path that this model was chosen from, to show it and what each rule chooses.
        posterior : deepprox.posterior.Draws, default=None
            What ``sample_posterior()`` drew, to show it and a predictive check.
        """
        from deepprox.report.html import write_report
        from deepprox.report.paths import record_of_path

        check_is_fitted(self)
        if not isinstance(title, str | None):
            raise TypeError(f"title must be text, got {shown(title)}.")
        if regularization_path is not None and getattr(regularization_path, "solutions", None) is None:
            raise TypeError(
                f"regularization_path must be what deepprox.path() returns, got {shown(regularization_path)}."
            )
        if posterior is not None:
            self._need_draws(posterior)  # type: ignore[attr-defined]
        classifies = isinstance(self, ClassifierMixin)
        y, n_out = read_new_response(y, not classifies), 1 if classifies else self.n_outputs_  # type: ignore[attr-defined]
        check_consistent_length(X, y)
        if y.shape[1:] not in ((), (n_out,)):
            raise ValueError(f"y has the shape {y.shape}, but the model was fitted to {n_out} columns.")
        along = None if regularization_path is None else record_of_path(regularization_path)
        write_report(self, path, X, y, title=title, path_record=along, draws=posterior)

    def draw_network(self) -> "NetworkDrawing":
        """Draw the network that is left: live units, and the weights between them.

        Returns
        -------
        drawing : deepprox.report.network.NetworkDrawing
            Shown by notebooks; ``save(path)`` writes an SVG file.
        """
        from deepprox.report.network import NetworkDrawing

        check_is_fitted(self)
        return NetworkDrawing.from_estimator(self)

    def plot_history(self, ax: Any = None) -> "ConvergenceDisplay":
        """Draw the objective and the certificate over the iterations.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw the objective alone; a new figure of two panels otherwise.

        Returns
        -------
        display : deepprox.plotting.ConvergenceDisplay
            The drawing, with its ``figure_`` and ``ax_``.
        """
        from deepprox.plotting import ConvergenceDisplay

        return ConvergenceDisplay.from_estimator(self, ax=ax)
