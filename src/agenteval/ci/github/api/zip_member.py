"""Reads one member of an untrusted zip file in memory."""

from __future__ import annotations

import stat
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from agenteval.core.masking import shortened

_MIB: Final = 1024 * 1024
_CHUNK: Final = 4 * _MIB
_MAX_SAID: Final = 200
_ENTRY: Final = b"PK\x01\x02"
_ENCRYPTED: Final = 0x1 | 0x40
# Exceptions for an invalid zip file.
_BROKEN = (
    BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
    ValueError,
    OverflowError,
)


class UnreadableZipError(ValueError):
    """An invalid zip file; the text continues "because"."""


@dataclass(frozen=True, slots=True)
class MemberLimits:
    """Limits of a member.

    Args:
        size: bytes when unpacked.
        ratio: unpacked to packed size, beyond ``free_size`` bytes.
        free_size: below this size the ratio does not matter.
        members: limit of members in the file.
    """

    size: int = 512 * _MIB
    ratio: int = 200
    free_size: int = 10 * _MIB
    members: int = 10_000


def read_zip_member(data: bytes, name: str, limits: MemberLimits | None = None) -> bytes:
    """Return the content of one member, with verified checksum.

    Args:
        data: the zip file.
        name: name of the member, at the top or in one folder.
        limits: limits of size and ratio.

    Raises:
        UnreadableZipError: broken, too large, without that member or with several, or the member is not a plain
            file.
    """
    limits = limits or MemberLimits()
    # Every entry uses memory when the file is opened.
    if data.count(_ENTRY) > limits.members:
        raise UnreadableZipError(f"it has more than {limits.members:,} files")
    try:
        with ZipFile(BytesIO(data)) as archive:
            member = _chosen(archive.infolist(), name)
            _must_be_harmless(member, limits)
            return _content(archive, member)
    except UnreadableZipError:
        raise
    except _BROKEN as error:
        said = shortened(str(error), _MAX_SAID) or type(error).__name__
        raise UnreadableZipError(f"it is not a valid zip file ({said})") from None


def _chosen(members: Sequence[ZipInfo], name: str) -> ZipInfo:
    # Use the stored name: the library cuts it at a NUL, other readers may not.
    at_top = [member for member in members if member.orig_filename == name]
    in_folder = [member for member in members if _is_in_folder(member.orig_filename, name)]
    found = at_top or in_folder
    if not found:
        raise UnreadableZipError(f"there is no {name} in it")
    if len(found) > 1:
        raise UnreadableZipError(f"there are {len(found)} files {name} in it")
    return found[0]


def _is_in_folder(stored: str, name: str) -> bool:
    folder, slash, file = stored.partition("/")
    odd = folder in {"", ".", ".."} or "\\" in folder or not folder.isprintable()
    return bool(slash) and file == name and not odd


def _must_be_harmless(member: ZipInfo, limits: MemberLimits) -> None:
    kind = stat.S_IFMT(member.external_attr >> 16)
    name = member.filename.rpartition("/")[2]
    if kind not in {0, stat.S_IFREG}:
        raise UnreadableZipError(f"its {name} is a link or another special file")
    if member.flag_bits & _ENCRYPTED:
        raise UnreadableZipError(f"its {name} is encrypted")
    if member.compress_type not in {ZIP_STORED, ZIP_DEFLATED}:
        raise UnreadableZipError(f"its {name} uses an unsupported compression")
    if member.file_size > limits.size:
        raise UnreadableZipError(f"its {name} is larger than {limits.size:,} bytes")
    if member.file_size > limits.free_size and member.file_size > limits.ratio * member.compress_size:
        raise UnreadableZipError(f"its {name} is packed more than {limits.ratio}:1, as in a zip bomb")


def _content(archive: ZipFile, member: ZipInfo) -> bytes:
    # The library reads at most the declared size, and compares the checksum at the end.
    pieces: list[bytes] = []
    with archive.open(member) as file:
        while piece := file.read(_CHUNK):
            pieces.append(piece)
    content = b"".join(pieces)
    if len(content) != member.file_size:
        raise UnreadableZipError(f"its {member.filename.rpartition('/')[2]} is cut short")
    return content
