"""Options that several commands share."""

from collections.abc import Callable
from typing import Any

import click

from deepprox.statistics.names import CRITERIA

Command = Callable[..., Any]


def _stack(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        """Add these options to a command, in this order."""
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def widths(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """``50,50`` as a tuple; ``none`` is no hidden layer."""
    if isinstance(value, tuple):
        return tuple(widths(ctx, parameter, one) for one in value)
    if value.strip().lower() == "none":
        return ()
    try:
        return tuple(int(width) for width in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of widths such as 50 or 50,50, or none.") from None


def strength(ctx: click.Context, parameter: click.Parameter, value: str) -> float | None:
    """A number, or None for ``auto``."""
    if value.strip().lower() == "auto":
        return None
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a number nor auto.") from None


def texts(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """``NA,?`` as a tuple; an empty text as no text, and None where nothing was said."""
    return None if value is None else tuple(text.strip() for text in value.split(",") if text.strip())


speech = _stack(
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."),
    click.option("--quiet", "-q", is_flag=True, help="No remarks and no progress bars."),
)

table = _stack(
    click.argument("data"),
    click.option("--separator", metavar="SIGN", help="What separates columns of a text file."),
    click.option(
        "--na-values",
        metavar="TEXTS",
        callback=texts,
        help="Texts that are missing values in a text file, as in NA,?; '' for empty cells alone. By default "
        "NA, NaN, null and other usual ones; predict and report take those of the fit.",
    ),
)

training = _stack(
    table,
    click.option("--target", "-t", required=True, metavar="COL", help="The column to predict."),
    click.option(
        "--task",
        type=click.Choice(["auto", "classification", "regression"]),
        default="auto",
        show_default=True,
        help="Classes or numbers; auto looks at the target.",
    ),
    click.option("--drop", multiple=True, metavar="COL", help="A column to leave out; may be repeated."),
    click.option("--factor", multiple=True, metavar="COL", help="A column of numbers that are levels."),
    click.option(
        "--number",
        multiple=True,
        metavar="COL",
        help="A column of whole numbers that looks like an identifier and is none.",
    ),
    click.option(
        "--missing",
        type=click.Choice(["error", "drop", "mean"]),
        default="error",
        show_default=True,
        help="Missing values: complain, drop their rows, or take the mean (a level of its own for factors).",
    ),
)

solver = _stack(
    click.option("--penalty", default="l1", show_default=True, help="Penalty on the weights, by name."),
    click.option("--loss", help="Loss, by name; by default softmax or squared."),
    click.option("--no-intercept", is_flag=True, help="Outputs without a bias."),
    click.option("--starts", default=1, show_default=True, help="Random starts; the best is kept."),
    click.option("--max-iter", default=2000, show_default=True, help="Most iterations of a fit."),
    click.option("--tol", default=1e-6, show_default=True, help="Certificate that counts as converged."),
    click.option("--seed", default=0, show_default=True, help="Seed of everything random."),
)

several = _stack(
    click.option(
        "--hidden",
        multiple=True,
        default=["none", "10", "50"],
        show_default=True,
        callback=widths,
        help="Widths of hidden layers, or none; repeat it.",
    ),
    click.option(
        "--link",
        multiple=True,
        default=["relu"],
        show_default=True,
        help="What hidden layers pass on; repeat it.",
    ),
)

going_on = _stack(
    click.option("--checkpoint", metavar="FOLDER", help="A folder to keep the fit in while it runs."),
    click.option("--resume", is_flag=True, help="Go on from the checkpoint of an interrupted fit."),
    click.option(
        "--distributed",
        is_flag=True,
        help="One of several processes that fit together; see launch, or docs/distributed.md for clusters.",
    ),
)


def need_strength(options: dict[str, Any]) -> None:
    """Complain where a path is asked to keep what a single fit can."""
    if options["checkpoint"] or options["resume"]:
        raise ValueError("--checkpoint keeps a single fit, not a path: give --alpha a number.")


network = _stack(
    click.option(
        "--hidden", default="50", show_default=True, callback=widths, help="Widths of hidden layers, or none."
    ),
    click.option(
        "--link", default="relu", show_default=True, help="Activation function of the hidden layers, by name."
    ),
)

choice = _stack(
    click.option("--alphas", default=50, show_default=True, help="How many strengths a path has."),
    click.option(
        "--criterion",
        type=click.Choice([*CRITERIA, "1se", "min"]),
        help="What chooses on a path; by default BIC, or 1se where the loss is no likelihood. The last two "
        "look at what five folds leave out.",
    ),
)
