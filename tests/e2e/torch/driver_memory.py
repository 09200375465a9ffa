"""Replays driver memory from the lines of `gpumemtrace cat --json`, in the simple, slow way.

A *segment* is driver memory that has held a block: an allocation, or all that is mapped into a
reservation. No line says which driver memory belongs to the caching allocator; it is known when the
first block is in it.
"""

from address_map import AddressMap


class Difference(Exception):
    """A difference between the recording and PyTorch, in words."""


class Piece:
    """An allocation of the driver, or a reservation with what is mapped into it."""

    def __init__(self, line, reserved):
        self.address, self.size = line["address"], line["size"]
        self.device = line.get("device")
        self.mapped = {} if reserved else None  # address -> (size, device)
        self.is_segment = False
        self.lines = []  # (index of the line, "segment_..." action, address, size, device)

    def bytes_of(self, device):
        if self.mapped is None:
            return self.size if self.device == device else 0
        return sum(size for size, on in self.mapped.values() if on == device)

    def ranges(self):
        """Returns (device, address, size) of each contiguous range of memory, in order."""
        if self.mapped is None:
            return [(self.device, self.address, self.size)]
        ranges = []
        for address, (size, device) in sorted(self.mapped.items()):
            if ranges and ranges[-1][1] + ranges[-1][2] == address and ranges[-1][0] == device:
                ranges[-1] = (device, ranges[-1][1], ranges[-1][2] + size)
            else:
                ranges.append((device, address, size))
        return ranges


class DriverMemory:
    """All existing pieces, by address. Pools and managed memory never hold blocks."""

    def __init__(self):
        self.pieces = AddressMap()
        self.being_freed = {}  # (address, thread) -> piece, until the result is known
        self.was_segment = []  # pieces that are gone

    def add(self, line, reserved=False):
        piece = Piece(line, reserved)
        there = self.pieces.overlapping(piece.address, piece.size)
        if there:
            raise Difference(f"the driver returns {piece.address:#x} twice")
        self.pieces.add(piece)
        return piece

    def remove(self, line):
        piece = self.pieces.pop(line["address"])
        if piece is None:
            return None  # memory that is not tracked here
        if piece.is_segment:
            self.was_segment.append(piece)
        self.being_freed[(line["address"], line["thread"])] = piece
        return piece

    def put_back(self, line):
        """Undoes the free of this address, which has failed. Returns the piece."""
        piece = self.being_freed.pop((line["address"], line["thread"]), None)
        if piece is None:
            return None
        self.pieces.add(piece)
        if piece.is_segment:
            self.was_segment.remove(piece)
            piece.lines.pop()
        return piece

    def holding(self, address, size):
        """Returns the piece that contains all of the bytes, or None."""
        piece = self.pieces.at(address)
        if piece is None or address + size > piece.address + piece.size:
            return None
        if piece.mapped is None:
            return piece
        inside = any(a <= address and address + size <= a + n for _, a, n in piece.ranges())
        return piece if inside else None

    def map(self, line):
        piece = self._reservation(line["address"])
        if piece:
            piece.mapped[line["address"]] = (line["size"], line["device"])
        return piece

    def unmap(self, line):
        """Returns the piece, and what was unmapped from it: (address, size, device)."""
        piece = self._reservation(line["address"])
        if piece is None:
            return None, []
        end = line["address"] + line["size"]
        gone = [a for a in piece.mapped if line["address"] <= a < end]
        return piece, [(a, *piece.mapped.pop(a)) for a in sorted(gone)]

    def segments(self):
        return [piece for piece in self.pieces if piece.is_segment]

    def all_segments(self):
        """Returns all segments, including those that are gone."""
        return self.was_segment + self.segments()

    def _reservation(self, address):
        piece = self.pieces.at(address)
        return piece if piece and piece.mapped is not None else None
