"""bench/report_page.py - the page of bench/report: one HTML file with all in it, light and dark, no script, no network."""
import html
import io
import os
import re
from statistics import median

try:
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    import matplotlib.ticker
except ImportError: # tables only
    matplotlib = plt = None

OURS, OTHER, PEER = "#d9652b", "#8793a8", "#5b8fd6"
INK = "#010203" # becomes the page's ink, light or dark

STYLE = """
:root{color-scheme:light dark;--paper:#fbfaf7;--ink:#1d2430;--soft:#5d6675;--line:#dcd9d0;--ours:#b83c0a;--card:#fff;
--good:#1c7a3d;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--paper:#12161f;--ink:#e8eaf0;--soft:#9aa3b5;--line:#2c3444;--ours:#ff9a5c;
--card:#1a202c;--good:#63c98a;--bad:#ff8a80}}
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}
main{max-width:1000px;margin:0 auto;padding:32px 20px 64px}
h1{font-size:clamp(26px,5vw,40px);line-height:1.15;margin:0 0 12px;text-wrap:balance}
h2{margin:48px 0 6px;font-size:22px;line-height:1.25;text-wrap:balance}h3{margin:20px 0 4px;font-size:16px}
p{margin:0 0 12px;max-width:70ch}.soft{color:var(--soft);font-size:14px}
.warn{margin:8px 0;border-left:4px solid var(--bad);padding:8px 12px;background:var(--card)}
figure{margin:12px 0;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px}
figure svg{display:block;width:100%;height:auto;max-width:640px}figcaption{font-size:14px;color:var(--soft)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:0 16px}
.wide{overflow-x:auto}li{font-size:14px;margin:2px 0}table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums;width:100%}
th,td{padding:5px 10px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}td.group{border:0;padding-top:12px;color:var(--soft)}td.text{white-space:normal;text-align:left;min-width:9em}
.ours{color:var(--ours);font-weight:600}.good{color:var(--good)}.bad{color:var(--bad);font-weight:600}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;font-size:14px;margin:0 0 16px}dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}summary{cursor:pointer;color:var(--soft);font-size:14px;padding:4px 0}
nav{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:14px;margin:16px 0}a{color:inherit}
footer{margin-top:48px;color:var(--soft);font-size:14px}
@media(max-width:520px){main{padding:20px 14px 48px}th,td{padding:4px 7px;font-size:13px}}
@media print{:root{color-scheme:light;--paper:#fff;--ink:#000;--soft:#444;--line:#ccc;--ours:#b83c0a;--card:#fff;--good:#1c7a3d;--bad:#b3261e}
main{max-width:none;padding:0}body{font-size:11pt}h1,h2,h3{break-after:avoid}h2{margin-top:24px;font-size:16pt}section>p{break-inside:avoid}
.charts{grid-template-columns:1fr 1fr}figure,tr,.warn{break-inside:avoid}.wide{overflow:visible}nav,details:not([open]){display:none}}
"""


def charts_available():
    return plt is not None


def esc(text):
    return html.escape(str(text), quote=True)


def with_code(text):
    return re.sub("`([^`]*)`", r"<code>\1</code>", esc(text))


def figure(v, unit=""):
    if v is None:
        return "–"
    if unit == "ns" and v >= 10000:
        return figure(v / 1000, "µs") if v < 1e7 else figure(v / 1e6, "ms")
    if unit == "us" and v >= 10000:
        return figure(v / 1000, "ms")
    text = f"{v:.2f}" if abs(v) < 10 else f"{v:.1f}" if abs(v) < 100 else f"{v:,.0f}"
    return f"{text} {'µs' if unit == 'us' else unit}".strip()


def times(x):
    return f"{x:,.0f} ×" if x >= 100 else f"{x:.1f} ×" if x >= 10 else f"{x:.2f} ×"


def subject(r):
    """The question; of several MPIs each is compared with itself."""
    return f"mpi, {r['method'].split('-')[0]}" if r["bench"] == "mpi" else r["bench"]


