"""The commands. What takes time to import is imported when a command runs: ``--help`` answers at once."""

import shlex
from pathlib import Path
from typing import Any

import click

from deepprox.cli import options as shared
from deepprox.cli.voice import INTERRUPTED, OUTPUT, WRONG, Voice, complain, plain, sentence
from deepprox.statistics.names import CRITERIA


class Commands(click.Group):
    """Commands that say what is wrong in one sentence and end with code 2."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the command as it was written, for the record."""
        ctx.obj = shlex.join(["deepprox", *args])
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except (ValueError, OSError, ImportError, MemoryError) as error:
            if ctx.params["traceback"] or isinstance(error, BrokenPipeError):
                raise
            complain(sentence(error))
            silent = isinstance(error, OSError) and error.filename == OUTPUT
            if "--json" in shlex.split(ctx.obj) and not silent:
                Voice(True, True).result({"error": sentence(error)}, "")
            ctx.exit(WRONG)
        except (
            KeyboardInterrupt,
            SystemExit,
        ) as error:  # the latter where SIGTERM came to a fit that is kept
            complain(sentence(error))
            if isinstance(error, SystemExit):
                raise
            ctx.exit(INTERRUPTED)


def told(ctx: click.Context) -> str:
    """The command for the record, without the folders of this machine."""
    paths = [ctx.params.get(name) or "" for name in ("data", "out", "checkpoint")]
    words = shlex.split(ctx.obj)
    for path in filter(None, paths):
        forms = {form + path: form + Path(path).name for form in ("", "--out=", "-o", "--checkpoint=")}
        words = [forms.get(word, word) for word in words]
    return shlex.join(words)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="deepprox", message="deepprox %(version)s")
@click.option("--traceback", is_flag=True, help="Show where an error comes from.")
def main(traceback: bool) -> None:
    """Sparse deep networks from tables: exact zeros, and a certificate that the fit is done.

    DATA is a file (CSV, TSV, Parquet or Feather) or - for CSV from standard input. Exit codes: 0 all is
    well, 2 something is wrong with the command or the data, 3 written but not converged, 130 and 143 ended
    by Ctrl-C and by SIGTERM.
    """


@main.command()
@shared.training
@shared.network
@click.option(
    "--alpha",
    default="auto",
    show_default=True,
    callback=shared.strength,
    help="Strength, or auto.",
)
@shared.choice
@shared.solver
@click.option("--out", "-o", default="model.deepprox", show_default=True, help="The file of the model.")
@shared.going_on
@shared.speech
@click.pass_context
def fit(ctx: click.Context, as_json: bool, quiet: bool, **options: Any) -> None:
    """Fit a network to a table and save it.

    With --alpha auto a whole path of strengths is fitted, and a criterion chooses.
    """
    voice = Voice(as_json, quiet)
    if options["distributed"]:
        from deepprox.cli.together import fit_together

        ctx.exit(fit_together(voice, options, told(ctx)))
    if options["alpha"] is None:
        shared.need_strength(options)
        from deepprox.cli.choosing import choose_and_save

        ctx.exit(choose_and_save(voice, options, told(ctx)))
    from deepprox.cli.fitting import fit_and_save

    ctx.exit(fit_and_save(voice, options, told(ctx)))


