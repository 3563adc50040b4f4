"""Text files, plain or compressed, in blocks of whole lines; other files are rejected."""

import bz2
import gzip
import io
import lzma
import os
import re
import zlib
from dataclasses import dataclass

BLOCK_BYTES = 1 << 18  # the buffer must fit in cache and be small compared with the data

_BZIP2, _XZ = b"BZh", b"\xfd7zXZ\x00"
_COMPRESSED = {
    b"\x1f\x8b": gzip.open,
    _BZIP2: lambda file: _Streams(file, bz2.BZ2Decompressor, _BZIP2),
    _XZ: lambda file: _Streams(file, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), _XZ, padding=4),
}
_REFUSED = {
    b"PK\x03\x04": "a zip archive; unpack it and name the file inside",
    b"Rar!": "a rar archive; unpack it and name the file inside",
    b"7z\xbc\xaf": "a 7z archive; unpack it and name the file inside",
    b"\x28\xb5\x2f\xfd": "zstd data; decompress it first (plain, .gz, .bz2 and .xz are read)",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, OSError)
# Tables of numbers shrink to a third or a tenth, tables of mostly zeros up to 200 times; bombs shrink 1,000 times and more.
_MOST_EXPANDED, _SMALL = 500, 2**26
_UTF8_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Block:
    """Whole lines of a file; the buffer is used again for the next block.

    Attributes
    ----------
    text : bytearray
        The lines are its first `size` bytes, which end with a newline.
    size : int
    first_line : int
        Number of the first line, counted from 1.
    cut_short : bool
        Whether the file ended without a newline, which was then added.
    read : int
        Bytes of the file, before decompression, that have been read so far.
    """

    text: bytearray
    size: int
    first_line: int
    cut_short: bool
    read: int

    def line_of(self, position):
        """Return the line number of a byte of the block."""
        return self.first_line + self.text.count(b"\n", 0, position)


def read_blocks(path):
    """Yield the lines of a file block by block.

    Parameters
    ----------
    path : path-like
        Compression is recognised by content, not by name.

    Yields
    ------
    Block

    Raises
    ------
    ValueError
        If the file is an archive, UTF-16, binary, or compressed data that is damaged or truncated.
    """
    with open(path, "rb") as file:
        if not file.seekable():
            raise ValueError(f"{os.fspath(path)} is a pipe; write its content to a file first.")
        start = file.read(8)
        file.seek(0)
        for magic, what in _REFUSED.items():
            if start.startswith(magic):
                raise ValueError(f"{os.fspath(path)} is {what}.")
        with unpacked(file) as stream:
            yield from _whole_lines(path, stream, file)


def unpacked(file):
    """Return a stream of the decompressed content of a file open at its start, or the file if it is not compressed.

    Reading raises one of `DAMAGED` if the compressed data is damaged or truncated, and a ValueError if they expand too much.
    """
    start = file.read(8)
    file.seek(0)
    unpack = next((opener for magic, opener in _COMPRESSED.items() if start.startswith(magic)), None)
    return file if unpack is None else in_proportion(unpack(file), file)


def in_proportion(stream, file):
    """Return a buffered stream of the same content, decompressed from `file`, that raises where it expands too much.

    A file of a few megabytes that fills the memory is made for that purpose. Reads fill the whole buffer, as decompressors do
    not: a long line would otherwise be copied for each small piece.
    """
    return io.BufferedReader(_InProportion(stream, file), BLOCK_BYTES)


class _InProportion(io.RawIOBase):
    def __init__(self, stream, file):
        self._stream, self._file, self._n_bytes = stream, file, 0

    def readable(self):
        """Return True."""
        return True

    def readinto(self, buffer):
        """Fill the buffer, perhaps in part; return the number of bytes."""
        count = self._stream.readinto(buffer)
        self._n_bytes += count
        if self._n_bytes > max(_SMALL, _MOST_EXPANDED * self._file.tell()):
            raise ValueError(
                f"{self._file.name} expands to over {self._n_bytes / 1e6:,.0f} MB, over {_MOST_EXPANDED} times its size, "
                "as files do that are made to fill the memory. If it is right, decompress it first."
            )
        return count


