"""Ctrl-C while fits run, once for each of so many moments: prints what was wrong, and how many were in time.

python -m attack.interrupts 12
"""

import copy
import os
import signal
import sys
import threading
import time

import numpy as np

from deepprox import DeepClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
LABELS = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=60) > 0, "up", "down")


def model():
    """A network that goes through every phase."""
    return DeepClassifier((5,), link="relu", alpha=0.01, n_init=3, random_state=0)


def bits(fitted):
    """What must not change."""
    return [w.tobytes() for w in fitted.fitted_.W], fitted.objective_.hex(), fitted.solution_.message


def interrupted(estimator, after):
    """Fit with a Ctrl-C after so many seconds; whether it was in time."""
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        estimator.fit(X, LABELS)
        timer.join()
        time.sleep(1)  # one that comes too late comes here
    except KeyboardInterrupt:
        return "fitted_" not in vars(estimator)
    return False


def main(moments):
    """Interrupt a fresh estimator and a fitted one at all moments."""
    model().fit(X, LABELS)  # programs are compiled
    began = time.perf_counter()
    whole = model().fit(X, LABELS)
    lasts, in_time, wrong = time.perf_counter() - began, 0, []
    for k in range(moments):
        fresh, after = model(), (k + 0.5) / moments * lasts
        before = copy.deepcopy(vars(fresh))
        if interrupted(fresh, after):
            in_time += 1
            if vars(fresh).keys() - before.keys() - {"n_features_in_"} - ENTRY:
                wrong.append(f"after {after:.3f} s it is half fitted: {vars(fresh).keys() - before.keys()}")
        if bits(fresh.fit(X, LABELS)) != bits(whole):
            wrong.append(f"after {after:.3f} s the next fit is another")
    print(in_time, "in time;", "; ".join(wrong) or "nothing wrong")


# what validation leaves before a fit begins
ENTRY = {"classes_", "_one_column", "_parent_callback_ctx", "_callbacks"}

if __name__ == "__main__":
    main(int(sys.argv[1]))
