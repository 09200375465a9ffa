"""Reads from an ELF library what the dynamic loader uses: the functions that it defines, and those that it calls and how.

Reads 64-bit little-endian files without using section headers, which a stripped library may lack. Functions are looked up
by prefix of the mangled name, so that a function whose signature changed is found under its new name.
"""

import mmap
import re
import struct

PT_LOAD, PT_DYNAMIC = 1, 2
(DT_NEEDED, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_STRSZ, DT_SONAME, DT_SYMBOLIC, DT_PLTRELSZ,
 DT_JMPREL, DT_FLAGS) = (1, 5, 6, 7, 8, 10, 14, 16, 2, 23, 30)
DF_SYMBOLIC = 2
RELOCATIONS = {1: "64", 6: "GLOB_DAT", 7: "JUMP_SLOT"}  # x86-64 relocations that reference a function
SYMBOL = struct.Struct("<IBBHQQ")
RELA = struct.Struct("<QQq")


class NotElf(Exception):
    """The file is not an x86-64 library, or is truncated."""


class Library:
    """A mapped library. Close it with close() or a `with` statement."""

    def __init__(self, path):
        with open(path, "rb") as file:
            try:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError as error:  # empty
                raise NotElf(f"{path}: {error}") from error
        try:
            self._read_headers(path)
        except struct.error as error:
            self.close()
            raise NotElf(f"{path}: truncated: {error}") from error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._data.close()

    def _read_headers(self, path):
        data = self._data
        if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != 62:
            raise NotElf(f"{path}: not an ELF file of x86-64")
        offset, = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        self._loads, dynamic = [], None
        for n in range(count):
            kind, _, at, address, _, in_file = struct.unpack_from("<IIQQQQ", data, offset + n * size)
            if kind == PT_LOAD:
                self._loads.append((address, at, in_file))
            elif kind == PT_DYNAMIC:
                dynamic = (at, in_file)
        if dynamic is None:
            raise NotElf(f"{path}: no dynamic section")
        self._tags = {}
        for tag, value in struct.iter_unpack("<QQ", self._bytes(*dynamic)):
            if tag == 0:
                break
            self._tags.setdefault(tag, []).append(value)
        self._names = self._piece(DT_STRTAB, self._tag(DT_STRSZ))

    def _tag(self, tag, otherwise=0):
        return self._tags.get(tag, [otherwise])[0]

    def _offset(self, address):
        for start, at, size in self._loads:
            if start <= address < start + size:
                return at + address - start
        raise NotElf(f"address {address:#x} is in no segment")

    def _piece(self, tag, size):
        if not size:
            return b""
        return self._bytes(self._offset(self._tag(tag)), size)

    def _bytes(self, at, size):
        found = self._data[at:at + size]
        if len(found) != size:
            raise NotElf(f"truncated: {size} bytes at {at} are incomplete")
        return found

    def _name(self, offset):
        return self._names[offset:self._names.index(b"\0", offset)].decode()

    @property
    def soname(self):
        return self._name(self._tag(DT_SONAME)) if DT_SONAME in self._tags else ""

    @property
    def needed(self):
        return [self._name(offset) for offset in self._tags.get(DT_NEEDED, [])]

    @property
    def symbolic(self):
        """Whether the library prefers its own functions to those of libraries loaded before it."""
        return DT_SYMBOLIC in self._tags or bool(self._tag(DT_FLAGS) & DF_SYMBOLIC)

    def find(self, prefixes):
        """Returns {mangled name: {"defined": bool, "called": sorted kinds of relocation}} for every symbol whose
        name begins with one of `prefixes`. An undefined symbol without references is included, with no kinds."""
        wanted = {}  # offset of a name -> name
        for prefix in prefixes:
            # Names may share their ends, so that one begins inside another.
            for match in re.finditer(re.escape(prefix.encode()) + rb"[^\0]*(?=\0)", self._names):
                wanted[match.start()] = match.group().decode()
        found, numbers = {}, {}
        if not wanted:
            return found
        relocations = self._relocations()
        # The number of symbols is not stored; it follows from the hash tables or the highest
        # number in use.
        for number, (name, info, other, section, _, _) in enumerate(self._symbols(relocations)):
            if name in wanted and info & 15 in (0, 1, 2):  # untyped, data, function
                entry = found.setdefault(wanted[name], {"defined": False, "called": set()})
                entry["defined"] |= section != 0 and other & 3 == 0
                numbers[number] = entry
        for _, info, _ in relocations:
            if info >> 32 in numbers and info & 0xffffffff in RELOCATIONS:
                numbers[info >> 32]["called"].add(RELOCATIONS[info & 0xffffffff])
        return {name: {"defined": e["defined"], "called": sorted(e["called"])} for name, e in found.items()}

    def _relocations(self):
        tables = self._piece(DT_JMPREL, self._tag(DT_PLTRELSZ)) + self._piece(DT_RELA, self._tag(DT_RELASZ))
        return list(RELA.iter_unpack(tables[:len(tables) // RELA.size * RELA.size]))

    def _symbols(self, relocations):
        count = self._symbol_count(relocations)
        return SYMBOL.iter_unpack(self._piece(DT_SYMTAB, count * SYMBOL.size))

    DT_HASH, DT_GNU_HASH = 4, 0x6ffffef5

    def _symbol_count(self, relocations):
        if self.DT_HASH in self._tags:
            return struct.unpack_from("<II", self._data, self._offset(self._tag(self.DT_HASH)))[1]
        count = 1 + max((info >> 32 for _, info, _ in relocations), default=0)
        if self.DT_GNU_HASH not in self._tags:
            return count
        at = self._offset(self._tag(self.DT_GNU_HASH))
        buckets, first, bloom, _ = struct.unpack_from("<IIII", self._data, at)
        at += 16 + bloom * 8
        last = max(struct.unpack_from(f"<{buckets}I", self._data, at), default=0)
        if last < first:
            return max(count, first)
        chain = at + buckets * 4 + (last - first) * 4
        while not struct.unpack_from("<I", self._data, chain)[0] & 1:  # until the end of the last bucket
            chain, last = chain + 4, last + 1
        return max(count, last + 1)
