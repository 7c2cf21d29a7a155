"""Cases that are lines of Python: a hostile value, and a call that takes it."""

import traceback
import warnings

from attack import arena, judge

ROOM = 2 * 2**30  # bytes that a case may ask for


def text(case):
    """A case as it can be typed."""
    value, code, target = case
    return code.replace("VALUE", value).replace("target", target)


def begin():
    """Nothing: what cases need is made where they ask for it."""


def run(case):
    """What was wrong, what was said, and where, of ``(value, code, target)``."""
    value, code, target = case
    scope = dict(vars(arena))
    scope["target"] = scope[target]
    scope["VALUE"] = eval(value, scope)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            out = eval(compile(code, "<case>", "eval"), scope)
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
            return judge.wrong(error, scope["VALUE"]), said, judge.where(error)
    warned = any(issubclass(one.category, arena.ConvergenceWarning) for one in told)
    return judge.wrong_result(out, warned), f"a result: {type(out).__name__}", ""


def again(code):
    """A case as it can be typed, with its traceback."""
    try:
        out = eval(compile(code, "<case>", "eval"), dict(vars(arena)))
    except BaseException as error:
        traceback.print_exc()
        print("\nwrong:", judge.wrong(error))
    else:
        print("a result:", out)
