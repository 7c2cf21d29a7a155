"""``deepprox compare``: architectures side by side."""

from typing import Any

from deepprox.cli.fitting import keep, quietly, record_of
from deepprox.cli.training import estimator, prepare
from deepprox.cli.voice import OK, Voice
from deepprox.files import need_writable
from deepprox.report.table import Table
from deepprox.selection import Comparison, compare

SHOWN = ("loss", "n_inputs", "n_nonzero", "df", "aic", "bic", "log_evidence", "weight_bic", "weight_evidence")


def compare_all(voice: Voice, options: dict[str, Any], command: str) -> int:
    """Fit every pair of widths and links, tell what they are worth, and save the best if asked to."""
    if options["out"]:
        need_writable(options["out"])
    prepared = prepare(voice, options)
    models = {}
    for hidden in options["hidden"]:
        for link in options["link"] if hidden else options["link"][:1]:  # without units there is no link
            name = f"{'-'.join(map(str, hidden))} {link}" if hidden else "none"
            asked = options | {"hidden": hidden, "link": link}
            models[name] = estimator(prepared, asked, options["alpha"], False)
    with quietly():
        found = compare(models, prepared.X, prepared.y, verbose=int(voice.progress))
    best = found.best(options["by"])
    name = found.names[found.estimators.index(best)]
    table = f"{side_by_side(found)}\n\nBest by {options['by']}: {name}."
    frame = found.frame().reset_index().to_dict("list")
    record = {"frame": frame, "by": options["by"], "best": name, "why": [*found.why]}
    if options["out"]:
        voice.note(table)
        return keep(voice, best, prepared, options["out"], {"command": command}, record)
    voice.result(record | record_of(best), table)
    return OK


def side_by_side(found: Comparison) -> str:
    """The columns of a comparison that fit a terminal, and why a number is missing."""
    frame = found.frame()
    shown = [name for name in SHOWN if name in frame]
    rows = [
        (str(name), *(f"{v:.4g}" for v in row))
        for name, row in zip(frame.index, frame[shown].to_numpy(float))
    ]
    header = ("hidden", *(name.replace("_", " ") for name in shown))
    missing = [f"{name}: {why}" for name, why in zip(found.names, found.why) if why]
    return "\n".join([Table(rows, header, numeric=range(1, len(header))).text(width=120), *missing])
