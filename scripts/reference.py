"""Writes the generated tables of the documentation, and the inputs of both actions; usage: `make reference`.

The generated parts are between ``<!-- name -->`` and ``<!-- /name -->``, in YAML between ``# <name>`` and
``# </name>``. The rest is written by hand.
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from agenteval.cli.explanations import ConfigKey, ConfigMapping, config_mappings
from agenteval.cli.main import command_line
from agenteval.github.inputs import variables_of
from agenteval.metrics.registry import METRICS
from agenteval.results.verdict import CONCEPTS, STATES, STATUSES, VERDICTS
from agenteval.run.options import INPUTS, Option

ROOT = Path(__file__).parents[1]
LLMS = ROOT / "docs" / "llms.txt"
_RAW = "https://raw.githubusercontent.com/org/agenteval-action/v1/docs/"
_ACTION = ROOT / "action.yml"
# The place of agents, whose keys tools have, too.
_AGENT = "agents.NAME."


def inputs() -> str:
    """Return the table of the action's inputs, without those that are not for users."""
    lines = ["| input | default | |", "|---|---|---|"]
    for name, option in INPUTS.items():
        if not option.help.startswith("internal: "):
            default = f"`{option.action_default}`" if option.action_default else ""
            lines.append(f"| `{name}` | {default} | {described(option)} |")
    return "\n".join(lines)


def described(option: Option) -> str:
    """Return the sentences of an input."""
    # The default of the command line, where the action has another, or shows it beside.
    text = option.help.partition("; default: ")[0] if option.action_default else option.help
    # The name of a value stays as it is.
    first = text if text.partition(":")[0] in option.choices else text[0].upper() + text[1:]
    return f"{first}. {option.in_action}".strip()


def outputs() -> str:
    """Return the table of the action's outputs."""
    lines = ["| output | |", "|---|---|"]
    lines += [
        f"| `{name}` | {' '.join(entry['description'].split())} |" for name, entry in _action()["outputs"].items()
    ]
    return "\n".join(lines)


def configuration() -> str:
    """Return the tables of ``agenteval.yaml``, from its JSON Schema: one for agents and tools, one for the rest."""
    rows = {path: _meaning(key) for mapping in config_mappings() for path, key in _paths(mapping)}
    of_agents = {path: meaning for path, meaning in rows.items() if path.startswith(_AGENT)}
    others = {path: meaning for path, meaning in rows.items() if path not in of_agents}
    return "\n".join(
        [
            *("## At the top", *_table(others)),
            *("", "## `agents.NAME`, `tools.NAME`", *_table(of_agents)),
        ]
    )


def commands() -> str:
    """Return a section for each command, from the parser of the command line."""
    parser = command_line()
    (subparsers,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    of_run = {_written(action).split()[0]: action.help for action in subparsers.choices["run"]._actions}
    parts: list[str] = []
    for name, command in subparsers.choices.items():
        positional = [action for action in command._actions if not action.option_strings]
        words = " ".join([f"agenteval {name}", *(_placeholder(action) for action in positional)])
        parts += ["", f"## `{words}`", "", command.description or ""]
        rows, same = [], []
        for action in command._actions:
            if isinstance(action, argparse._HelpAction):
                continue
            if name != "run" and action.help in {"as for run", of_run.get(_written(action).split()[0])}:
                same += [f"`{option}`" for option in action.option_strings[-1:]]
            else:
                rows.append(f"* {_written(action)}: {_help(action)}")
        if rows:
            parts += ["", *rows]
        if same:
            parts += ["", f"As for `run`: {', '.join(same)}."]
    return "\n".join(parts).strip()


def metrics() -> str:
    """Return the table of the built-in metrics, from their registry; metrics with the same summary share a row."""
    rows: dict[str, list[str]] = {}
    for item in METRICS:
        rows.setdefault(_cell(item.summary), []).append(item.name)
    lines = ["| metric | score |", "|---|---|"]
    return "\n".join([*lines, *(f"| {_names(names)} | {summary} |" for summary, names in rows.items())])


def concepts() -> str:
    """Return the table of the concepts."""
    rows = (f"| **{concept.name}** | {_cell(concept.meaning)} |" for concept in CONCEPTS)
    return "\n".join(["| concept | |", "|---|---|", *rows])


def values(title: str, meanings: Mapping[str, str]) -> str:
    """Return the table of what a run, a case or a comparison can be."""
    rows = (f"| `{name}` | {_cell(meaning)} |" for name, meaning in meanings.items())
    return "\n".join([f"| {title} | meaning |", "|---|---|", *rows])


def action_inputs() -> str:
    """Return the inputs of both actions."""
    lines = ["inputs:"]
    for name, option in INPUTS.items():
        text = textwrap.fill(described(option), 114, break_long_words=False, break_on_hyphens=False)
        lines += [f"  {name}:", "    description: >-", textwrap.indent(text, "      ")]
        lines.append(f"    default: {json.dumps(option.action_default)}")
    return "\n".join(lines)


def native_outputs() -> str:
    """Return the outputs of action.yml, with the step that sets them."""
    lines = ["outputs:"]
    for name, entry in _action()["outputs"].items():
        # Without the step, an earlier one has failed.
        otherwise = " || 'error'" if name == "verdict" else ""
        lines += [f"  {name}:", f"    description: {json.dumps(entry['description'])}"]
        lines.append(f"    value: ${{{{ steps.evaluate.outputs.{name}{otherwise} }}}}")
    return "\n".join(lines)


def native_variables() -> str:
    """Return the variables of the inputs, which the runner does not set for composite actions."""
    return "\n".join(f"        {variables_of(name)[1]}: ${{{{ inputs.{name} }}}}" for name in INPUTS)


SECTIONS: Mapping[str, tuple[tuple[str, Callable[[], str]], ...]] = {
    "docs/github.md": (("inputs", inputs), ("outputs", outputs)),
    "docs/configuration.md": (("configuration", configuration),),
    "docs/command-line.md": (("commands", commands),),
    "docs/index.md": (("concepts", concepts),),
    "docs/gate.md": (
        ("states", partial(values, "state", STATES)),
        ("verdicts", partial(values, "verdict", VERDICTS)),
    ),
    "docs/metrics.md": (("statuses", partial(values, "status", STATUSES)), ("metrics", metrics)),
    "action.yml": (("inputs", action_inputs),),
    "native/action.yml": (("inputs", action_inputs), ("outputs", native_outputs), ("variables", native_variables)),
}


def with_sections(name: str, text: str) -> str:
    """Return a file's text with its generated parts replaced.

    Args:
        name: one of ``SECTIONS``.
        text: the current text.

    Raises:
        ValueError: the markers of a part are missing, or those of a document appear more than once.
    """
    is_yaml = name.endswith(".yml")
    forms = ("# <{}>", "# </{}>") if is_yaml else ("<!-- {} -->", "<!-- /{} -->")
    for section, render in SECTIONS[name]:
        start, end = (form.format(section) for form in forms)
        pattern = re.compile(rf"({start}\n).*?( *{end})", re.DOTALL)
        body = render()
        text, count = pattern.subn(lambda match, body=body: f"{match[1]}{body}\n{match[2]}", text)  # type: ignore[misc]
        if count == 0 or (count > 1 and not is_yaml):
            raise ValueError(f"{name} needs one pair of {start} and {end}, found {count}")
    return text


def llms_txt() -> str:
    """Return ``llms.txt``: the pages of the documentation for language models, each with its sections."""
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), _NavLoader)  # noqa: S506 - data only
    lines = [f"# {settings['site_name']}", "", f"> {settings['site_description']}"]
    for title, nav in (("Documentation", settings["nav"][:-1]), ("Optional", settings["nav"][-1:])):
        lines += ["", f"## {title}", ""]
        for name, page in _pages(nav):
            sections = re.findall(r"(?m)^## (.+)$", (ROOT / "docs" / page).read_text(encoding="utf-8"))
            lines.append(f"- [{name}]({_RAW}{page}){': ' if sections else ''}{', '.join(sections)}")
    return "\n".join([*lines, ""])


