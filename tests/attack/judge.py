"""The rule: a case ends in a result or in one clear sentence of those whose business it is.

An error is a clear sentence if

1. it is a ``ValueError``, a ``TypeError``, an ``ImportError`` (of a package that is not there), or an
   ``OSError`` about a file: never ``MemoryError``, ``KeyError``, ``RuntimeError``, ...;
2. who speaks is at the innermost frame of the traceback: a ``raise`` statement of deepprox (and not an
   operation there that Python or NumPy refused), scikit-learn's validation, or the operating system about a
   file that it names;
3. what deepprox says is at most 1000 characters, in words and not in those of its innards, and of one line
   unless it shows a value that has more.

Everything else came from below: JAX, NumPy, pandas, narwhals, pathlib, ... were given what should have been
refused. A result is wrong only where its weights are not finite and no warning said so.
"""

import dis
import os
import re
import traceback
from pathlib import Path

import numpy as np
import sklearn

import deepprox

OURS, THEIRS = (str(Path(module.__file__).parent) + os.sep for module in (deepprox, sklearn))
SENTENCES = (ValueError, TypeError, ImportError, OSError)
INNARDS = re.compile(r"tracer|jaxpr|xla|ufunc", re.IGNORECASE)
LONGEST = 1000


def wrong(error, value=None):
    """What is wrong with how a case ended, or None: ``error`` was raised because of ``value``."""
    if not isinstance(error, SENTENCES):
        return f"{type(error).__name__} is no answer"
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    file, last = frame.f_code.co_filename, _last(error)
    if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
        return None
    if file.startswith(THEIRS):
        return None
    if not file.startswith(OURS):
        return "raised below deepprox"
    if last != "RAISE_VARARGS":
        return "an operation of deepprox was refused, and no check of it"
    said = str(error)
    if not said.strip():
        return "it says nothing"
    if "\n" in said and "\n" not in repr(value):
        return "more than one line"
    if len(said) > LONGEST:
        return "more than a sentence"
    if INNARDS.search(said):
        return "it speaks of innards"
    return None


def wrong_result(out, warned):
    """What is wrong with a result, or None."""
    weights = getattr(out, "coefs_", None)
    if weights is not None and not warned and not all(np.isfinite(w).all() for w in weights):
        return "weights that are not finite, without a word"
    return None


def where(error):
    """The last frame of deepprox, and the innermost frame."""
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    told = []
    for (frame, line), file in zip(traceback.walk_tb(error.__traceback__), frames):
        if file.startswith(OURS):
            told = [f"{file.removeprefix(OURS)}:{line} {frame.f_code.co_name}"]
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    if not frames[-1].startswith(OURS):
        told.append(f"{'/'.join(Path(frames[-1]).parts[-3:])}:{line} {frame.f_code.co_name}")
    return " -> ".join(told)


def _last(error):
    """The instruction that the innermost frame was at."""
    step = error.__traceback__
    while step.tb_next is not None:
        step = step.tb_next
    for instruction in dis.get_instructions(step.tb_frame.f_code):
        if instruction.offset == step.tb_lasti:
            return instruction.opname
    return ""