def groups(rows):
    """Rows that compare with each other: same question, metric, threads, VPs and placement."""
    found = {}
    for r in rows:
        if r["metric"] != "none":
            found.setdefault((subject(r), r["metric"], r["vps"], r["placement"], r["threads"], r.get("size")), []).append(r)
    return found


def group_title(key):
    bench, metric, vps, placement, threads, size = key
    apart = ", neighbours on different processors" if placement == "spread" else ""
    return f"{bench}, {metric}: {threads:,} thread{'s' if threads != 1 else ''}, {vps} VP{'s' if vps != 1 else ''}{apart}{f', size {size}' if size else ''}"


# ---- tables -------------------------------------------------------------------------------------------------

def reference(rows):
    """What ours is compared with: the best of the others."""
    others = [r["median"] for r in rows if r["by"] != "kochab" and r["median"]]
    return min(others, default=None)


def table(key, rows):
    ref = reference(rows)
    out = [f"<h3>{esc(group_title(key))}</h3><div class=wide><table><thead><tr><th>way</th><th>median</th><th>least</th>"
           "<th>most</th><th>runs</th><th>best of others</th></tr></thead><tbody>"]
    for r in sorted(rows, key=lambda r: (r["median"] is None, r["median"] or 0)):
        ratio = times(ref / r["median"]) if ref and r["by"] == "kochab" and (r["median"] or 0) > 0 else ""
        out.append(f"<tr><td{' class=ours' if r['by'] == 'kochab' else ''}>{esc(r['method'])}</td>"
                   f"<td>{figure(r['median'], r['unit'])}</td><td>{figure(r['min'], r['unit'])}</td>"
                   f"<td>{figure(r['max'], r['unit'])}</td><td>{r['runs']}</td><td>{ratio}</td></tr>")
    return "".join(out) + "</tbody></table></div>"


# ---- charts -------------------------------------------------------------------------------------------------

def inline(fig, name):
    buffer = io.StringIO()
    matplotlib.rcParams["svg.hashsalt"] = name # marks of two charts in a page must not be the same
    fig.savefig(buffer, format="svg", bbox_inches="tight", transparent=True, metadata={"Date": None})
    plt.close(fig)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg"):].replace(INK, "currentColor")
    svg = re.sub(r' (width|height)="[0-9.]+pt"', "", svg, count=2)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{esc(name)}" ', 1)


def plain(ax):
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(INK)
        ax.spines[side].set_alpha(0.3)
    ax.tick_params(which="both", colors=INK, labelsize=8, length=0)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)


def color(r):
    return OURS if r["by"] == "kochab" else PEER if r["by"] == "peer" else OTHER


def bars(key, rows, log):
    rows = sorted((r for r in rows if r["median"] and r["median"] > 0), key=lambda r: -r["median"])
    if len(rows) < 2:
        return ""
    fig, ax = plt.subplots(figsize=(4.4, 0.4 + 0.25 * len(rows)))
    y, v = range(len(rows)), [r["median"] for r in rows]
    least, most = min(r["min"] for r in rows), max(r["max"] for r in rows)
    ax.barh(y, v, color=[color(r) for r in rows], height=0.62)
    ax.errorbar(v, y, xerr=[[r["median"] - r["min"] for r in rows], [r["max"] - r["median"] for r in rows]], fmt="none", ecolor=INK,
                elinewidth=1, alpha=0.55)
    ax.set_yticks(list(y), [r["method"] for r in rows])
    if log and least > 0:
        ax.set_xscale("log")
        ax.set_xlim(least / 2, most * 6)
    else:
        ax.set_xlim(0, most * 1.25)
    for i, r in enumerate(rows):
        ax.text(r["max"] * (1.08 if log else 1) + (0 if log else most * 0.015), i, figure(r["median"], r["unit"]), va="center", fontsize=8,
                color=INK)
    plain(ax)
    ax.set_xticks([], [])
    ax.set_xticks([], [], minor=True)
    ax.spines["bottom"].set_visible(False)
    scale = "; logarithmic" if log else ""
    return f"<figure><figcaption>{esc(group_title(key))}{scale}</figcaption>{inline(fig, group_title(key))}</figure>"


