"""Cases that are command lines: what they say, how they end, and whether files are as they were."""

import os
import re
import shlex
import stat
import traceback
import warnings
from hashlib import sha256
from itertools import dropwhile, pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner

from attack import arena
from deepprox.cli import main

ROOM = 2 * 2**30  # bytes that a line may ask for
FIT = "fit people.csv --target cost --hidden none --alpha 0.1 --max-iter 50"
CLASSES = "fit flowers.csv --target kind --hidden none --alpha 0.1 --max-iter 50"
EVIL = "=HYPERLINK(1)", "\u202egnp", "<script>"
TABLES = {
    "empty.csv": b"",
    "header.csv": b"a,b,cost\n",
    "one.csv": b"a,b,cost\n1,2,3\n",
    "two.csv": b"a,b,cost\n1,2,3\n4,5,6\n",
    "twice.csv": b"a,a,cost\n1,2,3\n4,5,6\n7,9,9\n",
    "nameless.csv": b",b,cost\n1,2,3\n4,5,6\n7,9,9\n",
    "ragged.csv": b"a,b,cost\n1,2,3\n4,5\n6,7,8,9,10\n",
    "quotes.csv": b'a,b,cost\n1,"2,3\n4,5,6\n',
    "nul.csv": b"a,b,cost\n1,\x002,3\n4,5,6\n",
    "junk.csv": bytes(range(256)) * 20,
    "latin.csv": "größe,b,cost\n1,2,3\n4,5,6\n".encode("latin-1"),
    "utf16.csv": "a,b,cost\n1,2,3\n4,5,6\n".encode("utf-16"),
    "bom.csv": "\ufeffa,b,cost\n1,2,3\n4,5,6\n7,8,8\n".encode(),
    "semicolon.csv": b"a;b;cost\n1;2;3\n4;5;6\n",
    "long.csv": b"a,b,cost\n" + b"1" * 10**6 + b",2,3\n4,5,6\n",
    "huge.csv": b"a,b,cost\n" + b"9" * 400 + b",2,3\n1e999,5,6\n3,1e308,4\n",
    "inf.csv": b"a,b,cost\ninf,2,3\n4,-inf,6\n1,2,3\n",
    "na.csv": b"a,b,cost\nNA,2,NA\nNamibia,5,6\nx,7,NA\n",
    "dates.csv": b"a,b,cost\n2020-01-01,2,3\n2020-01-02,5,6\n2020-01-03,1,9\n",
    "ids.csv": b"id,b,cost\n" + b"".join(b"u%d,%d,%d\n" % (i, i % 7, i % 5) for i in range(60)),
    "constant.csv": b"a,b,cost\n1,2,3\n1,2,3\n1,2,3\n",
    "text.csv": b"a,b,cost\nx,y,z\nu,v,w\nx,v,z\n",
    "evil.csv": b"a,b,kind\n"
    + b"".join(b"%d,%d,%s\n" % (i % 5, i % 3, EVIL[i % 3].encode()) for i in range(30)),
    "names.csv": '"<script>","\u202eb","=1+1",cost\n'.encode()
    + b"".join(b"%d,%d,%d,%d\n" % (i, i % 3, i % 7, i) for i in range(30)),
    "wide.csv": ",".join(f"c{i}" for i in range(3000)).encode() + b",cost\n" + (b"1," * 3000 + b"2\n") * 3,
    "broken.parquet": b"PAR1" + bytes(100) + b"PAR1",
    "broken.feather": b"ARROW1" + bytes(100),
    "broken.deepprox": b"PK\x03\x04" + bytes(100),
    "broken.csv.gz": b"\x1f\x8b" + bytes(100),
    "people.xlsx": b"PK\x03\x04" + bytes(100),
}  # fmt: skip
ON_TABLES = [
    f"fit {name} --target cost --hidden none --alpha 0.1 --max-iter 50"
    for name in TABLES
    if name != "evil.csv"
]
LINES = [
    *ON_TABLES,
    "",
    "unfit",
    "--traceback",
    "fit",
    "fit people.csv",
    "fit --target cost",
    "fit -- --target cost",
    "fit . --target cost",
    "fit /dev/zero --target cost",
    "fit /dev/null --target cost",
    "fit absent.csv --target cost",
    "fit absent/people.csv --target cost",
    "fit people.csv/x.csv --target cost",
    "fit 'http://127.0.0.1:9/x.csv' --target cost",
    "fit 'file:///etc/passwd.csv' --target cost",
    "fit 's3://nowhere/x.csv' --target cost",
    "fit '' --target cost",
    "fit - --target cost",
    "fit folder.csv --target cost",
    f"{FIT} --drop cost",
    f"{FIT} --drop a --drop a",
    f"{FIT} --factor cost",
    f"{FIT} --drop ''",
    f"{FIT} --target ''",
    f"{FIT} --target town",
    f"{FIT} --target absent",
    f"{FIT} --separator ''",
    f"{FIT} --separator '(' ",
    f"{FIT} --separator '\\x00'",
    f"{FIT} --separator ab",
    f"{FIT} --alpha nan",
    f"{FIT} --alpha inf",
    f"{FIT} --alpha -1",
    f"{FIT} --alpha 1e400",
    f"{FIT} --alpha ''",
    f"{FIT} --hidden 0",
    f"{FIT} --hidden -3",
    f"{FIT} --hidden 3,,3",
    f"{FIT} --hidden ''",
    f"{FIT} --hidden 1000000000",
    f"{FIT} --hidden 99999999999999999999999999",
    f"{FIT} --hidden ,",
    f"{FIT} --starts 0",
    f"{FIT} --starts 1000000000",
    f"{FIT} --starts 99999999999999999999",
    f"{FIT} --max-iter -1",
    f"{FIT} --max-iter 1e3",
    f"{FIT} --tol 0",
    f"{FIT} --tol nan",
    f"{FIT} --tol -1",
    f"{FIT} --seed -1",
    f"{FIT} --seed 99999999999999999999",
    f"{FIT} --seed 1.5",
    f"{FIT} --penalty ''",
    f"{FIT} --penalty '__import__(\"os\")'",
    f"{FIT} --loss softmax",
    f"{FIT} --loss poisson",
    f"{FIT} --loss ''",
    f"{FIT} --link '' --hidden 2",
    f"{FIT} --task classification",
    f"{FIT} --missing mode",
    f"{FIT} --out ''",
    f"{FIT} --out .",
    f"{FIT} --out folder.csv",
    f"{FIT} --out people.csv/x",
    f"{FIT} --out absent/x",
    f"{FIT} --out fifo",
    f"{FIT} --out full",
    f"{FIT} --out link",
    f"{FIT} --out {'x' * 300}",
    f"{FIT} --out 'a\\x00b'",
    f"{FIT} --checkpoint people.csv",
    f"{FIT} --checkpoint ''",
    f"{FIT} --resume",
    f"{FIT} --distributed",
    f"{FIT} --json --json",
    f"{CLASSES} --task regression",
    f"{CLASSES} --loss squared",
    f"{CLASSES} --hidden 2 --link lp_norm",
    "fit evil.csv --target kind --hidden none --alpha 0.01 --max-iter 50",
    "path people.csv --target cost --hidden none --alphas 0",
    "path people.csv --target cost --hidden none --alphas 10000000",
    "path people.csv --target cost --hidden none --alphas 2 --plot p.exe",
    "path people.csv --target cost --hidden none --alphas 2 --out p.xlsx",
    "path people.csv --target cost --hidden none --alphas 2 --out absent/p.csv",
    "select people.csv --target cost --hidden none --alphas 2 --criterion ''",
    "select two.csv --target cost --hidden none --alphas 2 --criterion min",
    "compare people.csv --target cost --hidden none --hidden none --max-iter 50",
    "compare people.csv --target cost --hidden none --by evidence --max-iter 50",
    "compare people.csv --target cost --hidden '' --max-iter 50",
    "predict model.deepprox people.csv",
    "predict model.deepprox one.csv",
    "predict model.deepprox empty.csv",
    "predict model.deepprox /dev/zero",
    "predict model.deepprox people.csv --probabilities",
    "predict model.deepprox people.csv --out model.deepprox",
    "predict model.deepprox people.csv --out absent/x.csv",
    "predict broken.deepprox people.csv",
    "predict people.csv people.csv",
    "predict /dev/zero people.csv",
    "predict /dev/null people.csv",
    "predict . people.csv",
    "predict '' people.csv",
    "predict bomb.deepprox people.csv",
    "report model.deepprox people.csv --out absent/x.html",
    "report model.deepprox people.csv --out fifo",
    "report model.deepprox one.csv --out page.html",
    "report model.deepprox people.csv --target town --out page.html",
    "report model.deepprox people.csv --out page.html --title '\u202e<script>alert(1)</script>'",
    "report classes.deepprox people.csv --out page.html",
    "launch",
    "launch -n 0 -- fit people.csv --target cost",
    "launch -n -1 -- fit people.csv --target cost",
    "launch -n 2 -- predict model.deepprox people.csv",
    "iris --splits 0 --out iris",
    "iris --splits -1 --out iris",
]  # fmt: skip
KEPT = {"link", "people.csv"}  # though lines ask for it: a link stays one
# one sentence, or those about a table, one on each line
SENTENCE = re.compile(
    r"deepprox: (?!None)([^\n]{9,1000}\.|The table is refused for \d+ reasons:(\n[^\n]{9,1000}\.)+)"
)