class _Streams(io.RawIOBase):
    """The text of compressed streams that follow one another, as parallel compressors and ``cat`` write them.

    ``bz2.open`` and ``lzma.open`` ignore whatever follows the first stream and is not a valid stream, and with it all rows of a
    later stream that is damaged at its start. Here it is an error, as in ``gzip.open``.

    Parameters
    ----------
    file : binary file
    decompressor : callable
        Creates the decompressor of one stream.
    magic : bytes
        Start of a stream.
    padding : int, default 0
        Zero bytes may follow a stream in multiples of this number: 4 in the xz format, 0 for none.
    """

    def __init__(self, file, decompressor, magic, padding=0):
        self._file, self._new, self._magic, self._padding = file, decompressor, magic, padding
        self._stream, self._ahead = decompressor(), b""

    def readable(self):
        """Return True."""
        return True

    def readinto(self, buffer):
        """Fill the buffer with text; return the number of bytes, 0 at the end of the last stream."""
        while True:
            if self._stream.eof and not self._next_stream():
                return 0
            found = self._ahead
            if not found and self._stream.needs_input:
                found = self._file.read(io.DEFAULT_BUFFER_SIZE)
                if not found:
                    raise EOFError("the compressed data end before the end of their stream")
            self._ahead = b""
            text = self._stream.decompress(found, len(buffer))
            if text:
                buffer[: len(text)] = text
                return len(text)

    def _next_stream(self):
        """Start the stream after the one that has ended; return False at the end of the file."""
        after = self._stream.unused_data
        zeros = 0
        while True:
            padding = len(after) - len(after.lstrip(b"\0")) if self._padding else 0
            zeros, after = zeros + padding, after[padding:]
            more = self._file.read(io.DEFAULT_BUFFER_SIZE) if len(after) < len(self._magic) else b""
            if not more:
                break
            after += more
        if zeros and zeros % self._padding:
            raise EOFError(f"{zeros} zero bytes follow a stream; the format allows multiples of {self._padding}")
        if after and not after.startswith(self._magic):
            raise EOFError(f"{after[:8]!r} follows a stream, which is not the start of another")
        if after:
            self._stream, self._ahead = self._new(), after
        return bool(after)


def _whole_lines(path, stream, file):
    text = bytearray(BLOCK_BYTES + 1)  # one more for the newline that a last line may lack
    kept, first_line = 0, 1
    while count := _read_into(path, stream, text, kept, first_line):
        filled = kept + count
        if first_line == 1 and kept == 0 and text.startswith(_UTF8_MARK):
            text[:3] = b"   "
        zero = text.find(b"\0", kept, filled)
        if zero >= 0:
            line = first_line + text.count(b"\n", 0, zero)
            raise ValueError(
                f"{os.fspath(path)}:{line}: found a zero byte, expected text. The file is binary, or UTF-16 (save it as UTF-8)."
            )
        size = text.rfind(b"\n", kept, filled) + 1
        if size:
            _check_returns(path, text, size, first_line)
            yield Block(text, size, first_line, False, file.tell())
            first_line += text.count(b"\n", 0, size)
        elif filled == len(text) - 1:
            text = text + bytearray(len(text))  # a line longer than a block
            kept = filled
            continue
        kept = filled - size
        text[:kept] = text[size:filled]
    if kept:
        text[kept] = 10
        _check_returns(path, text, kept + 1, first_line)
        yield Block(text, kept + 1, first_line, True, file.tell())


def _check_returns(path, text, size, first_line):
    """Raise if returns end lines: a comment would include all lines that follow."""
    if text.find(b"\r", 0, size) >= 0 and text.count(b"\r", 0, size) != text.count(b"\r\n", 0, size):
        line = first_line + text.count(b"\n", 0, re.search(rb"\r(?!\n)", text).start())
        raise ValueError(
            f"{os.fspath(path)}:{line}: found a return without a newline, expected lines that end with a "
            "newline or with return and newline. Convert the line ends."
        )


def _read_into(path, stream, text, start, line):
    """Fill `text` from `start` on; return the number of bytes read, 0 at the end."""
    with memoryview(text) as view, view[start:-1] as free:
        try:
            return stream.readinto(free)
        except DAMAGED as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk, not the data
            raise ValueError(
                f"{os.fspath(path)}:{line}: the compressed data is damaged or truncated somewhere after this "
                f"line ({error}); download the file again."
            ) from error
