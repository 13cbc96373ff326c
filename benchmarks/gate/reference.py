"""Reference for gate v3: earlier days suspect, the base beside the pull request proves. numpy and the standard library.

A *pass* is one iteration of every case in a separate session. Values of one metric are an array (cases, passes); higher is
better; nan = lost (infrastructure). Quality metrics hold scores in 0..1; resources (seconds, cost, tokens) hold -log(amount).
A run is {metric: array}. The baseline is a list of runs of the base branch, oldest first.
    again(side, rows) makes one more pass of the cases `rows` with the agent of `side` ("pr" | "base") and returns {metric: column}.
"""
from __future__ import annotations
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
import numpy as np

Array = np.ndarray
Run = dict[str, Array]
Again = Callable[[str, Array], dict[str, Array]]
ANSWERED = "answered"

@dataclass(frozen=True)
class Rules:
    window: int = 10                            # newest base runs that may raise a suspicion
    suspect: float = .10                        # first run against the baseline
    agree: float = .05                          # first and second run together against the baseline
    looks: tuple[int, ...] = (4, 8, 16)         # pairs of passes side by side after which is decided
    limits: tuple[float, ...] = (.002, .006, .017)  # their sum, .025, bounds the false alarms whatever the days do
    go_on: float = .35                          # between looks: what looks less clear than this is cleared
    least: float = .01                          # smallest drop of a mean that is worth a red
    fall: float = 1 / 3                         # smallest rise of a case's failure share that is suspicious
    fill: int = 50                              # a pair of passes side by side has at least so many calls a side (a suite is repeated, at most 4 times)
    alone_case: float = .001                    # the same for a case
    retries: int = 8                            # without the base: so often a suspicious case is asked again, while it never passes
    alone_always: float = .02                   # and unproven below this p
    many: int = 20                              # most suspicious cases looked at
    alone: float = .01                          # without the base beside it: p needed for "unproven"
    losses: float = .02                         # slack of the metric `answered`
    outage: float = .50                         # lost on the base's side: nothing can be cleared

@dataclass(frozen=True)
class Metric:
    threshold: float | None = None              # a case fails below it; none: only the mean counts
    slack: float = 0.                           # may be worse by this much (resources: log ratio); 0 for quality

@dataclass
class Outcome:
    state: str = "clear"                         # clear | suspicious | cleared | proven | unproven
    why: str = ""
    means: dict[str, tuple[float, float, float]] = field(default_factory=dict)     # proven: difference, p, limit
    cases: dict[tuple[str, int], tuple[int, int, float, float]] = field(default_factory=dict)   # proven: failures pr, base, p, limit
    pairs: int = 0
    thin: bool = False                          # something was suspicious and too little was answered to test it
    calls: int = 0                              # made after the first run, both sides
    pr: Run = field(default_factory=dict)       # the passes side by side
    base: Run = field(default_factory=dict)

# ---- four formulas
def t_tail(t: float, df: float) -> float:
    """P(T < t) for t <= 0: half the regularised incomplete beta, by continued fraction (Lentz)."""
    if t > 0:
        return 1 - t_tail(-t, df)
    x, a, b = df / (df + t * t), df / 2, .5
    if x >= 1:
        return .5
    flip = x > (a + 1) / (a + b + 2)
    if flip:
        x, a, b = 1 - x, b, a
    front = math.exp(a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)) / a if x > 0 else 0.
    c, d = 1., 1 / (1 - (a + b) * x / (a + 1))
    h = d
    for m in range(1, 300):
        for n in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d, c = 1 / (1 + n * d), 1 + n / c
            h *= c * d
        if abs(c * d - 1) < 1e-10:
            break
    return .5 * (1 - front * h if flip else front * h)

def t_quantile(p: float, df: float) -> float:
    low, high = -1e4, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, df) < p else (low, middle)
    return (low + high) / 2