class _NavLoader(yaml.SafeLoader):
    """Reads mkdocs.yml without the functions that it names."""


_NavLoader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def _pages(nav: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for item in nav:
        for name, value in item.items():
            yield from _pages(value) if isinstance(value, list) else [(name, value)]


def _action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(_ACTION.read_text(encoding="utf-8"))
    return loaded


def _paths(mapping: ConfigMapping) -> Iterator[tuple[str, ConfigKey]]:
    """Yield the path of each key of a mapping; tools have the keys of agents."""
    for place in mapping.places:
        if not place.startswith("tools."):
            yield from ((f"{place}.{key.name}".lstrip("."), key) for key in mapping.keys)


def _table(rows: Mapping[str, str]) -> list[str]:
    """Return the table of keys by path, each mapping with its keys below it."""
    names = [path.removeprefix(_AGENT) for path in rows]
    place = {name: number for number, name in enumerate(names)}

    def order(name: str) -> list[int]:
        parts = re.split(r"(?=\.|\[\])", name)
        above = ("".join(parts[:number]) for number in range(1, len(parts) + 1))
        return [place[part] for part in above if part in place]

    lines = ["", "| key | |", "|---|---|"]
    return [*lines, *(f"| `{name}` | {rows.get(name) or rows[_AGENT + name]} |" for name in sorted(names, key=order))]


def _meaning(key: ConfigKey) -> str:
    """Return what a key means, with what that does not name: the values, a limit and the default."""
    details = []
    names = re.findall("`([^`]+)`", key.values)
    if not all(name in key.meaning for name in names):
        details.append(", ".join(f"`{name}`" for name in names))
    elif re.search(r"≥ [^01]|≤ (?!1e\+)", key.values):
        details.append(key.values.partition(", ≤ 1e+")[0])
    if key.default and "default" not in key.meaning:
        details.append(f"default: `{key.default}`")
    return _cell("; ".join([key.meaning.removesuffix("."), *details]))


def _placeholder(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    if action.choices:
        name = "NAME"
    many = {"*": f"[{name}…]", "+": f"{name}…", "?": f"[{name}]"}
    return many.get(str(action.nargs), name)


def _written(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{_placeholder(action)}`"
    words = ", ".join(f"`{option}`" for option in action.option_strings)
    value = action.metavar if action.nargs != 0 else None
    if action.choices:
        value = None
    return words.removesuffix("`") + f" {value}`" if value else words


def _help(action: argparse.Action) -> str:
    text = (action.help or "").replace(": %(choices)s", "") % {"default": action.default}
    choices = f" ({', '.join(f'`{choice}`' for choice in action.choices)})" if action.choices else ""
    return _cell(text + choices)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def _cell(text: str) -> str:
    return _escaped(text).replace("<", "&lt;")


def main() -> None:
    """Rewrite every file with generated parts."""
    for name in SECTIONS:
        file = ROOT / name
        file.write_text(with_sections(name, file.read_text(encoding="utf-8")), encoding="utf-8")
    LLMS.write_text(llms_txt(), encoding="utf-8")


if __name__ == "__main__":
    main()
