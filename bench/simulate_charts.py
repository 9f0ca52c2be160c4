"""bench/simulate_charts.py - SVG charts of `bench/simulate sweep`'s JSON lines. Called by bench/simulate; needs matplotlib."""
import json
import os
from statistics import median

LABELS = {"rotator": "rotator", "rotator-paper": "rotator-paper", "lb2-semop": "lb2, semop", "lb2-futex": "lb2, futex",
          "steal": "stealing"}
AXES = {"vps": "virtual processors", "pollers": "pollers", "capacity": "fair-share capacity"}
# work, figure, axis, title, which rows, over what
CHARTS = [(*chart, "vps") for chart in (
    ("distribute", "most", "µs", "From one VP to 4/5 of the share on each", {}),
    ("skew", "idle", "% of the processors' time", "Idle: a burst of threads of 2 µs on average", {"service": 2000}),
    ("skew", "speedup", "times", "Speed-up of that burst", {"service": 2000}),
    ("skew", "speedup", "times", "Speed-up, threads of 20 µs", {"service": 20000}),
    ("skew", "speedup", "times", "Speed-up, threads of 0.2 µs", {"service": 200}),
    ("phases", "more", "% over the ideal", "63 threads of 20 µs that end and are created for each phase", {"service": 20000}),
    ("spawn", "create+join", "ns a thread", "Create and join 2,000 threads that return", {}),
    ("channels", "message", "ns a message", "256 threads, each to every other one", {}),
    ("ring", "one-way", "ns", "A message round 128 threads, neighbours apart", {"placement": "spread"}),
)] + [
    ("skew", "speedup", "times", "Of 32 virtual processors so many poll: speed-up of the burst of 2 µs", {"service": 2000}, "pollers"),
    ("channels", "message", "ns a message", "Of 32 so many poll: 256 threads, each to every other one", {}, "pollers"),
    ("distribute", "most", "µs", "8 virtual processors, capacity fixed: to 4/5 of the share on each", {}, "capacity"),
    ("skew", "speedup", "times", "8 virtual processors, capacity fixed: speed-up of the burst of 2 µs", {"service": 2000}, "capacity"),
]


def load(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def series(rows, work, figure, where, over="vps"):
    """{scheduler: [(vps, or what `over` says, median, least, most)]}; but for that the options are the defaults."""
    found = {}
    for r in rows:
        usual = all(bool(r[k]) == (k == over) for k in ("capacity", "pollers"))
        if r["work"] == work and figure in r and usual and all(r.get(k) == v for k, v in where.items()):
            found.setdefault(r["sched"], {}).setdefault(r[over], []).append(r[figure])
    return {s: [(n, median(v), min(v), max(v)) for n, v in sorted(p.items())] for s, p in found.items()}


def draw(path):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    rows = load(path)
    for i, (work, figure, unit, title, where, over) in enumerate(CHARTS):
        lines = series(rows, work, figure, where, over)
        if not lines:
            continue
        fig, ax = plt.subplots(figsize=(6, 3.6))
        for sched, label in LABELS.items():
            points = lines.get(sched, [])
            if points:
                ax.plot([p[0] for p in points], [p[1] for p in points], marker="o", markersize=3, label=label)
        ax.set_xscale("log", base=2)
        if "%" not in unit:
            ax.set_yscale("log")
        ax.set_xlabel(AXES[over])
        ax.set_ylabel(unit)
        ax.set_title(title, fontsize=10)
        ax.grid(True, alpha=0.3)
        ax.legend(fontsize=8)
        out = f"{os.path.splitext(path)[0]}-{i + 1}-{work}.svg"
        fig.savefig(out, bbox_inches="tight")
        plt.close(fig)
        print(f"{out} written")
