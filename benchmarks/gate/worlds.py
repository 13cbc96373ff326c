"""Worlds for gate v3: cases with pass rates, days, sessions, losses, caches. Nothing here knows the gate."""
from __future__ import annotations
from dataclasses import dataclass, fields
import numpy as np
from benchmarks.gate.reference import Metric

logit = lambda p: np.log(p / (1 - p))
expit = lambda z: 1 / (1 + np.exp(-z))
clip = lambda p: np.clip(p, 5e-4, 1 - 5e-4)


@dataclass(frozen=True)
class World:
    N: int = 50; k: int = 3; R: int = 10
    mix: str = "std"            # std ceil zero half u flaky clus
    kind: str = "bin"           # bin bimodal judge latency
    drift: float = 0.           # sd of a logit shift per day (first run, second and side by side share the day)
    step: float = 0.            # logit shift since the baseline, both sides
    session: float = 0.         # sd of a logit shift per session
    per_run: bool = False       # first run and baseline runs: one session a run (True: v2, and a bad case for v3), else one a pass
    cluster: float = 0.         # sd of a logit shift per session and cluster of cases
    case_drift: float = 0.      # sd per case and day
    wander: float = 0.          # sd per pass of a random walk of both sides during the side-by-side
    route: float = 0.           # half of the sessions are served by a worse snapshot
    caching: str = ""           # "session": one answer per case and session; "side": one per side for the whole job (first run too); "pass?": see job
    lost: float = 0.            # median loss rate of a session (log-normal, sd 1)
    hard: bool = False          # cases with rate < .9 lose 3 times as often
    upgrade: float = 0.         # judge scores fall by this on the day (both sides)
    flip: float = 0.            # share of judge verdicts that are coin flips
    metrics: int = 1
    change: str = "none"        # none | mean X | one X | errors X (the new failures are losses) | slow X (seconds times 1 + X)
    slack: float = 0.           # latency: allowed log ratio

    def name(self) -> str:
        return ", ".join(f"{f.name}={getattr(self, f.name)}" for f in fields(self) if getattr(self, f.name) != f.default and f.name != "change") or "standard"


def draw(w: World, g: np.random.Generator) -> dict:
    n = w.N
    if w.mix == "std":
        u = g.random(n)
        p = np.where(u < .5, .9995, np.where(u < .75, g.beta(15, 1.5, n), np.where(u < .92, g.beta(3, 2, n), g.beta(1, 12, n))))
    elif w.mix == "ceil": p = np.full(n, .99)
    elif w.mix == "zero": p = np.full(n, .02)
    elif w.mix == "half": p = np.full(n, .5)
    elif w.mix == "u": p = g.beta(.3, .3, n)
    elif w.mix == "flaky":
        u = g.random(n); p = np.where(u < .25, .999, np.where(u < .6, g.beta(9, 1.5, n), g.beta(2, 2, n)))
    clusters = g.integers(0, 5, n)
    if w.mix == "clus": p = g.beta(2, 1, 5)[clusters]
    return dict(p=clip(p), level=g.uniform(.55, .95, n), sd=g.uniform(.02, .15, n), cluster=clusters, log_s=g.normal(1., .6, n),
                down=0., dead=np.zeros(n, bool), slow=0., errors=np.zeros(n))


def changed(w: World, a: dict, change: str, g: np.random.Generator) -> dict:
    b = {k: (v.copy() if isinstance(v, np.ndarray) else v) for k, v in a.items()}
    what, _, x = change.partition(" ")
    if what == "one":
        i = int(np.argmax(a["p"] + g.random(w.N) * 1e-3)); b["p"][i] = clip(float(x)); b["dead"][i] = float(x) == 0
    elif what in ("mean", "errors"):
        d = float(x) / 100; b["p"] = clip(a["p"] * max(0., 1 - d / a["p"].mean())); b["down"] = a["down"] + d
        if what == "errors": b["errors"] = (a["p"] - b["p"]) / (1 - b["p"])    # share of the failures that are new
    elif what == "slow": b["slow"] = np.log1p(float(x))
    return b


def day(w: World, g: np.random.Generator, now: bool = False) -> dict:
    return dict(z=(g.normal(0, w.drift) if w.drift else 0.) + (w.step if now else 0.), case=g.normal(0, w.case_drift, w.N) if w.case_drift else 0.,
                down=w.upgrade if now else 0., walk=0.)


