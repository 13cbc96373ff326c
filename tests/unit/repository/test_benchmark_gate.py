"""The benchmark of the gate: its worlds, its checks, and that it ends with 1 if a figure is missed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from benchmarks.gate import repository
from benchmarks.gate.__main__ import main
from benchmarks.gate.cells import KINDS, Row, Rule, Table, read_tables, simulate
from benchmarks.gate.chains import CleanChain
from benchmarks.gate.checks import misses
from benchmarks.gate.decline import Watch
from benchmarks.gate.dodges import burden_of
from benchmarks.gate.driver import drive, evidence_of, maker, scores_of
from benchmarks.gate.pull_requests import PullRequest
from benchmarks.gate.repository import Repository
from benchmarks.gate.tables import table_text
from benchmarks.gate.tally import Figure, Tally
from benchmarks.gate.worlds import Day, World, changed, days, draw_agent, held, make_run

from agenteval.compare.regression.decide import decide
from agenteval.compare.regression.model import Evidence
from agenteval.compare.regression.settings import NAMED_SETTINGS, GateSettings
from agenteval.compare.regression.simulated import SIMULATED

_FAST = GateSettings(draws=199, head_to_head_calls=0)


def _row(name: str, expected: Mapping[str, float], replications: int = 1000) -> Row:
    return Row(
        name=name,
        cell=PullRequest(settings=_FAST),
        replications=replications,
        expected=expected,
        is_quick=False,
    )


def _share(successes: int, count: int) -> Figure:
    return Figure(count, successes, successes)


def _missed(rule: Rule, measure: str, expected: float, figures: list[Figure]) -> list[str]:
    rows = tuple(_row(f"r{number}", {measure: expected}) for number in range(len(figures)))
    table = Table(key="T", title="test", checks={measure: rule}, rows=rows)
    tallies = {row.name: (figure.count, Tally({measure: figure})) for row, figure in zip(rows, figures, strict=True)}
    return list(misses(table, tallies))


@pytest.mark.parametrize(
    ("rule", "expected", "figure", "is_missed"),
    [
        # 2.5 % + 2 · sqrt(.025 · .975 / 400) = 4.06 %
        ("limit", 0.0, _share(16, 400), False),
        ("limit", 0.0, _share(17, 400), True),
        # 3.5 · sqrt(.6 · .4 · (1 / 1000 + 1 / 1000)) = 7.7 points, and half a point for the rounding
        ("equal", 0.6, _share(670, 1000), False),
        ("equal", 0.6, _share(690, 1000), True),
        ("equal", 0.6, _share(510, 1000), True),
        ("equal", 1.0, _share(998, 1000), False),
        # Three rare events in few replications happen once in 300 times.
        ("equal", 0.004, _share(3, 50), False),
        ("equal", 0.004, _share(6, 50), True),
        ("equal", 1.0, _share(970, 1000), True),
        # a standard deviation of 1: 3.5 · sqrt(2 / 1000) = .157
        ("cost", 0.2, Figure(1000, 300.0, 1089.0), False),
        ("cost", 0.2, Figure(1000, 400.0, 1159.0), True),
        ("cost", 0.2, Figure(1000, 10.0, 999.0), False),
    ],
)
def test_a_figure_is_missed_beyond_the_error_of_both_simulations(
    rule: Rule, expected: float, figure: Figure, is_missed: bool
) -> None:
    assert bool(_missed(rule, "found", expected, [figure])) == is_missed


def test_many_small_deviations_in_one_direction_are_missed() -> None:
    low, high = _share(570, 1000), _share(630, 1000)
    assert len(_missed("equal on average", "found", 0.6, [low] * 10)) == 1
    assert _missed("equal on average", "found", 0.6, [low, high] * 5) == []
    assert _missed("equal", "found", 0.6, [low] * 10) == []


def test_every_table_has_unique_rows_and_checks_what_it_measures() -> None:
    tables = read_tables()
    assert [table.key for table in tables] == list("ABCDEFGHIJKLMNO")
    assert {type(row.cell) for table in tables for row in table.rows} == set(KINDS.values())
    for table in tables:
        names = [row.name for row in table.rows]
        assert len(set(names)) == len(names)
        # In table O, staged and whole first runs have the same draws.
        assert len({row.cell if table.key == "O" else repr(row.cell) for row in table.rows}) == len(names)
        expected = {name for row in table.rows for name in row.expected}
        assert all(measure in expected for measure, rule in table.checks.items() if rule != "limit")


def test_the_named_settings_are_those_of_the_product() -> None:
    (table,) = [table for table in read_tables() if table.key == "C"]
    found = {row.name.split(",")[0]: row.cell for row in table.rows}
    for name in ("thrifty", "thorough"):
        cell = found[name]
        assert isinstance(cell, PullRequest)
        assert cell.settings == replace(NAMED_SETTINGS[name], draws=1999, head_to_head_calls=0)


def test_what_the_product_says_about_simulated_suites_is_in_the_tables() -> None:
    shown = [
        (row.cell, row.expected)
        for table in read_tables()
        for row in table.rows
        if table.key in "ACH" and isinstance(row.cell, PullRequest) and row.cell.change == "none"
    ]
    for suite in SIMULATED:
        size = World(cases=suite.cases, iterations=suite.iterations, runs=suite.runs)
        named = replace(NAMED_SETTINGS[suite.settings], draws=1999)
        # A longer head-to-head is the same in suites that are long enough.
        calls = (0, 120) if suite.cases * suite.iterations >= 120 else (120,)
        settings = [replace(named, head_to_head_calls=number) for number in calls]
        for number, world in enumerate((size, replace(size, drift=0.5), replace(size, step=-0.5))):
            expected = [
                (figures["false alarm"], figures["extra"])
                for cell, figures in shown
                if cell.world == world and cell.settings in settings
            ]
            assert (suite.false_alarms[number], suite.extra_runs[number]) in expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_replication_depends_only_on_its_number(kind: str) -> None:
    rows = [row for table in read_tables() for row in table.rows if type(row.cell) is KINDS[kind]]
    row = min(rows, key=lambda row: repr(row.cell))
    if kind in {"clean chain", "decline"}:
        row = replace(row, cell=replace(row.cell, merges=2))  # type: ignore[type-var]
    both = simulate(row, 0, 2)
    assert simulate(row, 0, 1) + simulate(row, 1, 1) == both
    assert set(both.figures) >= {name for name in row.expected if kind not in {"decline", "attempts"}}


@pytest.mark.parametrize(
    ("change", "drop"),
    [("none", 0.0), ("mean 5", 0.05), ("mean 10", 0.10), ("one to 0", 0.02), ("three to 0.5", 0.03)],
)
def test_a_change_lowers_the_mean_by_what_it_says(change: str, drop: float) -> None:
    generator = np.random.default_rng(1)
    agent = draw_agent(World(), generator)
    after = changed(agent, change, generator)
    assert float((agent.rates - after.rates).mean()) == pytest.approx(drop, abs=2e-4)


def test_a_judge_falls_by_what_the_change_says() -> None:
    generator = np.random.default_rng(1)
    world = World(metrics="judge", cases=2000)
    agent = draw_agent(world, generator)
    levels = [
        float(make_run(each, world, 5, Day(), np.random.default_rng(2))[0].mean())
        for each in (agent, changed(agent, "judge 10", generator))
    ]
    assert levels[0] - levels[1] == pytest.approx(0.1, abs=0.02)


def _correlation(world: World, axis: int) -> float:
    """Return the share of the variance that iterations of a case (axis 1), or cases of a cluster (axis 0), share."""
    generator = np.random.default_rng(3)
    agent = replace(draw_agent(world, generator), rates=np.full(world.cases, 0.5))
    agent = replace(agent, cluster_of=np.arange(world.cases) // 2)
    runs = [make_run(agent, world, world.iterations, Day(), generator)[0] for _ in range(200)]
    pairs = [run if axis else run[:, 0].reshape(-1, 2) for run in runs]
    first, second = (np.concatenate([pair[:, column] for pair in pairs]) for column in (0, 1))
    return float(np.corrcoef(first, second)[0, 1])


@pytest.mark.parametrize(
    ("noise", "axis", "least", "most"),
    [
        ("independent", 0, -0.05, 0.05),
        ("independent", 1, -0.05, 0.05),
        ("correlated", 1, 0.2, 0.4),
        ("clusters", 0, 0.15, 0.35),
        ("clusters", 1, -0.05, 0.05),
        ("run clusters", 1, 0.15, 0.35),
    ],
)
def test_noise_is_correlated_where_it_should_be(noise: str, axis: int, least: float, most: float) -> None:
    world = World(mix="near", cases=40, noise=noise)  # type: ignore[arg-type]
    assert least < _correlation(world, axis) < most


def test_a_session_keeps_its_rates_and_has_the_same_mean() -> None:
    generator = np.random.default_rng(4)
    agent = draw_agent(World(cases=5000), generator)
    session = held(agent, generator)
    assert not np.allclose(session.rates, agent.rates)
    assert float(session.rates.mean()) == pytest.approx(float(agent.rates.mean()), abs=0.01)


def test_days_shift_walk_and_trend() -> None:
    def shifts(world: World) -> list[float]:
        calendar = days(world, np.random.default_rng(5))
        return [next(calendar).shift for _ in range(50)]

    assert shifts(World()) == [0.0] * 50
    assert shifts(World(trend=-0.05))[-1] == pytest.approx(-2.45)
    assert np.std(shifts(World(drift=0.5))) == pytest.approx(0.5, rel=0.3)
    assert np.allclose(np.cumsum(shifts(World(drift=0.5))), shifts(World(drift=0.5, walk=True)))


def test_a_day_shifts_pass_rates_but_mends_no_broken_case() -> None:
    generator = np.random.default_rng(6)
    world = World(mix="near", cases=400)
    agent = draw_agent(world, generator)
    broken = changed(agent, "three to 0", generator)
    low, usual, high = (
        make_run(broken, world, 50, Day(shift), np.random.default_rng(7))[0].mean(axis=1)
        for shift in (-2.0, 0.0, 2.0)
    )
    assert low.mean() < usual.mean() < high.mean()
    assert high[broken.rates < 1e-3].max() < 0.05


def test_lost_iterations_have_no_score() -> None:
    world = World(errors=0.1)
    generator = np.random.default_rng(8)
    run = make_run(draw_agent(world, generator), world, 50, Day(), generator)
    scores = scores_of(run)
    lost = sum(score is None for case in scores.values() for score in case["m0"])
    assert 0 < lost == int(np.isnan(run[0]).sum())


def test_only_pull_requests_of_a_chain_are_staged(monkeypatch: pytest.MonkeyPatch) -> None:
    staged: list[bool] = []

    def noted(world: World, *arguments: Any) -> Evidence:
        staged.append(world.staged)
        return evidence_of(world, *arguments)

    monkeypatch.setattr(repository, "evidence_of", noted)
    CleanChain(world=World(staged=True), merges=1, settings=_FAST).replicate(np.random.default_rng(1))
    assert staged == [True, False, False]


def test_a_proven_gain_begins_an_epoch_with_the_runs_that_proved_it() -> None:
    repository = Repository.of(World(mix="near"), _FAST, np.random.default_rng(9))
    agent = draw_agent(repository.world, repository.generator)
    lower = agent.lower(0.3)
    gained = repository.merge(agent, lower, repository.pool(lower, 5))
    assert gained.is_new_epoch
    assert 2 <= len(gained.pool) <= 5
    kept = repository.merge(agent, agent, repository.pool(agent, 5))
    assert (kept.is_new_epoch, len(kept.pool)) == (False, 6)


def test_a_proven_case_leaves_the_earlier_runs() -> None:
    repository = Repository.of(World(mix="all pass"), _FAST, np.random.default_rng(10))
    agent = draw_agent(repository.world, repository.generator)
    broken = changed(agent, "one to 0", repository.generator)
    merged = repository.merge(broken, agent, repository.pool(agent, 1))
    assert [len(run) for run in merged.pool] == [49, 50]


def test_a_burden_contains_what_was_proven() -> None:
    world = World(mix="near")
    generator = np.random.default_rng(11)
    agent = draw_agent(world, generator)
    lower = agent.lower(0.3)
    pool = [scores_of(make_run(agent, world, 3, Day(), generator)) for _ in range(5)]
    evidence = evidence_of(world, agent, scores_of(make_run(lower, world, 3, Day(), generator)), pool, 1)
    burden = burden_of(
        drive(decide(evidence, _FAST), maker(world, {"current": lower, "control": agent}, Day(), generator))
    )
    assert 0.1 < burden.means.get("m0", 0.0) < 0.5 or burden.cases


def test_a_long_look_is_due_after_ten_merges_or_a_clear_fall() -> None:
    usual = [0.90, 0.92, 0.88, 0.91, 0.89]
    watch = Watch(usual, 0.01)
    assert [watch.is_due(0.9) for _ in range(20)] == ([False] * 9 + [True]) * 2
    assert Watch(usual, 0.01).is_due(0.5)


def test_a_table_shows_errors_and_what_is_expected() -> None:
    table = Table(key="T", title="test", checks={}, rows=(_row("usual", {"found": 0.6, "extra": 3.3}),))
    text = table_text(
        table, {"usual": (100, Tally({"found": _share(50, 100), "extra": Figure(100, 300, 1000), "no": Figure(9)}))}
    )
    assert text.splitlines()[-1] == "| usual | 100 | 50.0 ± 5.0 % (60.0) | 3.00 ± 0.10 (3.30) |"


def test_a_missed_figure_ends_the_benchmark_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--table", "D", "--cell", "one 1 to 0, cases 5, runs 2", "--replications", "2", "--processes", "1"]
    assert main(command) == 0
    assert "0 figures missed" in capsys.readouterr().out
    wrong = [
        replace(table, rows=tuple(replace(row, expected={"found": 0.0}, replications=60) for row in table.rows))
        for table in read_tables()
    ]
    monkeypatch.setattr("benchmarks.gate.__main__.read_tables", lambda: wrong)
    assert main([*command[:-3], "40", *command[-2:]]) == 1
    assert "found 1.000, expected is 0.000" in capsys.readouterr().err


def test_the_quick_benchmark_covers_every_kind_but_the_long_chains() -> None:
    kinds = {type(row.cell) for table in read_tables() for row in table.rows if row.is_quick}
    assert set(KINDS.values()) - kinds == {KINDS["clean chain"], KINDS["decline"]}


@pytest.mark.parametrize("arguments", [["--table", "Z"], ["--table", "A", "--cell", "Z"]])
def test_the_command_names_unknown_tables_and_cells(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "Z" in capsys.readouterr().err
