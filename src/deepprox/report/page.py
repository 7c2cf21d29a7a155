"""One self-contained HTML page: sections one below the other, no request to anywhere."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from deepprox.report.table import Table
from deepprox.report.text import visible

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"  # no scripts, no requests

STYLE = """
:root{color-scheme:light dark;--fg:#1f2937;--soft:#5b6472;--bg:#f6f7f9;--card:#ffffff;--line:#e3e6eb;
--ink:#1f3b73;--good:#1d7a4f;--warn:#b4541a;--bar:#2563c9;--heat:37,99,201;--split:#e8eef7;--join:#fbf1e3;
--newton:#e9f4ea;--batch:#eef0f2;--leaky:#f1f3e4;--prune:#f9e9ec;--stream:#f3eef7;
--red:#c8553d;--amber:#c07f2e;--green:#2a7f62;--grid:#e3e6eb}
@media(prefers-color-scheme:dark){:root{--fg:#e5e7eb;--soft:#9aa3b2;--bg:#0e1015;--card:#14171d;--line:#272c36;
--ink:#9dbcf5;--good:#5fce9a;--warn:#f0a36b;--bar:#6ea8fe;--heat:110,168,254;--split:#1a2130;--join:#2a2318;
--newton:#18271d;--batch:#20242a;--leaky:#22261a;--prune:#2c1b20;--stream:#241c2e;
--red:#ef8b74;--amber:#e6b26a;--green:#64c9a2;--grid:#272c36}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1080px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:26px;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:18px;margin:0 0 10px}
p{margin:0 0 12px}table+p,.facts+p{margin-top:12px}.soft{color:var(--soft)}
nav{display:flex;flex-wrap:wrap;gap:4px 16px;margin:14px 0 18px;font-size:14px}
a{color:var(--ink)}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px 20px;
margin:0 0 16px;min-width:0}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:0 0 16px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 14px}
.card b{display:block;font-size:20px;line-height:1.25;overflow-wrap:anywhere}
.card span{color:var(--soft);font-size:13px}
.good{color:var(--good)}.warn{color:var(--warn)}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:16px;align-items:start}
.pair>*{min-width:0}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:14px}
caption{text-align:left;font-weight:600;padding:0 0 6px}
th,td{padding:4px 14px 4px 0;border-bottom:1px solid var(--line);vertical-align:top;white-space:nowrap}
.facts td:last-child,.bars td:first-child{white-space:normal;overflow-wrap:anywhere}
.facts+.scroll,.pair+.scroll,figure+.scroll{margin-top:16px}
th{color:var(--soft);font-weight:500}
.bars{width:100%}.bars td{vertical-align:middle}.bars td:nth-child(2){width:60%}
.bar{height:12px;border-radius:3px;background:var(--bar);min-width:2px}
.heat td,.heat th{text-align:center;padding:6px 10px;border:1px solid var(--card)}
.heat th{max-width:11em;overflow:hidden;text-overflow:ellipsis}
.heat tbody th{text-align:right}
figure{margin:0}figure svg{width:100%;max-width:680px;height:auto;display:block}
figcaption{color:var(--soft);font-size:13px;margin-top:4px}
figure text{fill:var(--fg)}
.network svg,.wide svg{width:100%;height:auto;min-width:560px;max-width:900px;margin:0 auto}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--bg);border:1px solid var(--line);
border-radius:8px;padding:10px 12px;font-size:13px}
footer{color:var(--soft);font-size:13px}
@media(max-width:480px){main{padding:18px 12px 40px}section{padding:14px}h1{font-size:21px}
.cards{grid-template-columns:1fr 1fr;gap:8px}.card b{font-size:17px}table{font-size:13px}
.bars td:nth-child(2){width:36%}}
"""


class Section(NamedTuple):
    """A heading and HTML below it."""

    title: str
    body: str

    @property
    def anchor(self) -> str:
        """What a link to it says."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.title.lower())


class Card(NamedTuple):
    """A number that one looks for first; ``tone`` is "", "good" or "warn"."""

    value: str
    label: str
    tone: str = ""


def page(title: str, subtitle: str, cards: Sequence[Card], sections: Sequence[Section], footer: str) -> str:
    """The whole document; text is escaped here, bodies of sections are HTML already."""
    links = "".join(f'<a href="#{one.anchor}">{escape(one.title)}</a>' for one in sections)
    numbers = "".join(
        f'<div class="card"><b class="{tone}">{escape(value)}</b><span>{escape(label)}</span></div>'
        for value, label, tone in cards
    )
    bodies = "".join(
        f'<section id="{one.anchor}"><h2>{escape(one.title)}</h2>{one.body}</section>' for one in sections
    )
    return visible(  # pictures too, which come with the names in them
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>"
        f'<h1>{escape(title)}</h1><p class="soft">{escape(subtitle)}</p><nav>{links}</nav>'
        f'<div class="cards">{numbers}</div>{bodies}<footer>{escape(footer)}</footer></main></body></html>\n'
    )


def tables(*each: Table) -> str:
    """Tables one below the other; a wide one scrolls inside its own box."""
    return "".join(f'<div class="scroll">{table.html()}</div>' for table in each if table.rows)


def facts(table: Table) -> str:
    """A table of names and what is said of them, which wraps on a narrow screen."""
    return f'<div class="facts">{table.html()}</div>' if table.rows else ""


def bars(rows: Sequence[tuple[str, float, str]]) -> str:
    """A name, a bar and what it says for every row; the longest bar has the full width."""
    longest = max((size for _, size, _ in rows), default=0.0) or 1.0
    drawn = []
    for name, size, said in rows:
        bar = f'<div class="bar" style="width:{100 * size / longest:.1f}%"></div>'
        right = f'<td style="text-align:right">{escape(said)}</td>'
        drawn.append(f"<tr><td>{escape(name)}</td><td>{bar}</td>{right}</tr>")
    return f'<table class="bars"><tbody>{"".join(drawn)}</tbody></table>'


def heat(counts: Sequence[Sequence[int]], names: Sequence[str]) -> str:
    """A square table of counts, rows observed and columns predicted, darker where a row has more."""
    head = "".join(f"<th>{escape(name)}</th>" for name in ("", *names))
    rows = []
    for name, row in zip(names, counts):
        shares = [0.75 * count / max(sum(row), 1) for count in row]
        cells = (f'<td style="background:rgba(var(--heat),{s:.3f})">{n}</td>' for n, s in zip(row, shares))
        rows.append(f"<tr><th>{escape(name)}</th>{''.join(cells)}</tr>")
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="scroll"><table class="heat">{table}</table></div>'


def figure(svg: str, caption: str = "", kind: str = "") -> str:
    """A picture with words below it."""
    words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure class="{kind}">{svg}{words}</figure>'


def paragraph(words: str, kind: str = "") -> str:
    """Words, escaped."""
    return f'<p class="{kind}">{escape(words)}</p>'
