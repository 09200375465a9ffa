"""A caching allocator that writes its calls as an event log. It allocates segments from a driver with
limited memory and splits them into blocks; free neighbours are joined and reused. If the driver refuses
a request, cached segments are freed and the request is repeated once.

The rules are those of PyTorch's allocator (c10/cuda/CUDACachingAllocator.cpp, 2.11) as far as small
recordings need them: sizes are rounded to 512; blocks up to 1 MiB are in segments of 2 MiB, those below
10 MiB in segments of 20 MiB, larger ones in separate segments of their size rounded to 2 MiB; the
smallest free piece that fits is used.
"""

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SMALL, SMALL_SEGMENT, MIDDLE, MIDDLE_SEGMENT, LARGE_UNIT = MIB, 2 * MIB, 10 * MIB, 20 * MIB, 2 * MIB


class OutOfMemory(Exception):
    pass


class Log:
    """The lines of an event log. Time advances by `tick_ns` with each event; `thread` is the one that acts."""

    def __init__(self, total=80 * GIB, tick_ns=1_000_000, **header):
        self.lines, self.t_ns, self.tick_ns, self.thread, self.stacks = [], 0, tick_ns, 11, {}
        self.lines.append({"kind": "header", "schema": "gpumemtrace.events/1",
                           "start_unix_ns": 1_700_000_000_000_000_000, "pid": 41210, "argv": ["python", "train.py"],
                           "devices": [{"index": 0, "name": "NVIDIA H100 80GB HBM3", "total_bytes": total}],
                           "libraries": {"torch": "2.11.0", "python": "3.11.2"}} | header)

    def stack(self, *frames):
        """Returns the id of a stack. Frames are innermost first, each "function file:line" for Python, or
        "function" or "function @library" for native code."""
        if frames not in self.stacks:
            self.stacks[frames] = len(self.stacks) + 1
            self.lines.append({"kind": "stack", "id": self.stacks[frames], "frames": [self._frame(f) for f in frames]})
        return self.stacks[frames]

    @staticmethod
    def _frame(text):
        name, _, place = text.rpartition(" ")
        if place.startswith("@"):
            return {"function": name, "module": place[1:], "language": "c++"}
        if ":" in place and "::" not in place:
            file, line = place.split(":")
            return {"function": name, "file": file, "line": int(line), "language": "python"}
        return {"function": text, "language": "c++"}

    def add(self, kind, **keys):
        self.t_ns += self.tick_ns
        line = {"kind": kind, "t_ns": self.t_ns, "thread": self.thread} | keys
        self.lines.append({key: value for key, value in line.items() if value is not None})


class Allocator:
    """The driver of one device, and the caching allocator that uses it."""

    def __init__(self, log, capacity, limit=None, context=500 * MIB):
        self.log, self.driver_free, self.limit = log, capacity - context, limit
        self.next = 0x7F00_0000_0000
        self.segments = {}  # address -> (size, stream, is_small)
        self.pieces = {}  # address -> [size, segment, is_free]
        self.blocks = {}  # address -> size
        self.allocated = self.reserved = 0

    # ---- The driver

    def driver_alloc(self, size, stack, api="cudaMalloc", stream=None):
        if size > self.driver_free:
            self.log.add("alloc_failed", heap="driver", memory="device", device=0, size=size, stack=stack, api=api, result=2)
            return None
        address, self.next = self.next, self.next + size + LARGE_UNIT
        self.driver_free -= size
        self.log.add("alloc", heap="driver", memory="device", device=0, address=address, size=size, stack=stack, api=api,
                     stream=stream)
        return address

    def driver_free_memory(self, address, size):
        self.driver_free += size
        self.log.add("free", heap="driver", device=0, address=address, size=size, api="cudaFree")

    # ---- Blocks

    def alloc(self, requested, stack, stream=0, forward=None, **tensor):
        size = max(512, -(-requested // 512) * 512)
        piece = self._find(size, stream) or self._new_segment(size, stack, stream)
        if piece is None:
            self.log.add("alloc_failed", heap="pytorch", device=0, size=requested, stack=stack, stream=stream, result=2,
                         total_allocated=self.allocated, total_reserved=self.reserved, **tensor)
            raise OutOfMemory
        self._cut(piece, size)
        self.blocks[piece] = size
        self.allocated += size
        self.log.add("alloc", heap="pytorch", device=0, address=piece, size=size, requested=requested, stack=stack,
                     forward_stack=forward, stream=stream, total_allocated=self.allocated, total_reserved=self.reserved,
                     **tensor)
        return piece

    def free(self, address):
        self.free_later(address)
        self._reuse(address)

    def free_later(self, address):
        """Frees a block that another stream still uses: it is reused after `free_done`."""
        size = self.blocks.pop(address)
        self.allocated -= size
        self.log.add("free", heap="pytorch", device=0, address=address, size=size, total_allocated=self.allocated,
                     total_reserved=self.reserved)

    def free_done(self, address):
        self.log.add("free_done", heap="pytorch", device=0, address=address)
        self._reuse(address)

    def _reuse(self, address):
        self.pieces[address][2] = True
        self._join(address)

    def _find(self, size, stream):
        fitting = [(piece[0], address) for address, piece in self.pieces.items()
                   if piece[2] and piece[0] >= size and self.segments[piece[1]][1] == stream
                   and self.segments[piece[1]][2] == (size <= SMALL)]
        return min(fitting)[1] if fitting else None

    def _cut(self, address, size):
        piece = self.pieces[address]
        is_small = self.segments[piece[1]][2]
        if piece[0] - size >= (512 if is_small else SMALL + 1):
            self.pieces[address + size] = [piece[0] - size, piece[1], True]
            piece[0] = size
        piece[2] = False

    def _join(self, address):
        segment = self.pieces[address][1]
        inside = sorted(a for a, piece in self.pieces.items() if piece[1] == segment)
        for low, high in zip(inside, inside[1:]):
            if low not in self.pieces or not (self.pieces[low][2] and self.pieces[high][2]):
                continue
            self.pieces[high][0] += self.pieces[low][0]
            self.pieces[low] = self.pieces.pop(high)
            inside[inside.index(high)] = low
            self._join(low)
            return

    def _segment_size(self, size):
        if size <= SMALL:
            return SMALL_SEGMENT
        return MIDDLE_SEGMENT if size < MIDDLE else -(-size // LARGE_UNIT) * LARGE_UNIT

    def _new_segment(self, size, stack, stream):
        wanted = self._segment_size(size)
        may = self.limit is None or self.reserved + wanted <= self.limit
        address = self.driver_alloc(wanted, stack) if may else None
        if address is None:
            self.empty_cache()
            may = self.limit is None or self.reserved + wanted <= self.limit
            address = self.driver_alloc(wanted, stack) if may else None
        if address is None:
            return None
        self.reserved += wanted
        self.segments[address] = (wanted, stream, size <= SMALL)
        self.pieces[address] = [wanted, address, True]
        return address

    def empty_cache(self):
        for address, (size, _, _) in list(self.segments.items()):
            piece = self.pieces.get(address)
            if piece and piece[2] and piece[0] == size:
                del self.segments[address], self.pieces[address]
                self.reserved -= size
                self.driver_free_memory(address, size)
