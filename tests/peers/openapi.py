"""Checks requests against GitHub's own OpenAPI description."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

SLICE = Path(__file__).parents[1] / "data" / "github-openapi-slice.json"
_URI = "urn:github-openapi"

Json = Any


@dataclass(frozen=True)
class Request:
    """One request as it went over the wire."""

    method: str
    url: str
    body: str | None = None


@dataclass(frozen=True)
class _Route:
    template: str
    pattern: re.Pattern[str]
    operations: Mapping[str, Json]

    @classmethod
    def of(cls, template: str, operations: Mapping[str, Json]) -> _Route:
        parameters = (item for operation in operations.values() for item in operation.get("parameters", []))
        paths = {item["name"] for item in parameters if item.get("x-multi-segment")}
        parts = re.split(r"\{([^}]+)\}", template)
        pattern = "".join(
            f"(?P<{part}>{'.+' if part in paths else '[^/]+'})" if index % 2 else re.escape(part)
            for index, part in enumerate(parts)
        )
        return cls(template, re.compile(pattern), operations)


class Description:
    """A (slice of an) OpenAPI 3.0 document.

    Stricter than the document where it leaves things open: query parameters and body properties that it
    does not mention are violations.
    """

    def __init__(self, document: Mapping[str, Json]) -> None:
        self._document = _as_json_schema(document)
        self._registry: Registry[Json] = Registry().with_resource(_URI, DRAFT202012.create_resource(self._document))
        routes = [_Route.of(template, operations) for template, operations in document["paths"].items()]
        # ``/pulls`` must not be taken for ``/{something}``: the route with fewer variables is meant.
        self._routes = sorted(routes, key=lambda route: route.template.count("{"))

    @classmethod
    def load(cls, path: Path = SLICE) -> Description:
        return cls(json.loads(path.read_text(encoding="utf-8")))

    def violations(self, request: Request) -> list[str]:
        """Everything in the request that GitHub's description does not allow."""
        address = urlsplit(request.url)
        route = self._route(request.method, address.path)
        if route is None:
            return [f"{request.method} {address.path}: not in GitHub's description"]
        operation = self._operation(request.method, route)
        found = route.pattern.fullmatch(address.path)
        problems = [
            *self._in_path(operation, found.groupdict() if found else {}),
            *self._in_query(operation, dict(parse_qsl(address.query, keep_blank_values=True))),
            *self._in_body(operation, request.body),
        ]
        return [f"{request.method} {route.template}: {problem}" for problem in problems]

    def answer_violations(self, method: str, path: str, status: int, body: str) -> list[str]:
        """Everything in an answer that GitHub's description does not promise; it may leave something out."""
        route = self._route(method, path)
        if route is None:
            return [f"{method} {path}: not in GitHub's description"]
        where = f"{method} {route.template}: {status}"
        responses = self._operation(method, route)["responses"]
        if str(status) not in responses:
            return [f"{where} is not described"]
        content = self._resolved(responses[str(status)]).get("content")
        if not content:
            return [f"{where} has a body, none is described"] if body else []
        schema = content["application/json"]["schema"]
        return [f"{where}: {message}" for message in self._errors(schema, json.loads(body), whole=False)]

    def _route(self, method: str, path: str) -> _Route | None:
        described = (route for route in self._routes if method.lower() in route.operations)
        return next((route for route in described if route.pattern.fullmatch(path)), None)

    def _operation(self, method: str, route: _Route) -> Json:
        return self._document["paths"][route.template][method.lower()]

    def _in_path(self, operation: Json, values: Mapping[str, str]) -> Iterator[str]:
        for parameter in self._parameters(operation, "path"):
            yield from self._mismatches(parameter, values.get(parameter["name"]))

    def _in_query(self, operation: Json, values: Mapping[str, str]) -> Iterator[str]:
        parameters = self._parameters(operation, "query")
        for parameter in parameters:
            yield from self._mismatches(parameter, values.get(parameter["name"]))
        for name in values.keys() - {parameter["name"] for parameter in parameters}:
            yield f"unknown query parameter {name}"

    def _in_body(self, operation: Json, body: str | None) -> Iterator[str]:
        described = self._resolved(operation.get("requestBody"))
        if not described:
            if body:
                yield "a body is sent, none is described"
            return
        schema = described["content"]["application/json"]["schema"]
        if not body:
            if described.get("required"):
                yield "the body is missing"
            return
        value = json.loads(body)
        yield from (f"body {message}" for message in self._errors(schema, value))
        known = self._resolved(schema).get("properties")
        if known:
            yield from (f"unknown body property {name}" for name in value.keys() - known.keys())

    def _parameters(self, operation: Json, place: str) -> list[Json]:
        resolved = [self._resolved(parameter) for parameter in operation.get("parameters", [])]
        return [parameter for parameter in resolved if parameter["in"] == place]

    def _mismatches(self, parameter: Json, text: str | None) -> Iterator[str]:
        if text is None:
            if parameter.get("required"):
                yield f"{parameter['name']} is missing"
            return
        value = _typed(text, self._resolved(parameter["schema"]).get("type"))
        yield from (f"{parameter['name']} {message}" for message in self._errors(parameter["schema"], value))

    def _errors(self, schema: Json, value: Json, *, whole: bool = True) -> list[str]:
        # The document is in the registry under _URI, and its references are relative to itself.
        validator = Draft202012Validator(_absolute(schema), registry=self._registry)
        errors = [error for error in validator.iter_errors(value) if whole or error.validator != "required"]
        return [f"{error.json_path}: {error.message}" for error in errors]

    def _resolved(self, node: Json) -> Json:
        while node and "$ref" in node:
            node = self._registry.resolver(_URI).lookup(node["$ref"]).contents
        return node


def _typed(text: str, kind: Json) -> Json:
    if kind == "integer" and re.fullmatch(r"-?\d+", text):
        return int(text)
    if kind == "boolean" and text in {"true", "false"}:
        return text == "true"
    return text


def _absolute(schema: Json) -> Json:
    if isinstance(schema, dict):
        return {
            key: f"{_URI}{value}" if key == "$ref" and value.startswith("#") else _absolute(value)
            for key, value in schema.items()
        }
    return [_absolute(item) for item in schema] if isinstance(schema, list) else schema


def _as_json_schema(node: Json) -> Json:
    """OpenAPI 3.0 writes ``nullable: true`` where JSON Schema has a second type, and a null in an enum."""
    if isinstance(node, list):
        return [_as_json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    converted = {key: _as_json_schema(value) for key, value in node.items()}
    if converted.get("nullable") is True and isinstance(converted.get("type"), str):
        converted["type"] = [converted["type"], "null"]
        if "enum" in converted:
            converted["enum"] = [*converted["enum"], None]
    return converted
