"""Inputs as a solver sees them: standardised, and asked for few things, so that sparse ones stay sparse.

A matrix with most entries at zero has none there once its columns are centred. What a solver asks of it,
products with few weights and with a derivative of every row, needs the entries that are stored and one shift
for each column:

    x_ij = a_ij - shift_j,    X w = A w - shift'w,    X'd = A'd - shift sum_i d_i
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse

from deepprox.memory import need, of_data


class Design(ABC):
    """A row for every observation, a column for every standardised input.

    Derivatives ``d`` have a row for every observation and a column for every output, weights ``w`` a row for
    every output and a column for every input, as those of a block.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    @property
    @abstractmethod
    def stored(self) -> int:
        """How many numbers a product reads."""

    @abstractmethod
    def take(self, which: np.ndarray) -> "Design":
        """Some of the columns, by number."""

    @abstractmethod
    def rows(self, which: np.ndarray) -> "Design":
        """Some of the rows, by number."""

    @abstractmethod
    def only(self, inputs: np.ndarray) -> "Design":
        """The same with zeros in all columns but those of a mask."""

    @abstractmethod
    def forward(self, w: np.ndarray) -> np.ndarray:
        """``X w'``: a row for every observation, a column for every output."""

    @abstractmethod
    def gradient(self, d: np.ndarray) -> np.ndarray:
        """``d'X``: for every output the derivative in its weights."""

    @abstractmethod
    def squares(self, weight: np.ndarray) -> np.ndarray:
        """``sum_i weight_i x_ij^2`` of every column."""

    @abstractmethod
    def array(self) -> np.ndarray:
        """All of it, dense."""

    @property
    @abstractmethod
    def parts(self) -> tuple[np.ndarray, ...]:
        """The arrays that it is made of."""

    @abstractmethod
    def doubled(self) -> "Design":
        """The same in double precision."""

    def __matmul__(self, M: np.ndarray) -> np.ndarray:
        return self.forward(M.T)

    def columns(self, which: np.ndarray) -> np.ndarray:
        """Some of the columns, dense."""
        return self.take(which).array()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        need(of_data(*self.shape, self.dtype.itemsize))
        return np.array(self.array(), dtype, copy=copy)


class Whole(Design):
    """Standardised inputs of which every entry is stored."""

    def __init__(self, X: np.ndarray) -> None:
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    @property
    def stored(self) -> int:
        return int(self.X.size)

    def take(self, which: np.ndarray) -> "Whole":
        return Whole(np.take(self.X.T, which, axis=0).T)

    def rows(self, which: np.ndarray) -> "Whole":
        return Whole(self.X[which])

    def only(self, inputs: np.ndarray) -> "Whole":
        return Whole(self.X * inputs.astype(self.dtype))

    def forward(self, w: np.ndarray) -> np.ndarray:
        return np.asarray(self.X @ w.astype(self.dtype, copy=False).T)

    def gradient(self, d: np.ndarray) -> np.ndarray:
        return np.asarray(d.astype(self.dtype, copy=False).T @ self.X)

    def squares(self, weight: np.ndarray) -> np.ndarray:
        return np.asarray(np.einsum("i,ij,ij->j", weight.astype(self.dtype, copy=False), self.X, self.X))

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        return (self.X,)

    def doubled(self) -> "Whole":
        return Whole(self.X.astype(float, copy=False))

    def array(self) -> np.ndarray:
        return self.X


def by_columns(X: Any) -> Any:
    """A sparse matrix column by column, every entry stored once; what was given is not changed."""
    A = scipy.sparse.csc_array(X)
    if not A.has_canonical_format:
        A = A.copy() if np.shares_memory(A.data, X.data) else A
        A.sum_duplicates()
    return A


class Sparse(Design):
    """Entries of SciPy's column format, and what every column is shifted by."""

    def __init__(self, A: Any, shift: np.ndarray) -> None:
        self.A, self.shift = A, shift
        self.shape, self.dtype = A.shape, A.dtype
        self.shifted = bool(shift.any())

    @classmethod
    def of(cls, X: Any, mean: np.ndarray, spread: np.ndarray, constant: np.ndarray) -> "Sparse":
        """``(x - mean) / spread`` of a sparse matrix, column by column; a ``constant`` one is 0."""
        A, factor = by_columns(X), np.where(constant, 0.0, 1 / spread)
        if (factor != 1).any():
            data = A.data * np.repeat(factor.astype(A.dtype), np.diff(A.indptr))
            A = scipy.sparse.csc_array((data, A.indices, A.indptr), shape=A.shape)
        return cls(A, (mean * factor).astype(A.dtype))

    @property
    def stored(self) -> int:
        return int(self.A.nnz + (self.A.shape[1] if self.shifted else 0))

    def take(self, which: np.ndarray) -> "Sparse":
        return Sparse(self.A[:, which], self.shift[which])

    def rows(self, which: np.ndarray) -> "Sparse":
        return Sparse(by_columns(self.A[which]), self.shift)

    def only(self, inputs: np.ndarray) -> "Sparse":
        return Sparse.of(self.A, self.shift, np.ones(len(inputs)), ~inputs)

    def forward(self, w: np.ndarray) -> np.ndarray:
        w = w.astype(self.dtype, copy=False)
        return np.asarray(self.A @ w.T) - (w @ self.shift if self.shifted else 0)

    def gradient(self, d: np.ndarray) -> np.ndarray:
        d = d.astype(self.dtype, copy=False)
        found = np.asarray(self.A.T @ d).T
        return found - d.sum(0)[:, None] * self.shift if self.shifted else found

    def squares(self, weight: np.ndarray) -> np.ndarray:
        weight = weight.astype(self.dtype, copy=False)
        square = scipy.sparse.csc_array((self.A.data**2, self.A.indices, self.A.indptr), shape=self.shape)
        if not self.shifted:
            return np.asarray(square.T @ weight)
        cross = self.shift * (2 * (self.A.T @ weight) - self.shift * weight.sum())
        return np.asarray(np.maximum(square.T @ weight - cross, 0.0))

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        return self.A.data, self.A.indices, self.A.indptr, self.shift

    def doubled(self) -> "Sparse":
        return Sparse(self.A.astype(float, copy=False), self.shift.astype(float))

    def array(self) -> np.ndarray:
        dense = self.A.toarray(order="F")
        if self.shifted:
            dense -= self.shift
        return np.asarray(dense)