SHADES = (OURS, "#8f6bc4", OTHER, PEER, "#4aa37c", "#c79a2e", "#7c6a58", "#c4607f")
# the same way in the same colour in every chart; spin, what the work alone takes, in the page's ink
WAYS = {"rotator": OURS, "rotator-paper": "#d9a441", "lb2-semop": "#8f6bc4", "lb2-futex": "#b08ad9", "lb2-spin": "#c4607f", "steal": "#4aa37c",
        "lb2, semop": "#8f6bc4", "lb2, futex": "#b08ad9", "stealing": "#4aa37c",
        "nptl": OTHER, "nptl-barrier": PEER, "nptl-cond": "#7c6a58", "kochab-posix": "#e58a6a", "spin": INK}


def line_axes(ax, series, log_y, colors=None, bands=True):
    """series: {label: [(x, median, least, most)]}; bands: from least to most"""
    for i, (label, points) in enumerate(series.items()):
        shade = (colors or WAYS).get(label) or SHADES[i % len(SHADES)]
        x = [p[0] for p in points]
        if bands:
            ax.fill_between(x, [p[2] for p in points], [p[3] for p in points], color=shade, alpha=0.12, linewidth=0)
        ax.plot(x, [p[1] for p in points], marker="o", markersize=3, linewidth=1.5, color=shade, label=label,
                linestyle="--" if label == "spin" else "-")
    if log_y:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda v, _: f"{v:,.0f}" if v >= 10 else f"{v:g}"))
        ax.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    ax.set_xticks([], [], minor=True)
    ax.grid(True, alpha=0.18, color=INK)
    plain(ax)
    ax.legend(fontsize=8, frameon=False, labelcolor=INK, loc="upper left", bbox_to_anchor=(0, -0.2), ncols=3)


def lines(name, title, unit, series, log_y=True, x_label="virtual processors", x_power=False, bands=True):
    """x_power: x counts bits, and 2^x is shown."""
    fig, ax = plt.subplots(figsize=(5.2, 3.1))
    ticks = sorted({p[0] for points in series.values() for p in points})
    if not x_power:
        ax.set_xscale("log", base=2)
    line_axes(ax, series, log_y, bands=bands)
    ax.set_xticks(ticks, [f"$2^{{{t}}}$" if x_power else str(t) for t in ticks])
    ax.set_xticks([], [], minor=True)
    ax.set_xlabel(x_label, fontsize=8)
    ax.set_ylabel(unit, fontsize=8)
    return f"<figure><figcaption>{esc(title)}</figcaption>{inline(fig, name + title)}</figure>"


def over_size(rows, metric, methods, base=None):
    """{method: [(size, median, least, most)]}; base: divided by that method's median."""
    of = {(r["method"], r["size"]): r for r in rows if r["metric"] == metric and r["median"] and r.get("size")}
    out = {}
    for m in methods:
        points = []
        for (method, size), r in sorted(of.items()):
            by = of.get((base, size), {}).get("median") if base else 1
            if method == m and by:
                points.append((size, r["median"] / by, r["min"] / by, r["max"] / by))
        if len(points) > 1:
            out[m] = points
    return out


def size_charts(e, rows):
    out = ""
    for vps in sorted({r["vps"] for r in rows}):
        here = [r for r in rows if r["vps"] == vps]
        where = f"{vps} virtual processor{'s' if vps != 1 else ''}"
        found = over_size(here, e["chart"], e["show"])
        if found:
            out += lines(e["name"], f"{e['chart']}, ms, {where}; logarithmic", "ms", found, True, "radix", True)
        found = over_size(here, e["chart"], e["against"], e["base"])
        if found:
            out += lines(e["name"], f"{e['chart']}, {e['base']} = 1, {where} (figure 8)", f"of {e['base']}", found, False, "radix", True, False)
    return out


