"""The inputs of a FluxLoop project as cases."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from agenteval.core.confine import confined
from agenteval.core.errors import ConfigError
from agenteval.suite.formats.fluxloop.suite import load_fluxloop
from agenteval.suite.model import Suite

EVALUATION = "evaluators:\n- {name: a, type: rule_based, rules: [{check: success}]}\n"
PERSONAS = """\
    personas:
      - name: novice
        description: A first-time user
        characteristics: [Asks basic questions]
        language: de
        expertise_level: novice
        goals: [Get started]
      - name: expert
        description: A power user
    """


def project(folder: Path, **files: str) -> Suite:
    """A project in the folder; in the names of files ``__`` stands for ``/``."""
    for name, text in {"configs__evaluation": EVALUATION, **files}.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return load_fluxloop(folder / "configs" / "evaluation.yaml", "shop/configs/evaluation.yaml")


def asked(suite: Suite) -> list[tuple[str, str | None]]:
    return [(case.turns[0].input, case.persona) for case in suite.cases]


def problems(folder: Path, **files: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        project(folder, **files)
    return [str(problem) for problem in caught.value.problems]


def test_every_persona_asks_every_base_input(tmp_path: Path) -> None:
    suite = project(tmp_path, configs__input=PERSONAS + "base_inputs: [{input: One}, {input: Two}]")
    assert asked(suite) == [("One", "novice"), ("One", "expert"), ("Two", "novice"), ("Two", "expert")]
    first = suite.cases[0]
    assert (first.tags, first.name, first.line) == (("persona:novice",), "One [novice]", 10)
    assert first.aggregate is suite.aggregate
    assert first.turns[0].metrics == suite.metrics
    assert first.turns[0].context["persona"]["expertise_level"] == "novice"


def test_settings_come_from_all_sections_later_ones_first(tmp_path: Path) -> None:
    suite = project(
        tmp_path,
        configs__project="name: shop\niterations: 2\nbase_inputs: [{input: Old}]",
        configs__input="base_inputs: [{input: New}]",
        configs__simulation="name: shop_experiment\niterations: 3\nparallel_runs: 4\nrunner: {target: 'a:b'}",
    )
    assert (suite.name, suite.iterations, suite.concurrency) == ("shop_experiment", 3, 4)
    assert asked(suite) == [("New", None)]


GENERATED = """\
    generated_at: '2026-01-01'
    metadata: {config_name: shop}
    inputs:
    - input: Where is my order?
      metadata: {persona: novice, strategy: rephrase, expected: In the post., expected_intent: order}
    - input: Refund!
      metadata: {persona: stranger}
    - input: Hello
      name: greeting
      expected: Hi.
    """


def test_generated_inputs_name_their_personas(tmp_path: Path) -> None:
    suite = project(
        tmp_path,
        configs__input=PERSONAS + "base_inputs: [{input: Base}]\n    inputs_file: inputs/generated.yaml",
        inputs__generated=GENERATED,
    )
    assert asked(suite) == [("Where is my order?", "novice"), ("Refund!", "stranger"), ("Hello", None)]
    order, refund, hello = suite.cases
    assert order.turns[0].ground_truth == "In the post."
    assert order.turns[0].config["expected_intent"] == "order"
    assert refund.turns[0].context == {"persona": {"name": "stranger"}}
    assert (hello.name, hello.turns[0].ground_truth, hello.turns[0].config["name"]) == ("greeting", "Hi.", "greeting")
    assert [case.line for case in suite.cases] == [4, 6, 8]


@pytest.mark.parametrize(
    "text",
    [
        "- input: One\n- {input: 60.940}\n",
        '[{"input": "One"}, {"input": "60.940"}]',
        '{"inputs": [{"input": "One"}, {"input": "60.940"}]}',
    ],
)
def test_the_shapes_of_generated_files(tmp_path: Path, text: str) -> None:
    suite = project(tmp_path, configs__simulation="inputs_file: made.yaml", made=text)
    assert asked(suite) == [("One", None), ("60.940", None)]


def test_ids_are_stable_and_tell_repeats_and_personas_apart(tmp_path: Path) -> None:
    first = project(
        tmp_path / "a", configs__input=PERSONAS + "base_inputs: [{input: One}, {input: Two}, {input: One}]"
    )
    second = project(tmp_path / "b", configs__input=PERSONAS + "base_inputs: [{input: Two, name: x}, {input: One}]")
    ids = [case.id for case in first.cases]
    assert len(set(ids)) == 6
    assert all(case_id.startswith("shop/configs/evaluation.yaml::#") for case_id in ids)
    assert [case_id.endswith("#2") for case_id in ids] == [False] * 4 + [True] * 2
    assert {case.id for case in second.cases} == set(ids[:4])
    assert len({case.fingerprint for case in first.cases}) == 4


def test_the_template_of_a_project_wraps_persona_inputs(tmp_path: Path) -> None:
    suite = project(
        tmp_path,
        configs__input=PERSONAS + "inputs_file: made.yaml\n    input_template: 'As {persona}: {input} {else}'",
        made="- {input: 'Say {persona}', persona: novice}\n- {input: Bare}\n",
    )
    novice, bare = (case.turns[0].input for case in suite.cases)
    assert novice.startswith("As novice: A first-time user\nTraits: Asks basic questions\nWants to: Get started\n")
    assert novice.endswith("Expertise: novice: Say {persona} {else}")
    assert bare == "Bare"


def test_a_missing_file_of_inputs_leaves_the_base_inputs(tmp_path: Path) -> None:
    suite = project(tmp_path / "a", configs__input="inputs_file: gone.yaml\nbase_inputs: [{input: Base}]")
    assert asked(suite) == [("Base", None)]
    (warning,) = suite.warnings
    assert warning.startswith("shop/configs/input.yaml:1: inputs_file: gone.yaml does not exist")
    assert warning.endswith("the base inputs are used")
    nothing = project(tmp_path / "b", configs__input="inputs_file: gone.yaml")
    assert nothing.cases == ()
    assert nothing.warnings[0].endswith("so there are no cases")


@pytest.mark.parametrize("name", ["setting", "fluxloop", "experiment"])
@pytest.mark.parametrize("place", ["", "configs__"])
def test_older_projects_have_one_file(tmp_path: Path, name: str, place: str) -> None:
    suite = project(
        tmp_path, **{f"{place}{name}": "name: old\ninputs_file: made.yaml\niterations: 5", "made": "- input: Hi"}
    )
    assert (asked(suite), suite.name, suite.iterations) == ([("Hi", None)], "old", 5)


def test_an_evaluation_outside_of_configs_has_its_project_beside_it(tmp_path: Path) -> None:
    (tmp_path / "quality.yaml").write_text(EVALUATION)
    (tmp_path / "setting.yaml").write_text("inputs_file: in/made.yaml\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "made.yaml").write_text("- input: Hi\n")
    suite = load_fluxloop(tmp_path / "quality.yaml", "quality.yaml")
    assert asked(suite) == [("Hi", None)]
    assert suite.name == tmp_path.name


def test_secrets_in_the_files_of_a_project_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tok-1234567")
    monkeypatch.setenv("OTHER_TOKEN", "tok-7654321")
    monkeypatch.setenv("OTHER_KEY", "key-7654321")
    with confined(pass_env=("OTHER_*",)):
        suite = project(
            tmp_path,
            configs__evaluation=EVALUATION + "evaluation_goal: {text: '${OTHER_KEY}'}\n",
            configs__project="collector_api_key: ${SHOP_TOKEN}",
            configs__input="inputs_file: made.yaml",
            made="- input: I am ${OTHER_TOKEN}",
        )
    assert suite.secrets == {"tok-1234567", "tok-7654321", "key-7654321"}
    assert asked(suite) == [("I am tok-7654321", None)]


MISTAKES = [
    ({"configs__input": "base_inputs: [{}]"}, "configs/input.yaml:1: base_inputs[0].input: is missing or empty"),
    (
        {"configs__input": "base_inputs:\n- {input: a, persona: [b]}"},
        "configs/input.yaml:2: base_inputs[0]: `persona` must be the name of a persona",
    ),
    ({"configs__simulation": "a: [b"}, "configs/simulation.yaml:2: not valid YAML"),
    ({"configs__input": "inputs_file: made.yaml", "made": "{}"}, "made.yaml: inputs: must be a list of inputs"),
    ({"configs__input": "inputs_file: made.yaml", "made": ""}, "made.yaml: must be a list of inputs"),
    (
        {"configs__input": "inputs_file: made.yaml", "made": "inputs:\n- input: a\n- inptu: b"},
        "made.yaml:3: inputs[1].input: is missing or empty; it is the question for the agent",
    ),
    (
        {"configs__input": "base_inputs: [{input: '${NOBODY}'}]"},
        "configs/input.yaml:1: environment variable NOBODY is not set",
    ),
]


@pytest.mark.parametrize(("files", "message"), MISTAKES)
def test_mistakes(tmp_path: Path, files: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOBODY", raising=False)
    (found,) = problems(tmp_path, **files)
    assert found.startswith(f"shop/{message}")


def test_mistakes_in_several_files_are_named_at_once(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        configs__evaluation="evaluators: [{name: a}]",
        configs__input="inputs_file: made.yaml\npersonas: [{}]",
        configs__simulation="parallel_runs: 0",
    )
    assert [problem.partition(":")[0] for problem in found] == [
        "shop/configs/evaluation.yaml",
        "shop/configs/input.yaml",
        "shop/configs/simulation.yaml",
    ]
