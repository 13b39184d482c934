"""The text of a file in blocks of whole lines, so that a file of any size is read in little memory.

What is packed with gzip is known by its first bytes, whatever its name is.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from vlm_operator.simulator.traces.base import Source

BLOCK_BYTES = 4 << 20
LONGEST_LINE = 1 << 20
"""Bytes."""
_GZIP = b"\x1f\x8b"
_PACKED = {b"PK\3\4": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
"""First bytes of what is packed in another way."""
_MARK_BYTES = max(map(len, _PACKED))
_BYTE_ORDER_MARK = "\ufeff"


class Block(NamedTuple):
    """Some lines that follow each other."""

    first_line: int
    """Its number in the file; the first one is 1."""
    text: str


def blocks(source: Source) -> Iterator[Block]:
    """The text of a file; nothing of an empty one. Raises TraceError."""
    line = 1
    for data in _whole_lines(source):
        text = _decoded(source, data, line)
        yield Block(line, text.removeprefix(_BYTE_ORDER_MARK) if line == 1 else text)
        line += data.count(b"\n")


def lines(source: Source) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, without those that are empty. Raises TraceError."""
    for block in blocks(source):
        for number, line in enumerate(block.text.split("\n"), block.first_line):
            if line.strip():
                yield number, line.strip()


def _whole_lines(source: Source) -> Iterator[bytes]:
    rest = b""
    for data in _chunks(source):
        head, newline, tail = (rest + data).rpartition(b"\n")
        if newline:
            yield head + newline
        rest = tail
        if len(rest) > LONGEST_LINE:
            source.refuse(f"has a line of more than {LONGEST_LINE} bytes; a trace has one request a line")
    if rest:
        yield rest


def _chunks(source: Source) -> Iterator[bytes]:
    try:
        with source.open() as file, _unpacked(source, file) as stream:
            while data := stream.read(BLOCK_BYTES):
                if b"\0" in data:
                    source.refuse(
                        "is no text: it holds zero bytes; give plain UTF-8 text, as it is or packed with gzip"
                    )
                yield data
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        what = "ends too early" if isinstance(error, EOFError) else "is damaged"
        source.refuse(f"is packed with gzip and {what}; get it once more (gzip -t tells whether it is whole)")
    except OSError as error:
        source.refuse(f"cannot be read: {str(error.strerror or error).lower()}")


def _unpacked(source: Source, file: io.BufferedReader) -> gzip.GzipFile | io.BufferedReader:
    begin = file.peek(_MARK_BYTES)[:_MARK_BYTES]
    for mark, how in _PACKED.items():
        if begin.startswith(mark):
            source.refuse(f"is packed with {how}; unpack it, or pack it with gzip")
    return gzip.GzipFile(fileobj=file) if begin.startswith(_GZIP) else file


def _decoded(source: Source, data: bytes, first_line: int) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        source.refuse("is not UTF-8 text; save the file as UTF-8", line=first_line + data[: error.start].count(b"\n"))
