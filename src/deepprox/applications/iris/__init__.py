"""Fisher's Iris as in section 4.2 of Polson, Willard and Heidari (2015): tables, figures and claims."""

from deepprox.applications.iris.study import Result, run

__all__ = ["Result", "run"]