def text(line):
    """A case as it can be typed."""
    return line


def begin():
    """Tables, models, and things that are no regular files; the folder is the place."""
    from attack.mutants import BOMBS

    for name, data in TABLES.items():
        Path(name).write_bytes(data)
    people = pd.DataFrame(
        {"a": arena.X[:, 0], "b": arena.X[:, 1], "town": np.array(list("abc") * 8), "cost": arena.y}
    )
    people.to_csv("people.csv", index=False)
    people.assign(kind=arena.labels).drop(columns="cost").to_csv("flowers.csv", index=False)
    Path("folder.csv").mkdir(exist_ok=True)
    Path("target").write_text("kept")
    Path("link").unlink(missing_ok=True)
    Path("link").symlink_to("target")
    for name in ("fifo", "full"):
        Path(name).unlink(missing_ok=True)
    os.mkfifo("fifo")
    try:  # a full disk of our own, where one may make it: root would write over that of the machine
        os.mknod("full", stat.S_IFCHR | 0o666, os.makedev(1, 7))
    except OSError:
        os.mkfifo("full")
    for line, name in ((FIT, "model.deepprox"), (CLASSES, "classes.deepprox")):
        ended = CliRunner().invoke(main, [*shlex.split(line), "--out", name])
        assert ended.exit_code in (0, 3), ended.output
    Path("bomb.deepprox").write_bytes(BOMBS[0](Path("model.deepprox").read_bytes()))
    made["model"] = Path("model.deepprox").read_bytes()


