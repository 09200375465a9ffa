// format/kinds.h
//
// Kinds of events and of memory. The values are those of Events.Kind and Events.Memory in
// proto/gmt.proto and are stored in the columns of a file. Never renumber them. Add new values
// there too (format/event_columns.cc compares them).

#ifndef GMT_FORMAT_KINDS_H_
#define GMT_FORMAT_KINDS_H_

namespace gmt {

// Correspond one to one to the kinds of the event log (`gpumemtrace cat --json`). A file of a later
// version may contain other values.
enum Kind : int {
  KIND_UNSPECIFIED = 0,
  ALLOC = 1,
  FREE = 2,
  FREE_DONE = 3,
  ALLOC_FAILED = 4,
  RESERVE = 5,
  UNRESERVE = 6,
  CREATE = 7,
  RELEASE = 8,
  MAP = 9,
  UNMAP = 10,
  IMPORT = 11,
  UNIMPORT = 12,
  REGISTER = 13,
  UNREGISTER = 14,
  CONTEXT_CREATE = 15,
  CONTEXT_RESET = 16,
  STREAM = 17,
  EVENT_RECORD = 18,
  EVENT_WAIT = 19,
  SYNC = 20,
  MARK = 21,
  RANGE_BEGIN = 22,
  RANGE_END = 23,
  THREAD = 24,
  SAMPLE = 25,
  // "snapshot" in the event log; the live set itself is in a SNAPSHOT chunk.
  SNAPSHOT_TAKEN = 26,
  GAP = 27,
  OTHER_KIND = 28,  // "other": a kind unknown to this version, kept as text
  // Actions that change how much memory is held without being allocations.
  POOL_ACTION = 29,    // "pool": created, destroyed, trimmed, an attribute set
  GRAPH_ACTION = 30,   // "graph": captured, instantiated, launched, destroyed, its memory trimmed
  MODULE_ACTION = 31,  // "module": code loaded on the device or unloaded
  LIMIT_ACTION = 32,   // "limit": stack size, printf buffer, device heap, persisting cache
  // "allocator": of a framework's allocator: empty_cache, retry, settings, fraction.
  ALLOCATOR_ACTION = 33,
  COPY = 35,           // memory copied or set on a stream, as reported by CUPTI
  SOURCE_CHANGE = 36,  // "source": an event source became available or was lost
  DEVICE_NAME = 37,    // "device": a label that the program gave a device
  // A memory event reported by CUPTI in addition to the hooks; does not change the live set.
  WITNESS = 38,
  // The use of a live allocation changed; does not change the live set.
  ROLE = 39,
  STACK_LINE = 34,  // "stack": where an imported event log defined a stack; not an event
};

enum Memory : int {
  MEMORY_UNSPECIFIED = 0,
  DEVICE = 1,
  MANAGED = 2,
  PINNED = 3,      // page-locked host memory from the driver
  REGISTERED = 4,  // host memory that the program page-locked after allocating it
  POOL = 5,        // stream-ordered (cudaMallocAsync)
  VMM = 6,         // cuMemCreate, cuMemMap, cuMemAddressReserve
  ARRAY = 7,
  MIPMAPPED = 8,
  IPC = 9,
  EXTERNAL = 10,
  GRAPH = 11,  // graph memory nodes
  GRAPHICS = 12,
  MULTICAST = 13,
  BLOCK = 14,   // of a framework's allocator
  REGION = 15,  // NVTX memory region
};

}  // namespace gmt

#endif  // GMT_FORMAT_KINDS_H_