@main.command(context_settings={"ignore_unknown_options": True})
@click.option("--processes", "-n", default=2, show_default=True, help="How many processes.")
@click.option(
    "--address",
    help="One of this machine's addresses, at which the processes meet; whoever reaches it can end the fit. "
    "By default it is a file that only this user can open.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
@click.pass_context
def launch(ctx: click.Context, processes: int, address: str | None, command: tuple[str, ...]) -> None:
    """Fit in several processes of this machine, as in: deepprox launch -n 2 -- fit table.csv --target y.

    Each reads its share of the rows. When one fails, all end.
    """
    from deepprox.cli.launching import launch as start

    ctx.exit(start(processes, command, address))


@main.command()
@shared.training
@shared.network
@shared.choice
@shared.solver
@click.option("--out", "-o", help="A file for the table of the path (CSV, TSV, Parquet, Feather).")
@click.option("--plot", help="A file for the picture of the path (SVG, PNG, PDF).")
@shared.speech
@click.pass_context
def path(ctx: click.Context, as_json: bool, quiet: bool, **options: Any) -> None:
    """Fit a network for every strength of the penalty, from the full to the null model."""
    from deepprox.cli.choosing import show_path

    ctx.exit(show_path(Voice(as_json, quiet), options))


@main.command()
@shared.training
@shared.network
@shared.choice
@shared.solver
@click.option("--out", "-o", default="model.deepprox", show_default=True, help="The file of the model.")
@shared.speech
@click.pass_context
def select(ctx: click.Context, as_json: bool, quiet: bool, **options: Any) -> None:
    """Fit a path, let a rule choose the strength, and save the model."""
    from deepprox.cli.choosing import choose_and_save

    ctx.exit(choose_and_save(Voice(as_json, quiet), options, told(ctx)))


@main.command()
@shared.training
@shared.several
@click.option("--alpha", default=0.01, show_default=True, help="Strength, the same for all.")
@shared.solver
@click.option(
    "--by",
    type=click.Choice([*CRITERIA, "evidence"]),
    default="bic",
    show_default=True,
    help="What tells the best.",
)
@click.option("--out", "-o", help="A file for the best model.")
@shared.speech
@click.pass_context
def compare(ctx: click.Context, as_json: bool, quiet: bool, **options: Any) -> None:
    """Fit several architectures and put them side by side."""
    from deepprox.cli.comparing import compare_all

    ctx.exit(compare_all(Voice(as_json, quiet), options, told(ctx)))


@main.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@shared.table
@click.option("--out", "-o", help="A file for the predictions (CSV, TSV, Parquet, Feather).")
@click.option("--probabilities", is_flag=True, help="Add a column for every class.")
@click.option(
    "--unknown",
    type=click.Choice(["error", "ignore"]),
    default="error",
    show_default=True,
    help="Levels that the fit did not see: complain, or read them as none of the known ones.",
)
@click.option(
    "--missing",
    type=click.Choice(["error", "blank"]),
    default="error",
    show_default=True,
    help="Missing values the model cannot fill: complain, or leave the prediction of the row empty.",
)
@shared.speech
def predict(as_json: bool, quiet: bool, **options: Any) -> None:
    """Predict the rows of a table with a saved model."""
    from deepprox.cli.predicting import predict_rows

    predict_rows(Voice(as_json, quiet), options)


@main.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@shared.table
@click.option("--target", "-t", metavar="COL", help="The column that was predicted, if not known.")
@click.option(
    "--missing",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="Missing values the model cannot fill: complain, or leave their rows out.",
)
@click.option("--title", help="Title of the page.")
@click.option("--out", "-o", default="report.html", show_default=True, help="The HTML file.")
@shared.speech
def report(as_json: bool, quiet: bool, **options: Any) -> None:
    """Write a page about a saved model, judged by the rows of a table."""
    from deepprox.cli.reporting import report_on

    report_on(Voice(as_json, quiet), options)


@main.command()
@click.option("--splits", default=20, show_default=True, help="Random 70/30 splits.")
@click.option("--quick", is_flag=True, help="Fewer iterations and starts, for a first look.")
@click.option("--out", "-o", default="build/iris", show_default=True, help="Folder of tables and pictures.")
@click.option("--seed", default=0, show_default=True, help="Seed of everything random.")
@shared.speech
def iris(splits: int, quick: bool, out: str, seed: int, as_json: bool, quiet: bool) -> None:
    """Reproduce the Iris study of Polson, Willard and Heidari (2015)."""
    from rich.console import Console

    from deepprox.applications.iris import run

    found = run(splits, quick, Path(out), seed, Console(stderr=as_json, quiet=quiet))
    if as_json:
        record = {"verdicts": [v._asdict() for v in found.verdicts], "notes": found.notes}
        Voice(True, quiet).result(plain(record | {"files": [str(file) for file in found.files]}), "")