def p_lower(d: Array, slack: float = 0.) -> float:
    """One-sided p that the mean of paired differences lies below -slack: Student's t; equal differences count as coins."""
    d = d[np.isfinite(d)] + slack
    if len(d) < 2 or d.mean() >= 0:
        return 1. if len(d) < 2 else .5 + .5 * (d.std() > 0)
    s = d.std(ddof=1)
    return .5 ** len(d) if s < 1e-12 else t_tail(float(d.mean() / (s / math.sqrt(len(d)))), len(d) - 1)

def two_groups(a: Array, b: Array) -> tuple[float, float, int]:
    """Difference of the means of two groups of passes, its standard error (pooled), its degrees of freedom."""
    n, m = len(a), len(b)
    pooled = (a.var() * n + b.var() * m) / max(n + m - 2, 1)
    return float(a.mean() - b.mean()), math.sqrt(pooled * (1 / n + 1 / m)), n + m - 2

def p_beside(a: Array, b: Array, slack: float = 0., fewest: int = 2) -> float:
    """The same for passes side by side: one mean a pass, Student's t of two groups; passes that were lost whole do not count."""
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    if min(len(a), len(b)) < fewest or len(a) + len(b) < 3:
        return 1.
    d, s, df = two_groups(a, b)
    if s < 1e-12:
        return 1 / math.comb(df + 2, len(a)) if d + slack < 0 else 1.
    return t_tail((d + slack) / s, df)

def interval(a: Array, b: Array, limit: float) -> tuple[float, float]:
    """Belongs to the decision: the upper end lies below 0 exactly where p_beside <= limit."""
    d, s, df = two_groups(a[np.isfinite(a)], b[np.isfinite(b)])
    return d + t_quantile(limit, df) * s, d - t_quantile(limit, df) * s

def fisher(fails: int, n: int, base_fails: int, m: int) -> float:
    """One-sided p that the failure share is higher here than there."""
    total = fails + base_fails
    return sum(math.comb(n, x) * math.comb(m, total - x) for x in range(fails, min(n, total) + 1)) / math.comb(n + m, total)

# ---- suspicion: earlier days
def with_answered(run: Run) -> Run:
    """Losses are missing values; that a pass answered at all is one more metric: 1, or 0 where the iteration was lost."""
    return {**run, ANSWERED: 1. - np.any([np.isnan(x) for m, x in run.items() if m != ANSWERED], 0)}

def by_case(x: Array) -> Array:
    n = (~np.isnan(x)).sum(1)
    return np.where(n > 0, np.nansum(x, 1) / np.maximum(n, 1), np.nan)

def suspicion(run: Array, baseline: Sequence[Array], metric: Metric, by_pass: bool = True) -> float:
    """p by case: this run against the baseline; of fewer than five cases also by pass, for 4 equal drops are p = .06, one has none."""
    old, middle = (x := np.concatenate(baseline, 1)), by_case(x)[:, None]
    d = by_case(run - middle)
    few_cases = by_pass and 0 < np.isfinite(d).sum() < 5
    return min(p_lower(d, metric.slack), p_beside(np.nanmean(run - middle, 0), np.nanmean(old - middle, 0), metric.slack, 1) if few_cases else 1.)

def case_suspicions(run: Array, baseline: Sequence[Array], metric: Metric, rules: Rules) -> list[tuple[float, int]]:
    """Cases that fail more often than in the baseline, or always now and never in the newest three iterations."""
    if metric.threshold is None:
        return []
    old, now, found = np.concatenate(baseline, 1) < metric.threshold, run < metric.threshold, []
    n, m = (~np.isnan(run)).sum(1), (~np.isnan(np.concatenate(baseline, 1))).sum(1)
    for i in np.flatnonzero(now.any(1) & (m > 0)):
        f, b = int(now[i].sum()), int(old[i].sum())
        p = fisher(f, int(n[i]), b, int(m[i]))
        if (f / n[i] - b / m[i] >= rules.fall - 1e-9 and p <= rules.suspect) or (f == n[i] and not old[i, -3:].any()):
            found.append((p, int(i)))
    return found

