"""Responses as the loss takes them: labels as columns, numbers as rows."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from deepprox.estimators._resolve import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, peek_loss, resolve_devices
from deepprox.losses import Loss
from deepprox.spreading import Spread


class Numbers:
    """The response of a regressor."""

    losses: ClassVar[Mapping[str, Callable[[], Loss]]] = REGRESSION_LOSSES
    checks: ClassVar[dict[str, bool]] = {"y_numeric": True, "multi_output": True}

    def __init__(self, model: Any) -> None:
        self.model = model

    def encode(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """One row for each observation."""
        return self.code(y)

    def encode_more(self, y: np.ndarray) -> np.ndarray:
        """The response of a batch of a stream, like those of the batches before it."""
        Y, before = self.code(y), vars(self.model).get("fitted_")
        if before is not None and (before.one_column, self.model.n_outputs_) != (y.ndim == 1, Y.shape[1]):
            raise ValueError(
                f"y has the shape {y.shape}, but the response before it had {self.model.n_outputs_} columns."
            )
        return Y

    def code(self, y: Any) -> np.ndarray:
        """New responses in the columns of a fitted model."""
        y = np.asarray(y)
        return np.asarray(y[:, None]) if y.ndim == 1 else y


class Classes:
    """The response of a classifier; ``classes_`` are the labels."""

    losses: ClassVar[Mapping[str, Callable[[], Loss]]] = CLASSIFICATION_LOSSES
    checks: ClassVar[dict[str, bool]] = {}

    def __init__(self, model: Any) -> None:
        self.model = model

    def encode(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """One row for each observation; the labels are learnt."""
        whole = y.dtype.kind in "biu"  # labels without doubt
        if not whole:
            check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if whole and 2 * len(classes) > len(y):
            check_classification_targets(y)  # it warns
        allsum = resolve_devices(self.model.devices)
        if allsum.world > 1:
            classes = all_classes(classes, allsum)
            codes = np.searchsorted(classes, y)
        counts = allsum(np.bincount(codes, weight > 0, len(classes)))
        present = classes[counts > 0]
        if len(present) < 2:
            raise ValueError(
                f"DeepClassifier needs observations of at least 2 classes with a positive weight, but there "
                f"is only one class: {present[0]}."
            )
        self.model.classes_ = classes
        self.check_classes()
        return self.columns(codes)

    def encode_more(self, y: np.ndarray) -> np.ndarray:
        """The response of a batch of a stream, of the classes that were named at its beginning."""
        check_classification_targets(y)
        return self.code(y)

    def check_classes(self) -> None:
        """ValueError for more classes than the loss can tell apart."""
        loss, n_classes = loss_of(self.model), len(self.model.classes_)
        if loss is not None and loss.binary and loss.likelihood and n_classes > 2:
            raise ValueError(
                f"loss={self.model.loss!r} is for two classes, but there are {n_classes}: use loss='softmax'."
            )

    def columns(self, codes: np.ndarray) -> np.ndarray:
        """One column for each class, or the one column of two classes."""
        loss, n_classes = loss_of(self.model), len(self.model.classes_)
        binary = loss is not None and loss.binary and n_classes == 2
        return codes[:, None].astype(float) if binary else np.eye(n_classes)[codes]

    def code(self, y: Any) -> np.ndarray:
        """New labels in the columns of a fitted model."""
        y, classes = column_or_1d(y), self.model.classes_
        known = np.isin(y, classes)
        if not known.all():
            raise ValueError(f"The class {y[~known][0]} was not in the data of the fit.")
        return self.columns(np.searchsorted(classes, y))


def response_of(model: Any) -> Numbers | Classes:
    """How an estimator takes its response."""
    return Classes(model) if isinstance(model, ClassifierMixin) else Numbers(model)


def loss_of(model: Any) -> Loss | None:
    """The loss that an estimator asks for; None for what is no loss, which ``fit`` refuses."""
    return peek_loss(model.loss, response_of(model).losses)


def gives_probabilities(model: Any) -> bool:
    """Whether the loss is a likelihood; one that does not exist is refused by ``fit``, not here."""
    loss = loss_of(model)
    return loss is None or loss.likelihood


def all_classes(mine: np.ndarray, allsum: Spread) -> np.ndarray:
    """The classes that any process has, sorted."""
    texts = mine.dtype.kind in "OU"
    parts = [np.array(one, object if texts else mine.dtype) for one in allsum.collect(mine.tolist())]
    found = np.unique(np.concatenate(parts))
    return found.astype(str) if mine.dtype.kind == "U" else found
