"""Old names of options: they mean what the new ones mean, and nothing shows them."""

from __future__ import annotations

import pytest

from agenteval.cli.main import main
from agenteval.core.errors import InfrastructureError
from agenteval.core.start import RENAMED
from agenteval.run import pipeline
from agenteval.run.config import Settings

OPTIONS = RENAMED["run"]
VALUES = {"--control": "http://before.test", "--time-limit": "2.5"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings of every run that was asked for; no run is made."""
    found: list[Settings] = []

    def run(settings: Settings, _context: object) -> None:
        found.append(settings)
        raise InfrastructureError("not here")

    monkeypatch.setattr(pipeline, "run", run)
    return found


def test_every_renamed_option_has_a_value_to_test_with() -> None:
    assert set(OPTIONS.values()) == set(VALUES)


@pytest.mark.parametrize(("old", "new"), OPTIONS.items())
@pytest.mark.parametrize(
    "arguments",
    [["OPTION", "VALUE", "suite"], ["OPTION=VALUE"], ["suite", "OPTION", "VALUE"]],
    ids=["before", "equals", "after"],
)
def test_both_names_ask_for_the_same(old: str, new: str, arguments: list[str], asked: list[Settings]) -> None:
    for name in (old, new):
        main(["run", *(item.replace("OPTION", name).replace("VALUE", VALUES[new]) for item in arguments)])
    assert asked[0] == asked[1]
    main(["run", *(item for item in arguments if item == "suite")])
    assert asked[2] != asked[1]


@pytest.mark.parametrize("old", OPTIONS)
def test_the_text_of_an_old_name_stays_what_it_is_elsewhere(old: str, asked: list[Settings]) -> None:
    main(["run", f"--filter={old}", "--", old])
    assert (asked[0].filter, [str(suite) for suite in asked[0].suites]) == (old, [old])


@pytest.mark.parametrize(("old", "new"), OPTIONS.items())
def test_only_the_new_name_is_shown(old: str, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    shown = capsys.readouterr().out
    assert new in shown
    assert old not in shown


@pytest.mark.parametrize(("old", "new"), OPTIONS.items())
def test_a_similar_name_suggests_the_new_one(old: str, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"{new}s=1"]) == 2
    assert f"unknown option '{new}s'; did you mean {new!r}?" in capsys.readouterr().err
    assert main(["compare", "current", "baseline", old, "1"]) == 2
    assert f"unknown option {old!r}\n" in capsys.readouterr().err