def copies(baseline: Sequence[Run]) -> bool:
    """Answers repeat within every run, and some case came back to an earlier value between runs: a cache that outlives sessions."""
    x = [next(iter(r.values())) for r in baseline]
    if min(a.shape[1] for a in x) < 2 or any((np.nanmax(a, 1, initial=-9) - np.nanmin(a, 1, initial=9) > 1e-12).any() for a in x):
        return False
    v = np.stack([by_case(a) for a in x], 1)
    v = v[~np.isnan(v).any(1)]
    return any((np.diff(row) != 0).sum() >= len(set(row)) for row in v)


def unaided(run: Run, baseline: Sequence[Run], metrics: dict[str, Metric], rules: Rules) -> bool:
    """Files alone, or no base to run: clear against the baseline by case *and* by run (run means), or a case that fails as it never did."""
    for name, metric in metrics.items():
        old = [r[name] for r in baseline]
        means = np.array([np.nanmean(by_case(x)) for x in old if not np.isnan(x).all()])
        by_run = 0.
        if len(means) >= 3:
            gap = float(np.nanmean(by_case(run[name])) - means.mean()) + metric.slack
            by_run = t_tail(gap / max(means.std(ddof=1) * math.sqrt(1 + 1 / len(means)), 1e-9), len(means) - 1)
        if max(by_run, suspicion(run[name], old, metric, False)) <= rules.alone / len(metrics):
            return True
        if any(p <= rules.alone_case for p, _ in case_suspicions(run[name], old, metric, rules)):
            return True
    return False

def never_passes(cases: list[tuple[str, int]], first: Run, second: Run, old: dict[str, list[Array]], metrics: dict[str, Metric], again: Again, size: int, rules: Rules, out: Outcome) -> str:
    """No base to run: the state after suspicious cases were asked again until they pass, at most `retries` times (three were made)."""
    def results(m: str, i: int) -> Array:
        x = np.concatenate([first[m][i], second[m][i]])
        return x[~np.isnan(x)]
    for _ in range(rules.retries - 3):
        cases = [(m, i) for m, i in cases if (results(m, i) < metrics[m].threshold).all()]
        if cases:
            rows = np.array(sorted({i for _, i in cases}))
            add(out, second, again("pr", rows), rows, size)
    state = "cleared"
    for m, i in cases:
        now, before = results(m, i), np.concatenate([x[i] for x in old[m]])
        before = before[~np.isnan(before)]
        if (now < metrics[m].threshold).all():
            if len(now) and fisher(len(now), len(now), int((before < metrics[m].threshold).sum()), len(before)) <= rules.alone_always:
                return "unproven"
            state = "suspicious"
    return state