# ---- charts for files: on a card of their own ------------------------------------------------------------

def on_card(fig):
    buffer = io.StringIO()
    matplotlib.rcParams["svg.hashsalt"] = "card"
    fig.savefig(buffer, format="svg", bbox_inches="tight", facecolor="#ffffff", metadata={"Date": None})
    plt.close(fig)
    return buffer.getvalue().replace(INK, "#1d2430")


def charts_for_files(results, cores):
    """(name, SVG): the paper's figure 12, and the sort at the radix with most threads."""
    rows = {r["experiment"]["name"]: r["rows"] for r in results}
    ways = {"rtsig": "real-time signals", "agent-rtsig": "polling agent + signals", "condvar": "condition variables",
            "futex": "futexes", "kochab": "Kochab"}
    of = {}
    for r in rows.get("rendezvous", []):
        if r["method"] in ways and r["vps"] == cores and r["median"] and r["placement"] == "free" and r["metric"] == "one-way":
            of.setdefault(ways[r["method"]], []).append((r["threads"], r["median"], r["min"], r["max"]))
    if of:
        fig, ax = plt.subplots(figsize=(5.6, 3.0))
        series = {label: sorted(of[label]) for label in ways.values() if label in of}
        ax.set_xscale("log")
        line_axes(ax, series, True, {"Kochab": OURS, "real-time signals": "#8f6bc4", "polling agent + signals": "#c79a2e",
                                     "condition variables": OTHER, "futexes": PEER})
        ax.set_xlabel("threads in the ring", fontsize=8)
        ax.set_ylabel("ns, one way", fontsize=8)
        ax.set_title(f"A message to a thread that waits, {cores} processors", fontsize=9, color=INK)
        yield "rendezvous.svg", on_card(fig)
    found = over_size([r for r in rows.get("radix", []) if r["vps"] == cores], "turnaround",
                      ["rotator", "lb2-semop", "nptl", "nptl-barrier", "spin"])
    if found:
        fig, ax = plt.subplots(figsize=(5.6, 3.0))
        line_axes(ax, found, True)
        ticks = sorted({p[0] for points in found.values() for p in points})
        ax.set_xticks(ticks, [f"$2^{{{t}}}$" for t in ticks])
        ax.set_xlabel("radix", fontsize=8)
        ax.set_ylabel("ms", fontsize=8)
        ax.set_title(f"Radix sort of 4,194,304 keys, 64 threads a phase, {cores} processors", fontsize=9, color=INK)
        yield "radix.svg", on_card(fig)


# ---- parts of the page --------------------------------------------------------------------------------------

def ratio_of(p, rows, metric, cores):
    """How many times as fast the rows have it, or None."""
    threads = {"cores": cores, "cores+1": cores + 1}.get(p["threads"], p["threads"])
    of = {r["method"]: r["median"] for r in rows if r["threads"] == threads and r["metric"] == metric and r["median"]
          and r["placement"] == "free" and r["vps"] == (p["vps"] or cores) and r.get("size") == p["size"]}
    return of[p["slow"]] / of[p["fast"]] if p["slow"] in of and p["fast"] in of else None


def paper(e, rows, cores):
    """The papers' ratios beside ours. A goal that is missed is said in words."""
    out, words = [], ""
    for p in e["paper"]:
        x = ratio_of(p, rows, e["chart"], cores)
        bad = p["must"] and x is not None and x < p["theirs"]
        shown = "not measured" if x is None else times(x)
        out.append(f"<tr><td class=text>{esc(p['text'])}</td><td>{p['theirs']:,} ×</td><td class={'bad' if bad else 'good' if p['must'] else ''}>"
                   f"{shown}</td></tr>")
        if bad:
            words += (f"<p class=warn>Missed: {esc(p['fast'])} is {shown} as fast as {esc(p['slow'])} here; the paper had {p['theirs']:,} × "
                      "between its own two.</p>")
    if not out:
        return ""
    return ("<h3>The papers beside us</h3><div class=wide><table><thead><tr><th>how many times as fast</th><th>paper</th><th>here</th></tr>"
            f"</thead><tbody>{''.join(out)}</tbody></table></div>{words}")


