"""Finds the objects of user modules that references name, and reads their fields and arguments."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import importlib
import importlib.machinery
import importlib.util
import inspect
import json
import pathlib
import sys
import threading
from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, Sequence

# Distinguishes arguments that do not fit an agent's method or a tool from errors inside it.


# The attributes of tool objects in which frameworks store the wrapped function.
_WRAPPED = ("__wrapped__", "real_fn", "fn", "func", "entrypoint")
_TAKES_ALL = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def wrapped(target: Any) -> Any:
    """Return the function that a tool object wraps; ``None`` without one."""
    found = (getattr(target, name, None) for name in _WRAPPED)
    return next((function for function in found if callable(function)), None)


def parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters by name; empty if the signature is unknown."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def must_fit(reference: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Check arguments against the signature of a function, or of the function that it wraps."""
    takes_all = {parameter.kind for parameter in parameters(function).values()} == _TAKES_ALL
    inner = wrapped(function) if takes_all else None
    try:
        signature = inspect.signature(inner or function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        takes = ", ".join(str(item.replace(annotation=item.empty)) for item in signature.parameters.values())
        given = f"; given: {', '.join(kwargs)}" if kwargs else ""
        raise TypeError(f"the arguments do not fit {reference}({takes}): {error}{given}") from None


def must_fit_schema(reference: str, function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Check the names in a mapping against the JSON Schema of a LangChain tool, which ignores unknown ones."""
    schema = _input_schema(getattr(function, "__self__", None))
    known, required = schema.get("properties") or {}, schema.get("required") or ()
    missing = [name for name in required if name not in given]
    is_open = not known or schema.get("additionalProperties", False) is not False
    unknown = [] if is_open else [name for name in given if name not in known]
    if missing or unknown:
        problems = [f"{name!r} is missing" for name in missing] + [f"{name!r} is unknown" for name in unknown]
        raise TypeError(f"the arguments do not fit {reference}({', '.join(known)}): {', '.join(problems)}")


def _input_schema(tool: Any) -> Mapping[str, Any]:
    schema = getattr(tool, "args_schema", None)
    if isinstance(schema, Mapping):
        return schema
    make = getattr(tool, "get_input_schema", None)
    if not callable(make):
        return {}
    try:
        made = make().model_json_schema()
    except Exception:  # noqa: BLE001 - arguments that the framework fills in itself may have no schema
        return {}
    return made if isinstance(made, Mapping) else {}


# Reads fields of objects and mappings of any framework.


# The types and roles of a model's messages.
SPEAKERS = frozenset({"ai", "assistant", "AIMessageChunk"})


def kind_of(message: Any) -> Any:
    """Return the kind of a message: LangChain's ``type``, other frameworks' ``role``."""
    found = first(message, ("type", "role"))
    # A role may be an enum member.
    found = getattr(found, "value", found)
    return found if isinstance(found, str) else None


def get(item: Any, name: str) -> Any:
    """Return the field of an object or mapping; ``None`` if it is missing."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def has(item: Any, name: str) -> bool:
    """Return whether a field has a value that is not a method."""
    value = get(item, name)
    return value is not None and not callable(value)


def as_list(item: Any, name: str) -> Sequence[Any]:
    """Return the field if it is a list, else an empty list."""
    value = get(item, name)
    return value if isinstance(value, (list, tuple)) else ()


def first(item: Any, names: Iterable[str]) -> Any:
    """Return the first of several fields that has a value."""
    return next((get(item, name) for name in names if has(item, name)), None)


def plain(value: Any) -> Any:
    """Return a value as JSON; other types become the closest JSON type, as a last resort text."""
    try:
        return json.loads(json.dumps(value, default=_simpler, skipkeys=True))
    except (ValueError, TypeError, RecursionError):
        return str(value)


def fields_of(value: Any) -> Any:
    """Return the fields of an object with declared fields; ``None`` for any other."""
    if isinstance(value, type):
        return None
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def _simpler(value: Any) -> Any:
    fields = fields_of(value)
    if fields is not None:
        return fields
    return list(value) if isinstance(value, (set, frozenset)) else str(value)


# Finds the objects of user modules that references name: ``module:name`` or ``path/file.py:name``.


# The worker's ``sys.path`` begins with the agent's directory.
_DIRECTORY = pathlib.Path(sys.path[0])
_SUFFIX = ".py"
_MEANT = "; did you mean %r?"
# Tools are called in threads.
_LOCK = threading.RLock()
_EXECUTED: Dict[pathlib.Path, Any] = {}


class MissingError(Exception):
    """The reference names a module, file or object that does not exist."""

    is_of_agenteval = True


class BrokenError(Exception):
    """The user's module exists, but its import failed."""

    is_of_agenteval = True


@contextlib.contextmanager
def importing(module: str = "") -> Iterator[None]:
    """Raise the exceptions of an import in the block as `BrokenError`, with the text of the exception.

    Args:
        module: name of the imported module; if it does not exist, the exception is raised unchanged.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if module and _is_named(error, module):
            raise
        raise BrokenError(_described(error)) from error
    except MissingError:
        raise
    except (Exception, SystemExit) as error:
        raise BrokenError(_described(error)) from error


def find(reference: str) -> Any:
    """Return the object that a reference names; the name may be a dotted path of attributes."""
    name, _, path = reference.rpartition(":")
    try:
        target: Any = _of_file(name) if name.endswith(_SUFFIX) else importlib.import_module(name)
    except MissingError:
        raise
    except ModuleNotFoundError as error:
        kind = MissingError if _is_named(error, name) else BrokenError
        raise kind("cannot import module %r: %s" % (name, _described(error))) from error
    except BaseException as error:
        raise BrokenError("cannot import module %r: %s" % (name, _described(error))) from error
    try:
        return attribute(target, path)
    except AttributeError as error:
        raise MissingError("module %r has no %r%s" % (name, path, _meant(error))) from None
    except BaseException as error:
        raise BrokenError("cannot get %r of module %r: %s" % (path, name, _described(error))) from error


def attribute(target: Any, path: str) -> Any:
    """Return an object below another."""
    for step in path.split("."):
        try:
            target = getattr(target, step)
        except AttributeError as error:
            close = difflib.get_close_matches(step, [name for name in dir(target) if name[:1] != "_"], n=1)
            hint = _MEANT % close[0] if close else ""
            raise AttributeError("%s%s" % (error, hint)) from None
    return target


def _meant(error: AttributeError) -> str:
    text = str(error)
    start = text.rfind("; did you mean ")
    return text[start:] if start >= 0 else ""


def _is_named(error: ModuleNotFoundError, module: str) -> bool:
    """Return whether the module that was not found is the named one, and not one that user code imports."""
    return bool(error.name) and (module + ".").startswith(str(error.name) + ".")


def _of_file(path: str) -> Any:
    """Return the module of a file: as a part of its package, so that its relative imports work."""
    file = (_DIRECTORY / path).resolve()
    if not file.is_file():
        raise MissingError("there is no file %s in %s" % (path, _DIRECTORY))
    parts, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        parts.insert(0, folder.name)
        folder = folder.parent
    if str(folder) not in sys.path:
        sys.path.insert(1, str(folder))
    name = ".".join(parts)
    return importlib.import_module(name) if _is_found_as(name, file) else _executed(file)


def _is_found_as(name: str, file: pathlib.Path) -> bool:
    """Return whether importing a name loads this file, and not another module of the same name."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return False
    except ValueError:
        # A loaded module without a specification, such as ``__main__``.
        return False
    return spec is not None and spec.origin is not None and pathlib.Path(spec.origin).resolve() == file


def imported(path: str) -> Any:
    """Return the module in a file, which is executed once."""
    file = pathlib.Path(path).resolve()
    file.stat()
    with importing():
        return _executed(file)


def _executed(file: pathlib.Path) -> Any:
    with _LOCK:
        if file not in _EXECUTED:
            name = "agenteval_file_%d_%s" % (len(_EXECUTED), file.stem)
            spec = importlib.util.spec_from_file_location(name, str(file))
            if spec is None or spec.loader is None:
                raise MissingError("%s is not a Python file" % file)
            module = importlib.util.module_from_spec(spec)
            # Dataclasses and pickle look up the module by name.
            sys.modules[name] = module
            spec.loader.exec_module(module)
            _EXECUTED[file] = module
        return _EXECUTED[file]


def _described(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - a broken __str__ must not hide the error
        text = "(no text)"
    return "%s: %s" % (type(error).__name__, text) if text else type(error).__name__