def session(w: World, a: dict, passes: int, d: dict, g: np.random.Generator, frozen: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """One session: `passes` iterations of all cases."""
    z = d["z"] + d["case"] + d["walk"]; load = 0.
    if w.session: load = g.normal(0, w.session); z = z + load
    if w.route and g.random() < .5: z = z - w.route
    if w.cluster: z = z + g.normal(0, w.cluster, 5)[a["cluster"]]
    p = np.where(a["p"] < 1e-3, a["p"], expit(logit(a["p"]) + z)) if np.any(z) else a["p"]
    n = 1 if w.caching else passes
    u = g.random((w.N, n)) if frozen is None else frozen
    ok = u < p[:, None]
    if w.kind in ("bin",): m = ok * 1.
    elif w.kind == "bimodal": m = np.where(ok, .9, .2) + g.normal(0, .03, (w.N, n)) - d["down"]
    elif w.kind == "judge":
        m = a["level"][:, None] + g.normal(0, 1, (w.N, n)) * a["sd"][:, None] - d["down"] - a["down"]
        m = np.where(a["dead"][:, None], .1, m)
    elif w.kind == "latency":
        m = -(a["log_s"][:, None] + g.normal(0, .5, (w.N, n)) - .4 * (load + d["z"]) + a["slow"])
    if w.flip: m = np.where(g.random(m.shape) < w.flip, 1 - m, m)
    if w.caching: m = np.repeat(m, passes, 1)
    if w.kind != "latency": m = np.round(np.clip(m, 0, 1), 3)
    runs = {"m0": m}
    for j in range(1, w.metrics):
        runs[f"m{j}"] = np.round(np.clip(.5 * m + .5 * np.where(g.random(m.shape) < p[:, None], .9, .3) + g.normal(0, .05, m.shape), 0, 1), 2)
    if w.lost:
        rate = min(.5, w.lost * np.exp(g.normal())) * np.where(w.hard & (a["p"] < .9), 3, 1) * np.ones(w.N)
        gone = g.random((w.N, passes)) < rate[:, None]
        runs = {q: np.where(gone, np.nan, x) for q, x in runs.items()}
    if np.any(a["errors"]):
        gone = (runs["m0"] < .5) & (g.random((w.N, passes)) < a["errors"][:, None])
        runs = {q: np.where(gone, np.nan, x) for q, x in runs.items()}
    return runs


def run(w: World, a: dict, d: dict, g: np.random.Generator, k: int | None = None, frozen: np.ndarray | None = None) -> dict[str, np.ndarray]:
    k = k or w.k
    if w.per_run: return session(w, a, k, d, g, frozen)
    parts = [session(w, a, 1, d, g, frozen) for _ in range(k)]
    return {m: np.concatenate([x[m] for x in parts], 1) for m in parts[0]}


def metrics(w: World) -> dict[str, Metric]:
    if w.kind == "latency": return {"m0": Metric(None, w.slack)}
    t = dict(bin=.5, bimodal=.7, judge=.5)[w.kind]
    return {f"m{j}": Metric(t if j == 0 else None) for j in range(w.metrics)} if w.metrics > 1 and w.kind == "judge" else {f"m{j}": Metric(t) for j in range(w.metrics)}


def attempt(w: World, change: str, g: np.random.Generator):
    """A pull request: first run, baseline, and the callback for further passes."""
    a = draw(w, g)
    if change == "one 0": a["p"][int(np.argmax(a["p"]))] = .9995     # a case that passes falls to never
    b = changed(w, a, change, g)
    baseline = [base_run(w, a, g) for _ in range(w.R)]
    return a, b, baseline, *job(w, a, b, g)


def base_run(w: World, a: dict, g: np.random.Generator, d: dict | None = None) -> dict[str, np.ndarray]:
    return run(w, a, d or day(w, g), g, frozen=g.random((w.N, 1)) if w.caching == "side" else None)


def job(w: World, a: dict, b: dict, g: np.random.Generator):
    today = day(w, g, True)
    cold = {s: g.random((w.N, 1)) for s in ("pr", "base")} if w.caching == "side" else {"pr": None, "base": None}
    first = run(w, b, today, g, frozen=cold["pr"])

    def again(side: str, rows: np.ndarray) -> dict[str, np.ndarray]:
        if w.wander: today["walk"] += g.normal(0, w.wander)
        x = session(w, b if side == "pr" else a, 1, today, g, cold[side])
        return {m: v[rows, 0] for m, v in x.items()}
    return first, again