def idle_table(rows):
    """Lesser Bear's table 3, for each size."""
    names = sorted({r["metric"] for r in rows if r["metric"].startswith("idle-VP")})
    if not names:
        return ""
    of = {(r["vps"], r["size"], r["method"], r["metric"]): r["median"] for r in rows if r["metric"] in names}
    body = "".join(f"<tr><td>{esc(m)}</td><td>2<sup>{size}</sup></td>"
                   + "".join(f"<td>{figure(of.get((vps, size, m, n)))}</td>" for n in names) + "</tr>"
                   for vps, size, m in sorted({k[:3] for k in of}, key=lambda k: (k[1], k[0])))
    head = "".join(f"<th>{esc(n[5:])}</th>" for n in names)
    return ("<details><summary>Table 3: idle time of each virtual processor during a sort, ms</summary><div class=wide><table><thead><tr>"
            f"<th>way</th><th>radix</th>{head}</tr></thead><tbody>{body}</tbody></table></div></details>")


def notes(rows):
    found = {}
    for r in rows:
        if r["note"]:
            found.setdefault(r["note"], {}).setdefault(r["method"], set()).add(r["threads"])
    said = [f"{note}: " + ", ".join(f"{m} with {', '.join(f'{t:,}' for t in sorted(n))}" for m, n in by.items()) for note, by in found.items()]
    return f"<p class=soft>{esc('. '.join(s[0].upper() + s[1:] for s in said))} threads.</p>" if said else ""


def pairs(e, rows):
    """{(program, threads, VPs): ({metric: row} of the first, of the second method)}, where both have a figure."""
    found = {}
    for r in rows:
        if r["runs"] and r["method"] in e["versus"]:
            both = found.setdefault((r["bench"], r["threads"], r["vps"]), ({}, {}))
            both[e["versus"].index(r["method"])][r["metric"]] = r
    return {k: both for k, both in found.items() if all(e["chart"] in side for side in both)}


def versus_label(key):
    return f"{key[0]}, {key[1]:,} thread{'s' if key[1] != 1 else ''}, {key[2]} VP{'s' if key[2] != 1 else ''}"


def versus_chart(e, rows):
    """How many times as fast the second is: to the right of 1 faster, to the left slower."""
    found = {versus_label(k): a[e["chart"]]["median"] / b[e["chart"]]["median"] for k, (a, b) in pairs(e, rows).items()
             if a[e["chart"]]["median"] > 0 and b[e["chart"]]["median"] > 0}
    if not found:
        return ""
    fig, ax = plt.subplots(figsize=(4.8, 0.4 + 0.24 * len(found)))
    names, x = list(reversed(found)), list(reversed(found.values()))
    ax.barh(range(len(x)), [v - 1 for v in x], left=1, color=[OURS if v >= 1 else OTHER for v in x], height=0.62)
    ax.set_xscale("log")
    ax.set_yticks(range(len(x)), names)
    for i, v in enumerate(x):
        ax.text(max(v, 1) * 1.05, i, times(v), va="center", fontsize=8, color=INK)
    ax.set_xlim(min(*x, 1) / 1.1, max(*x, 1) * 1.9)
    plain(ax)
    ax.axvline(1, color=INK, linewidth=0.8, alpha=0.6)
    ax.set_xticks([], [])
    ax.set_xticks([], [], minor=True)
    for side in ("bottom", "left"):
        ax.spines[side].set_visible(False)
    title = f"How many times as fast {e['versus'][1]} is as {e['versus'][0]}: the line is 1; logarithmic"
    return f"<figure><figcaption>{esc(title)}</figcaption>{inline(fig, title)}</figure>"


