"""Scores on 42 real and 5 drawn tables, of our estimators and of those that people take else.

    python -m benchmarks tables
    python -m benchmarks tables --tables=iris,concrete --splits=2 "--models=svm;forest, tuned;deepprox"

Tables of scikit-learn and statsmodels are there after an installation. Those of R's packages join in where R
has them (Debian: ``r-base-core`` and ``r-cran-`` with modeldata, cardata, mass, ggplot2, pscl, mclust, earth,
dslabs, th.data, psychtools). LassoNet joins in where ``make peers`` has put it. Every fit is a line of
``benchmarks/results/tables.jsonl``, and a run goes on after those that are there; the page is ``tables.md``.
``--out=`` names another folder, ``--data=tables.npz`` a file that
``python -m benchmarks defaults --export=tables.npz`` has written where R is, and ``--jobs=2`` makes two fits
at a time.
"""

from benchmarks.tables.run import main

__all__ = ["main"]
