"""One member of an untrusted zip file."""

from __future__ import annotations

import stat
import struct
import zlib
from contextlib import suppress
from io import BytesIO
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, ZipFile, ZipInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.github.artifacts import ArtifactLimits, UnusableArtifactError, read_member

NAME = "results.json"
CONTENT = b'{"schema_version": 1}' * 3
_MIB = 1024 * 1024


def zipped(*members: tuple[str | ZipInfo, bytes], method: int = ZIP_DEFLATED) -> bytes:
    data = BytesIO()
    with ZipFile(data, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content, compress_type=method)
    return data.getvalue()


LIMITS = ArtifactLimits()


def refusal(data: bytes, limits: ArtifactLimits = LIMITS) -> str:
    with pytest.raises(UnusableArtifactError) as caught:
        read_member(data, NAME, limits)
    assert str(caught.value) == f"the artifact cannot be used: {caught.value.reason}"
    return caught.value.reason


def test_a_file_written_as_a_stream_is_read() -> None:
    # As the upload action does: sizes and checksum come after the content.
    class Stream(BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: int) -> int:
            raise OSError("a stream")

        def tell(self) -> int:
            raise OSError("a stream")

    stream = Stream()
    with ZipFile(stream, "w", ZIP_DEFLATED) as archive:
        archive.writestr(NAME, CONTENT)

    assert b"PK\x07\x08" in stream.getvalue()
    assert read_member(stream.getvalue(), NAME) == CONTENT


def test_the_one_at_the_top_wins() -> None:
    assert read_member(zipped(("a/results.json", b"a"), (NAME, b"top")), NAME) == b"top"


@pytest.mark.parametrize("method", [ZIP_STORED, ZIP_DEFLATED])
def test_a_file_cut_short_anywhere_is_refused(method: int) -> None:
    data = zipped((NAME, CONTENT), ("other.txt", b"x"), method=method)

    for length in range(len(data)):
        assert refusal(data[:length]).startswith(("it is not a valid zip file", "there is no results.json"))


@given(st.data())
def test_a_changed_byte_changes_nothing_or_is_refused(data: st.DataObject) -> None:
    sound = zipped((f"report/{NAME}", CONTENT))
    place = data.draw(st.integers(0, len(sound) - 1))
    value = data.draw(st.integers(0, 255))
    broken = sound[:place] + bytes([value]) + sound[place + 1 :]

    with suppress(UnusableArtifactError):
        assert read_member(broken, NAME) == CONTENT


def test_a_wrong_checksum_is_refused() -> None:
    data = zipped((NAME, CONTENT), method=ZIP_STORED)

    assert "Bad CRC-32" in refusal(data.replace(CONTENT, CONTENT[:-1] + b"?"))


@pytest.mark.parametrize(
    "name",
    [
        "results.txt",
        "a/b/results.json",
        "/results.json",
        "../results.json",
        "./results.json",
        "a\\results.json",
        "C:\\x/results.json",
        "a\x1b[31m/results.json",
        "Results.json",
        "results.json/",
    ],
)
def test_names_elsewhere_do_not_count(name: str) -> None:
    assert refusal(zipped((name, b""))) == "there is no results.json in it"


def test_a_name_that_ends_early_for_some_readers() -> None:
    data = zipped(("results.jsonXevil", CONTENT)).replace(b"results.jsonXevil", b"results.json\0evil")

    assert refusal(data) == "there is no results.json in it"


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("names", [(NAME, NAME), ("a/results.json", "b/results.json")])
def test_two_of_them_are_refused(names: tuple[str, str]) -> None:
    assert refusal(zipped(*((name, name.encode()) for name in names))) == "there are 2 files results.json in it"


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFCHR, stat.S_IFIFO])
def test_only_plain_files_are_read(kind: int) -> None:
    member = ZipInfo(NAME)
    member.external_attr = (kind | 0o777) << 16

    assert "link or another special file" in refusal(zipped((member, b"/etc/passwd")))


@pytest.mark.parametrize("bit", [0x1, 0x40])
def test_encrypted_files_are_refused(bit: int) -> None:
    assert refusal(_with_flags(zipped((NAME, CONTENT)), bit)) == "its results.json is encrypted"


def test_a_patch_is_refused() -> None:
    assert "it is not a valid zip file" in refusal(_with_flags(zipped((NAME, CONTENT)), 0x20))


@pytest.mark.parametrize("method", [ZIP_BZIP2, ZIP_LZMA])
def test_rare_methods_are_refused(method: int) -> None:
    assert "uses an unsupported compression" in refusal(zipped((NAME, CONTENT), method=method))


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    data = zipped((NAME, b"0" * (30 * _MIB)))

    assert len(data) < _MIB
    assert refusal(data) == "its results.json is packed more than 200:1, as in a zip bomb"


def test_small_files_may_be_packed_well() -> None:
    assert len(read_member(zipped((NAME, b"0" * (9 * _MIB))), NAME)) == 9 * _MIB


@pytest.mark.parametrize("said", [10, 1000])
def test_a_bomb_that_lies_about_its_size_is_refused(said: int) -> None:
    data = bytearray(zipped((NAME, b"0" * (30 * _MIB))))
    entry = data.rindex(b"PK\x01\x02")
    struct.pack_into("<L", data, entry + 24, said)
    struct.pack_into("<L", data, entry + 16, zlib.crc32(b"0" * (30 * _MIB)))

    assert "Bad CRC-32" in refusal(bytes(data))


def test_too_many_files_are_refused() -> None:
    data = zipped(*((f"{number}.txt", b"") for number in range(11)))

    assert refusal(data, ArtifactLimits(members=10)) == "it has more than 10 files"


def _with_flags(data: bytes, bits: int) -> bytes:
    """Sets flag bits of the only member, in its header and in the directory."""
    changed = bytearray(data)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = changed.index(signature) + offset
        struct.pack_into("<H", changed, place, struct.unpack_from("<H", changed, place)[0] | bits)
    return bytes(changed)