def versus_table(e, rows):
    metrics = [e["chart"], "p50", "p99", "p99.9"]
    head = "".join(f"<th>{esc(m)}</th>" for m in metrics)
    body = ""
    for k, both in pairs(e, rows).items():
        body += f"<tr><td class=group colspan={1 + len(metrics)}>{esc(versus_label(k))}</td></tr>"
        for i, side in enumerate(both):
            body += f"<tr><td{' class=ours' if i else ''}>{esc(e['versus'][i])}</td>" + "".join(
                f"<td>{figure(side[m]['median'], side[m]['unit']) if m in side else ''}</td>" for m in metrics) + "</tr>"
    return (f"<h3>Time of a piece of work, and percentiles of the answers' times</h3><div class=wide><table><thead><tr><th></th>{head}"
            f"</tr></thead><tbody>{body}</tbody></table></div>") if body else ""


def section(result, cores, busy):
    e, rows = result["experiment"], result["rows"]
    out = [f"<section id={esc(e['name'])}><h2>{esc(e['title'])}</h2><p>{esc(e['question'][0].upper() + e['question'][1:])}. "
           f"{with_code(e['method'])}</p>"]
    if result["loads"] and median(result["loads"]) > busy + 1.5: # the bench itself is a load of one or two
        out.append("<p class=warn>The machine was busy with other work while this was measured.</p>")
    if not rows:
        return "".join(out) + "<p class=soft>Not measured.</p></section>"
    found = groups(rows)
    if charts_available():
        if e.get("over") == "size":
            out.append(f"<div class=charts>{size_charts(e, rows)}</div>")
        elif e.get("versus"):
            out.append(versus_chart(e, rows))
        else:
            drawn = [e["chart"], *e.get("charts", [])]
            out.append("<div class=charts>" + "".join(bars(k, r, e["log"]) for name in drawn for k, r in found.items() if k[1] == name) +
                       "</div>")
    out += [paper(e, rows, cores), idle_table(rows)]
    out += [versus_table(e, rows) if e.get("versus") else "", notes(rows)]
    tables = "".join(table(k, r) for k, r in found.items())
    out.append(f"<details{'' if charts_available() else ' open'}><summary>All figures</summary>{tables}</details></section>")
    return "".join(out)


def limit_section(limits):
    measured, reached = sum(1 for row in limits if row[3] is not None), sum(1 for row in limits if row[3])
    if not measured:
        return ""
    words = {None: ("soft", "not measured"), True: ("good", "reached"), False: ("bad", "missed")}
    missed = "".join(f"<li>{esc(t)} is {esc(v)}; promised is {esc(limit)}.</li>" for t, v, limit, ok in limits if ok is False)
    body = "".join(f"<tr><td class=text>{esc(t)}</td><td>{esc(v)}</td><td>{esc(limit)}</td>"
                   f"<td class={words[ok][0]}>{words[ok][1]}</td></tr>" for t, v, limit, ok in limits)
    return (f"<section id=limits><h2>Against what was promised</h2><p>{reached} of {measured} limits that this report measures are reached. "
            f"Why others are missed is in doc/why/limits.md.</p>{'<h3>Missed</h3><ul>' + missed + '</ul>' if missed else ''}"
            "<details><summary>All of them</summary><div class=wide><table><thead><tr><th>limit</th><th>here</th><th>limit</th>"
            f"<th></th></tr></thead><tbody>{body}</tbody></table></div></details></section>")


