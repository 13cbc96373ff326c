"""Prepares the files of a run for agents and judges: downloads and reads each once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self, TypeVar

from agenteval.core.authentic import seal
from agenteval.core.errors import AgentEvalError
from agenteval.core.files.boundary import also_inside
from agenteval.core.llm.cache import files_directory
from agenteval.core.process.confinement import confinement
from agenteval.core.runtime import in_thread
from agenteval.run.attachments.convert import load_libraries, read_file
from agenteval.suite.model import FileRef

if TYPE_CHECKING:
    from agenteval.run.attachments.download import Downloader

ResultT = TypeVar("ResultT")

_NO_TEXT = "(no text could be read from this file)"


class AttachmentError(AgentEvalError):
    """A file of a turn cannot be downloaded or read; the message names the file and the reason."""


@dataclass(frozen=True, slots=True)
class Attached:
    """The files of one turn.

    Attributes:
        paths: their paths on this machine.
        texts: for each file its name, description and text.
    """

    paths: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


class Attachments:
    """The files of a run; a context manager inside the run's event loop.

    Args:
        kept: directory of downloads for later runs; by default in the user's cache directory.
    """

    def __init__(self, kept: Path | None = None) -> None:
        self._kept = kept
        self._cleanup = ExitStack()
        self._downloader: Downloader | None = None
        self._tasks: dict[Hashable, asyncio.Task[Any]] = {}
        # Conversion runs Python code and holds the interpreter lock, so parallel conversions are not faster.
        self._reading = asyncio.Semaphore(1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._cleanup.close()

    async def get(self, files: Sequence[FileRef]) -> Attached:
        """Return the files of a turn.

        Raises:
            AttachmentError: one of them cannot be downloaded or read.
        """
        found = await asyncio.gather(*(self._one(file) for file in files))
        return Attached(tuple(str(path) for path, _ in found), tuple(text for _, text in found))

    async def _one(self, file: FileRef) -> tuple[Path, str]:
        try:
            path = await self._located(file)
            part = (path, file.kind, file.pages, file.sheet, file.range)
            text = await self._once(part, lambda: self._read(file, path))
        except AgentEvalError as error:
            raise AttachmentError(str(error)) from None
        except Exception as error:  # noqa: BLE001 - an unexpected file must fail a case, not the run
            raise AttachmentError(f"{file.name}: {type(error).__name__}: {error}") from None
        return path, _block(file, text)

    async def _located(self, file: FileRef) -> Path:
        if file.url is None:
            return Path(file.path or "")
        if self._downloader is None:
            self._downloader = self._new_downloader()
        get = partial(self._downloader.get, file.url, file.kind, file.download_s, keep=file.cache)
        return await self._once((file.url, file.cache), lambda: in_thread(get))

    def _new_downloader(self) -> Downloader:
        # Imported here: most suites have no URLs, and the HTTP library is slow to import.
        from agenteval.run.attachments.download import Downloader

        temporary = TemporaryDirectory(prefix="agenteval-", ignore_cleanup_errors=True)
        folder = Path(self._cleanup.enter_context(temporary))
        if confinement().owner is not None:
            # The agent reads the files as another user.
            folder.chmod(0o755)
        kept = self._kept or files_directory()
        for inside in (kept, folder):
            self._cleanup.enter_context(also_inside(inside))
        return Downloader(kept, folder, seal())

    async def _read(self, file: FileRef, path: Path) -> str:
        async with self._reading:
            # The first import takes seconds, which must not count towards the file's limit.
            await in_thread(partial(load_libraries, file.kind))
            try:
                async with asyncio.timeout(file.convert_s):
                    return await in_thread(partial(read_file, file, path))
            except TimeoutError:
                raise AttachmentError(f"{file.name}: reading it took longer than {file.convert_s:g} s") from None

    async def _once(self, key: Hashable, make: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
        """Return the result for a key, computed once; a cancelled caller does not cancel it for others."""
        task: asyncio.Task[ResultT] | None = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(make())
        return await asyncio.shield(task)


def _block(file: FileRef, text: str) -> str:
    about = [f"Description: {file.description}"] if file.description else []
    return "\n".join([f"File: {file.name}", *about, text.strip() or _NO_TEXT])
