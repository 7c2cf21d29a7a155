"""``deepprox report``: a page about a saved model."""

from typing import Any

from deepprox.cli.predicting import inputs, usable
from deepprox.cli.training import need_columns, table_for
from deepprox.cli.voice import Voice
from deepprox.files import need_writable
from deepprox.loading import read
from deepprox.report.html import write_report
from deepprox.report.summary import architecture
from deepprox.tables import read_response

ORIGIN = {"data": "data", "sha256": "SHA-256 of the data", "rows": "rows", "rows_used": "rows used"}


def report_on(voice: Voice, options: dict[str, Any]) -> None:
    """Write the page."""
    need_writable(options["out"])
    saved = read(options["model"])
    table = table_for(saved, options)
    target = options["target"] or saved.notes.get("target")
    if target is None:
        raise ValueError("The file does not say which column was predicted: name it with --target.")
    need_columns(table, [target])
    known = table[table[target].notna()].reset_index(drop=True)
    if len(known) < len(table):
        voice.note(f"{len(table) - len(known)} of {len(table)} rows are left out: {target!r} is missing.")
    known = known[usable(saved, known, options["missing"], voice, "rows are left out")]
    task = "classification" if "classes_" in vars(saved.network) else "regression"
    y = read_response(known[target], task).values
    write_report(
        saved.network,
        options["out"],
        inputs(saved, known),
        y,
        title=options["title"] or f"{target}: {architecture(saved.network)}",
        response=target,
        command=saved.notes.get("command"),
        path_record=saved.notes.get("path"),
        rule=saved.notes.get("rule"),
        origin={words: str(saved.notes[name]) for name, words in ORIGIN.items() if saved.notes.get(name)},
    )
    voice.result({"report": options["out"]}, f"Saved in {options['out']}.")