def simulation_section(files):
    if not files:
        return ""
    import simulate_charts
    out = ["<section id=simulation><h2>On more processors than there are</h2><p>The schedulers, boards and agents as they are, on a machine on "
           "paper: bench/simulate, recorded. Each virtual processor has a processor of its own. What the model leaves out stands in "
           "bench/sim/machine.h; how near it comes to what one and two processors were measured to take, what follows from the charts, and "
           "what of that the default policy does now, in doc/why/simulator.md.</p>"]
    for name, path in files:
        rows = simulate_charts.load(path)
        costs = rows[0].get("costs", name) if rows else name
        charts = ""
        for work, metric, unit, title, where, over in simulate_charts.CHARTS:
            found = simulate_charts.series(rows, work, metric, where, over)
            series = {simulate_charts.LABELS[s]: p for s, p in found.items()}
            if series and charts_available():
                charts += lines(name, title, unit, series, log_y=metric not in ("idle", "more"), x_label=simulate_charts.AXES[over])
        out.append(f"<p class=soft>Costs: bench/sim/costs/{esc(costs)}.tsv</p><div class=charts>{charts}</div>")
    return "".join(out) + ("" if charts_available() else "<p class=soft>Charts need matplotlib.</p>") + "</section>"


def about(m, o, results, busy):
    names = {"cpu": "processor", "cores": "processors", "virtual": "virtual machine", "governor": "frequency governor", "kernel": "kernel",
             "libc": "libc", "load": "load at the start", "time": "time", "kochab": "version", "revision": "revision"}
    rows = "".join(f"<dt>{names[k]}</dt><dd>{esc(m[k])}</dd>" for k in names if k in m)
    how = "short measurements" if o["quick"] else "full length"
    rounds = f"{o['rounds']} rounds" if o["rounds"] > 1 else "one round"
    out = (f"<dl>{rows}<dt>measured</dt><dd>{rounds} of every question in turns, {how}; each measurement is a process of its "
           "own</dd></dl>")
    if m.get("load", 0) / max(1, m.get("cores", 1)) > busy:
        out += (f"<p class=warn>The machine was busy when this began: load {esc(m['load'])} on {esc(m['cores'])} processors. Figures are worse "
                "than on a quiet one, and ratios to kernel threads are not what they would be.</p>")
    missing = sorted({r["experiment"]["name"] for r in results if not r["rows"]})
    absent = sorted(set().union(*(r["absent"] for r in results)))
    if missing:
        out += f"<p class=soft>Not measured: {esc(', '.join(missing))}.</p>"
    if absent:
        out += f"<p class=soft>Not here, so not compared with: {esc(', '.join(absent))}. For other runtimes bench/shim/build says why.</p>"
    if not charts_available():
        out += "<p class=soft>No charts: this python3 has no matplotlib (Debian: python3-matplotlib).</p>"
    return out


def page(m, results, limits, simulations, o, busy):
    links = "".join(f"<a href=#{esc(r['experiment']['name'])}>{esc(r['experiment']['name'])}</a>" for r in results)
    links += "<a href=#limits>limits</a>" * any(row[3] is not None for row in limits) + "<a href=#simulation>simulation</a>" * bool(simulations)
    body = [f"<h1>Kochab, measured on this machine</h1>{about(m, o, results, busy)}",
            "<p>Bars are medians; the thin line on each goes from the least to the most of the rounds. "
            f"<span class=ours>Kochab</span>, kernel threads in grey, other runtimes in blue. Less is better everywhere.</p><nav>{links}</nav>"]
    body += [section(r, int(m.get("cores", 1)), busy) for r in results]
    body += [limit_section(limits), simulation_section(simulations)]
    body.append("<footer>Made by <code>kochab bench report</code>; the figures are in report.jsonl beside this page. "
                "<code>bench/diff</code> compares two such files.</footer>")
    return ("<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width,initial-scale=1'>"
            f"<title>Kochab, measured</title><style>{STYLE}</style></head><body><main>{''.join(body)}</main></body></html>\n")


if __name__ == "__main__":
    print(os.path.basename(__file__) + ": charts " + ("can" if charts_available() else "cannot") + " be drawn")