made = {}


def kept():
    """Every file by what it is: contents of regular ones, kinds of others."""
    found = {}
    for path in sorted(Path().rglob("*")):
        mode = path.lstat().st_mode
        found[str(path)] = sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(mode) else stat.S_IFMT(mode)
    return found


def run(line):
    """What was wrong, what was said, and where."""
    before = kept()
    words = [word.replace("\\x00", "\0") for word in shlex.split(line)]
    may = asked(words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ended = CliRunner().invoke(main, words, input="")
    said = "\n".join(dropwhile(lambda line: not line.startswith("deepprox: "), ended.stderr.splitlines()))
    after, error = kept(), ended.exception
    Path("model.deepprox").write_bytes(made["model"])
    gone = [name for name in before if name not in may and before[name] != after.get(name)]
    if error is not None and not isinstance(error, SystemExit):
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"a traceback of {type(error).__name__}", str(error), f"{last.filename}:{last.lineno}"
    if gone:
        return f"{gone[0]} is not what it was", said, ""
    if ended.exit_code not in (0, 2, 3):
        return f"the exit code {ended.exit_code}", said, ""
    if "Traceback" in ended.output:
        return "a traceback in words", said, ""
    if ended.exit_code == 2 and not ended.stderr.startswith("Usage: ") and not SENTENCE.fullmatch(said):
        return "no sentence", said, ""
    return None, f"{ended.exit_code} {said}", ""


def asked(words):
    """The regular files that a line says to write."""
    outs = [new for old, new in pairwise(words) if old in ("--out", "-o", "--plot")]
    outs += ["target"] if "link" in outs else []
    return {out for out in outs if not os.path.exists(out) or os.path.isfile(out)} - KEPT | {"model.deepprox"}


def again(line):
    """One line, with all that it prints."""
    ended = CliRunner().invoke(main, shlex.split(line), input="")
    print(ended.output)
    if ended.exception is not None:
        traceback.print_exception(*ended.exc_info)
    print("exit code", ended.exit_code)