# ---- proof: side by side
def beside(out: Outcome, again: Again, metrics: dict[str, Metric], means: list[str], cases: list[tuple[str, int]], size: int, rules: Rules, family: int, seed: int | None = None) -> None:
    """Pairs of passes, one of each side; who goes first is drawn, two of each in four pairs. Only these passes prove."""
    out.pr, out.base, out.pairs, coin = {}, {}, 0, np.random.default_rng(seed)
    for look, limit in zip(rules.looks, rules.limits):
        if not means and not cases:
            return
        rows = np.arange(size) if means else np.array(sorted({i for _, i in cases}))
        repeats = min(4, max(1, rules.fill // size)) if means else 1
        for n in range(out.pairs * repeats, look * repeats):
            if n % 4 == 0:      # a fixed sequence falls in step with replicas and quotas of the same period
                base_first = coin.permutation([False, False, True, True])
            for side in ("base", "pr") if base_first[n % 4] else ("pr", "base"):
                add(out, out.pr if side == "pr" else out.base, again(side, rows), rows, size)
        out.pairs = look
        unclear: list[str] = []
        for m in means:
            middle = np.nanmean(np.concatenate([out.pr[m], out.base[m]], 1), 1, keepdims=True)   # so that it does not matter which cases a pass lost
            a, b = np.nanmean(out.pr[m] - middle, 0), np.nanmean(out.base[m] - middle, 0)
            out.thin |= min(np.isfinite(a).sum(), np.isfinite(b).sum()) < 2
            p, gap = p_beside(a, b, metrics[m].slack), float(np.nanmean(a) - np.nanmean(b))
            if p <= limit / family and gap <= -max(rules.least, metrics[m].slack):
                out.means[m] = gap, p, limit / family
            elif p <= rules.go_on:
                unclear.append(m)
        open_cases: list[tuple[str, int]] = []
        for m, i in cases:
            (a, n), (b, o) = (((x[m][i] < metrics[m].threshold).sum(), (~np.isnan(x[m][i])).sum()) for x in (out.pr, out.base))
            out.thin |= bool((o == 0 and a == n) or (n == 0 and b == 0))
            p = fisher(int(a), int(n), int(b), int(o))
            if p <= limit / family:
                out.cases[m, i] = int(a), int(b), p, limit / family
            elif p <= rules.go_on:
                open_cases.append((m, i))
        if out.means or out.cases:
            return
        means, cases = unclear, open_cases

def add(out: Outcome, seen: Run, new: dict[str, Array], rows: Array, size: int) -> None:
    out.calls += len(rows)
    for m, x in with_answered(new).items():
        column = np.full((size, 1), np.nan)
        column[rows, 0] = x
        seen[m] = np.concatenate([seen[m], column], 1) if m in seen else column

# ---- the gate
def gate(first: Run, baseline: Sequence[Run], metrics: dict[str, Metric], again: Again | None, rules: Rules = Rules(), has_base: bool = True, seed: int | None = None) -> Outcome:
    out, size, k = Outcome(), *next(iter(first.values())).shape
    baseline = list(baseline)[-rules.window:]
    share = math.sqrt(len(metrics))
    if any(np.isnan(x).any() for x in first.values()):
        first, baseline, metrics = with_answered(first), [with_answered(r) for r in baseline], {**metrics, ANSWERED: Metric(.5, rules.losses)}
    old = {m: [r[m] for r in baseline] for m in metrics}
    # 1. the first run against earlier days
    means = [m for m in metrics if suspicion(first[m], old[m], metrics[m]) <= rules.suspect / share]
    found = sorted((p, m, i) for m in metrics for p, i in case_suspicions(first[m], old[m], metrics[m], rules))[:rules.many]
    cases = [(m, i) for _, m, i in found]
    if not means and not cases:
        return out
    if again is None:       # files alone
        out.state = "unproven" if unaided(first, baseline, metrics, rules) else "cleared"
        return out
    # 2. the pull request once more, of what is suspicious; nothing is proven here
    second: Run = {}
    for j in range(max(k, 3)):
        rows = np.arange(size) if means and j < k else np.array(sorted({i for _, i in cases}) if j < 3 else [], int)
        if len(rows):
            add(out, second, again("pr", rows), rows, size)
    if ANSWERED not in metrics and means and (second[ANSWERED][:, :k] == 0).any():     # losses began after the first run
        first, baseline, metrics = with_answered(first), [with_answered(r) for r in baseline], {**metrics, ANSWERED: Metric(.5, rules.losses)}
        old[ANSWERED], means = [r[ANSWERED] for r in baseline], [*means, ANSWERED]
    both = {m: np.concatenate([first[m], second[m][:, :k]], 1) for m in metrics}
    means = [m for m in means if suspicion(both[m], old[m], metrics[m]) <= rules.agree / share]
    cases = [(m, i) for m, i in cases if not (second[m][i][:3] >= metrics[m].threshold).all()]
    if not has_base:
        bad = (means or cases) and unaided(both if means else first, baseline, metrics, rules)
        out.state = "unproven" if bad else never_passes(cases, first, second, old, metrics, again, size, rules, out)
        if out.state == "cleared" and means:
            out.state = "suspicious"
        return out
    # 3. side by side: single cases first (cheap), then means
    family = len(means) + len(cases)
    if cases:
        beside(out, again, metrics, [], cases, size, rules, family, seed)
    if means and not out.cases:
        beside(out, again, metrics, means, [], size, rules, family, seed)
    if out.base:        # an outage: most of the base, or all of it
        lost = np.all([np.isnan(x) for m, x in out.base.items() if m != ANSWERED], 0)[~np.isnan(out.base[ANSWERED])]
        out.thin |= lost.mean() > rules.outage and (lost.sum() >= 10 or lost.all())
    out.state = "proven" if out.means or out.cases else "unproven" if out.thin else "cleared"
    return replace(out, state="unproven", why="answers are copies") if out.state == "proven" and copies(baseline) else out

# ---- the same runs, other questions
def still_there(before: Outcome, metrics: dict[str, Metric], again: Again, size: int, rules: Rules = Rules()) -> bool:
    """New content after a red: all pairs at once; red again unless less than half of what was proven is left."""
    rows = np.arange(size) if before.means else np.array(sorted({i for _, i in before.cases}))
    new = Outcome()
    for _ in range(rules.looks[-1]):
        add(new, new.pr, again("pr", rows), rows, size)
        add(new, new.base, again("base", rows), rows, size)
    mean = any(not np.nanmean(new.pr[m]) - np.nanmean(new.base[m]) > gap / 2 for m, (gap, _, _) in before.means.items())
    share = lambda x, m, i: np.nanmean(np.where(np.isnan(x[m][i]), np.nan, x[m][i] < metrics[m].threshold))
    case = any(not share(new.pr, m, i) - share(new.base, m, i) < (a - b) / before.pairs / 2 for (m, i), (a, b, _, _) in before.cases.items())
    return bool(mean or case)

def long_look(newest: Sequence[Run], anchor: Sequence[Run], metrics: dict[str, Metric], again: Again, rules: Rules = Rules()) -> Outcome:
    """Newest three base runs against the first three since the anchor; suspicious: tip and anchor commit side by side."""
    out = Outcome()
    means = [m for m in metrics if suspicion(np.concatenate([r[m] for r in newest], 1), [r[m] for r in anchor], metrics[m]) <= rules.suspect]
    if means:
        beside(out, again, metrics, means, [], len(newest[0][means[0]]), rules, len(means))
        out.state = "proven" if out.means else "cleared"
    return out

def no_worse(again: Again, name: str, margin: float, pairs: int, size: int) -> tuple[bool, float]:
    """One look after `pairs` pairs: green iff a drop of more than `margin` is excluded (95 %). Returns (green, lower end)."""
    out, rows = Outcome(), np.arange(size)
    for _ in range(pairs):
        add(out, out.pr, again("pr", rows), rows, size)
        add(out, out.base, again("base", rows), rows, size)
    low = interval(np.nanmean(out.pr[name], 0), np.nanmean(out.base[name], 0), .05)[0]
    return low > -margin, low

def pairs_needed(baseline: Sequence[Array], margin: float, chance: float = .8) -> int:
    """Pairs with which an agent that is as good passes `no_worse` in `chance` of the cases; s = spread of a pass."""
    s2 = float(np.nansum(np.nanvar(np.concatenate(baseline, 1), 1, ddof=1))) / len(baseline[0]) ** 2
    m = 4
    while m < 500 and -t_quantile(.05, 2 * m - 2) - t_quantile(1 - chance, 2 * m - 2) > margin / math.sqrt(max(s2, 1e-12) * 2 / m):
        m += 1
    return m
