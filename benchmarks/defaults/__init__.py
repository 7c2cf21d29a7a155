"""Which penalty, first phase, strength and average should be the defaults: many of each on many tables.

    python -m benchmarks defaults --minutes=60 --out=.study/results

takes the tables of :mod:`benchmarks.tables`, or those of one file with ``--data=tables.npz``, which
``--export=tables.npz`` writes; ``--tables=iris,wine``, ``--splits=2``, ``--processes=4``, ``--gpus=0``,
``--works=lanes,fit,peers`` and ``--kinds=l1,bridge12`` make it smaller. Results are lines of JSON, one file
for each split; what they hold already, or ``--done=`` names, is not done again. ``--report`` prints what
they say.
"""

from benchmarks.defaults.study import main

__all__ = ["main"]
