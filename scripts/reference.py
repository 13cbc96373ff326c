"""Writes the generated tables of the documentation, and what native/action.yml copies; usage: `make reference`.

The generated parts are between ``<!-- name -->`` and ``<!-- /name -->``, in YAML between ``# <name>`` and
``# </name>``. The rest is written by hand.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from agenteval.ci.github.action.inputs import variables_of
from agenteval.cli.main import command_line
from agenteval.cli.schema import schema
from agenteval.metrics.registry import METRICS

ROOT = Path(__file__).parents[1]
_ACTION = ROOT / "action.yml"


def inputs() -> str:
    """Return the table of the action's inputs, without those that are not for users."""
    lines = ["| input | default | |", "|---|---|---|"]
    for name, entry in _action()["inputs"].items():
        if entry["description"].startswith("Internal: "):
            continue
        default = f"`{entry['default']}`" if entry["default"] else ""
        lines.append(f"| `{name}` | {default} | {' '.join(entry['description'].split())} |")
    return "\n".join(lines)


def outputs() -> str:
    """Return the table of the action's outputs."""
    lines = ["| output | |", "|---|---|"]
    lines += [
        f"| `{name}` | {' '.join(entry['description'].split())} |" for name, entry in _action()["outputs"].items()
    ]
    return "\n".join(lines)


def configuration() -> str:
    """Return a table for each part of ``agenteval.yaml``, from its JSON Schema."""
    root = schema("config")
    parts = ["## At the top", *_table(root, root)]
    places: dict[str, list[str]] = {}
    for place, name in _nested(root, root, ""):
        places.setdefault(name, []).append(place)
    for name, where in places.items():
        heading = ", ".join(f"`{place}`" for place in dict.fromkeys(where))
        parts += ["", f"## {heading}", "", _says(root["$defs"][name]), *_table(root["$defs"][name], root)]
    return "\n".join(parts)


def commands() -> str:
    """Return a section for each command, from the parser of the command line."""
    parser = command_line()
    (subparsers,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    parts: list[str] = []
    for name, command in subparsers.choices.items():
        positional = [action for action in command._actions if not action.option_strings]
        words = " ".join([f"agenteval {name}", *(_placeholder(action) for action in positional)])
        shown = [action for action in command._actions if not isinstance(action, argparse._HelpAction)]
        parts += ["", f"## `{words}`", "", command.description or ""]
        if shown:
            parts += ["", "| | |", "|---|---|", *(f"| {_written(action)} | {_help(action)} |" for action in shown)]
    return "\n".join(parts).strip()


def metrics() -> str:
    """Return the table of the built-in metrics, from their registry."""
    lines = ["| metric | kind | score | needs | options |", "|---|---|---|---|---|"]
    for item in METRICS:
        needs = "by its options" if item.requires is None else _names(sorted(item.requires))
        cells = (f"`{item.name}`", item.kind, _cell(item.summary), needs, _names(item.options))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def native_inputs() -> str:
    """Return the inputs of action.yml as they are written there."""
    text = _ACTION.read_text(encoding="utf-8")
    return text[text.index("inputs:\n") : text.index("\noutputs:\n")].rstrip()


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
    return "\n".join(f"        {variables_of(name)[1]}: ${{{{ inputs.{name} }}}}" for name in _action()["inputs"])


SECTIONS: Mapping[str, tuple[tuple[str, Callable[[], str]], ...]] = {
    "docs/action.md": (("inputs", inputs), ("outputs", outputs)),
    "docs/configuration.md": (("configuration", configuration),),
    "docs/command-line.md": (("commands", commands),),
    "docs/metrics.md": (("metrics", metrics),),
    "native/action.yml": (("inputs", native_inputs), ("outputs", native_outputs), ("variables", native_variables)),
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


def _action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(_ACTION.read_text(encoding="utf-8"))
    return loaded


def _table(model: Mapping[str, Any], root: Mapping[str, Any]) -> list[str]:
    lines = ["", "| key | | default | |", "|---|---|---|---|"]
    for key, value in model["properties"].items():
        default = value.get("default")
        shown = "" if default in (None, "", []) or isinstance(default, dict) else f"`{_yaml(default)}`"
        lines.append(f"| `{key}` | {_type(value, root)} | {shown} | {_cell(_says(value, root))} |")
    return lines


def _yaml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace('"', "") if not isinstance(value, str) else value


def _says(value: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> str:
    """Return the description of a schema, or of the schema that it refers to."""
    text = str(value.get("description", ""))
    if not text and root is not None and "$ref" in value:
        text = str(root["$defs"][_name(value)].get("description", ""))
    # The first paragraph of a docstring has doubled code markers and begins with the key.
    first = " ".join(text.partition("\n\n")[0].replace("``", "`").split())
    return re.sub(r"^`\w+:` - (\w)", lambda match: match[1].upper(), first)


def _type(value: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    if alternatives := _alternatives(value):
        return " or ".join(dict.fromkeys(filter(None, (_type(member, root) for member in alternatives))))
    if "$ref" in value:
        return "mapping"
    if "enum" in value:
        return " \\| ".join(f"`{_yaml(item)}`" for item in value["enum"])
    kind = value.get("type")
    if kind == "array":
        inner = _type(value["items"], root) if value.get("items") else ""
        return f"list of {inner}" if inner else "list"
    if kind == "object":
        return "mapping"
    if isinstance(kind, list):
        return "list or text"
    names = {"string": "text", "integer": "whole number", "boolean": "true or false", "null": "", "number": "number"}
    return names.get(str(kind), "") + _limits(value)


def _limits(value: Mapping[str, Any]) -> str:
    signs = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
    limits = [f"{sign} {value[key]:g}" for key, sign in signs if key in value]
    return f" {', '.join(limits)}" if limits else ""


def _nested(model: Mapping[str, Any], root: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    """Yield every mapping below a mapping: its place, and its name among the schema's definitions."""
    for key, value in model.get("properties", {}).items():
        for suffix, member in _members(value):
            name = _name(member)
            place = f"{at}{key}{suffix}"
            yield place, name
            yield from _nested(root["$defs"][name], root, f"{place}.")


def _members(value: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if "$ref" in value:
        yield "", value
    for member in _alternatives(value):
        yield from _members(member)
    for key, suffix in (("items", "[]"), ("additionalProperties", ".NAME")):
        if isinstance(value.get(key), dict):
            for inner, member in _members(value[key]):
                yield f"{suffix}{inner}", member


def _alternatives(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = value.get("anyOf") or value.get("oneOf") or ()
    return found


def _name(value: Mapping[str, Any]) -> str:
    return str(value["$ref"]).rpartition("/")[2]


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
    text = (action.help or "") % {"default": action.default}
    choices = f": {', '.join(f'`{choice}`' for choice in action.choices)}" if action.choices else ""
    return _cell(text + choices)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def main() -> None:
    """Rewrite every file with generated parts."""
    for name in SECTIONS:
        file = ROOT / name
        file.write_text(with_sections(name, file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
