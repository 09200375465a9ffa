// format/event.h
//
// Event: one event of a recording, in memory, with the fields of all kinds. The file stores events
// as columns (proto/gmt.proto, Events), the event log as JSON objects
// (interop/event_log/event_log.h). Both represent the same events one to one. docs/format.md has
// the table of kinds, fields and the questions that need them.
//
// Ids (heap, api, name, action, domain, dtype, shape: strings; stack, forward_stack: stacks) are
// those of the recording that the event belongs to; look them up in its Definitions
// (format/definitions.h). 0 is "none".
//
// Thread safety: plain values.

#ifndef GMT_FORMAT_EVENT_H_
#define GMT_FORMAT_EVENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "format/kinds.h"
#include "format/messages_fwd.h"

namespace gmt::format {

// Which optional fields an event has. A field without its bit is unknown, which differs from 0. A
// recorded event has at least kHasTime and kHasThread. Strings and stacks have no bit: id 0 is
// "none". These are bits of Events.present in the file: never renumber them.
enum Present : uint64_t {
  kHasThread = 1u << 0,
  kHasDevice = 1u << 1,
  kHasContext = 1u << 2,
  kHasSize = 1u << 3,
  kHasStream = 1u << 4,
  kHasDuration = 1u << 5,
  kHasResult = 1u << 6,
  kHasRequested = 1u << 7,
  kHasPool = 1u << 8,
  kHasTotalAllocated = 1u << 9,
  kHasHandle = 1u << 10,
  kHasOffset = 1u << 11,
  kHasIndex = 1u << 12,
  kHasObject = 1u << 13,
  kHasPriority = 1u << 14,
  kHasFlags = 1u << 15,
  kHasRange = 1u << 16,
  kHasColor = 1u << 17,
  kHasAddress = 1u << 18,
  kHasTime = 1u << 19,
  kHasValue = 1u << 20,
  kHasTotalReserved = 1u << 21,
  kHasTotals = kHasTotalAllocated | kHasTotalReserved,
};

// Bits of Event::flags of activities.
enum ActivityFlags : uint32_t {
  // For event_record and sync: a framework's caching allocator made the call to learn when other
  // streams finish with a block; `value` is the return address of the call.
  kCalledByAllocator = 1,
  kSeenByCupti = 2,
  kInsideCall = 4,    // made inside a call that has its own event and includes this call's duration
  kNonBlocking = 16,  // of a new stream: it does not synchronize with the legacy default stream
};

// What an allocation is used for, as reported by PyTorch. Bits of Event::roles and, in the file, of
// Roles.roles: never renumber them.
enum Role : uint32_t {
  kRoleParameter = 1u << 0,
  kRoleGradient = 1u << 1,
  kRoleSaved = 1u << 2,  // saved by an autograd node for the backward pass
  // A parameter reachable from an autograd graph: a backward pass computes its gradient.
  kRoleExpectsGradient = 1u << 3,
};

// The column groups that hold the fields of an event (proto/gmt.proto). A kind of a later version
// is kOther.
enum class Family {
  kAcquisition,
  kReturn,
  kActivity,
  kNote,
  kRole,
  kSample,
  kSnapshot,
  kGap,
  kOther
};
Family FamilyOf(Kind kind);

struct Event {
  Kind kind = KIND_UNSPECIFIED;
  uint64_t present = 0;  // set of Present
  int64_t t_ns = 0;      // since the start of the session
  uint32_t thread = 0;   // tid

  // Acquisitions and returns.
  uint32_t heap = 0;  // string
  Memory memory = MEMORY_UNSPECIFIED;
  uint32_t device = 0;
  uint32_t context = 0;
  uint64_t address = 0;  // an address or a handle, depending on `kind` and `memory`
  uint64_t size = 0;     // bytes
  uint32_t stack = 0;
  uint64_t stream = 0;  // raw handle
  uint32_t api = 0;     // string
  uint64_t duration_ns = 0;
  uint32_t result = 0;     // CUDA error code
  uint64_t requested = 0;  // requested bytes, if `size` is rounded
  uint64_t pool = 0;
  uint32_t forward_stack = 0;
  uint64_t total_allocated = 0;
  uint64_t total_reserved = 0;
  uint64_t handle = 0;
  uint64_t offset = 0;
  uint32_t flags = 0;
  uint32_t name = 0;   // string; also for activities and notes
  uint32_t scope = 0;  // string
  // The tensor that the memory was allocated for, as reported by PyTorch.
  uint32_t dtype = 0;  // string: "float32"
  // String: "[8, 1024, 768]"; "[2, 3, 4, 5, 6, ...]" for more than 5 dimensions.
  uint32_t shape = 0;

  // Set of Role. For a ROLE event: the complete new set; forward_stack is where the autograd node
  // was created that saves the memory from then on (0: no further node does). For an acquisition
  // or a live allocation: the known roles; 0: none is known.
  uint32_t roles = 0;

  // Activities.
  uint64_t object = 0;
  uint32_t action = 0;   // string
  int32_t priority = 0;  // of a stream; lower values are more urgent
  uint64_t value = 0;

  // Notes.
  uint32_t domain = 0;  // string
  uint32_t text = 0;    // string
  uint64_t index = 0;
  uint64_t range = 0;
  uint32_t color = 0;

  // Samples, snapshots, gaps and unknown kinds: index into the list of that family in the
  // EventBatch that carries the event.
  uint32_t detail = 0;

  bool has(Present field) const { return (present & field) != 0; }

  bool operator==(const Event&) const = default;
};

// Whether reading fills in fields of frees and ROLE events from the allocation.
enum class Returns {
  kAsRecorded,  // no
  kCompleted,   // yes: heap, memory, device, context, address, size, stream and pool of frees;
                // heap, memory, device, address and size of ROLE events
};

// Events in order, with the details that do not fit into a row.
struct EventBatch {
  EventBatch();
  ~EventBatch();
  EventBatch(const EventBatch&);
  EventBatch(EventBatch&&) noexcept;
  EventBatch& operator=(const EventBatch&);
  EventBatch& operator=(EventBatch&&) noexcept;

  std::vector<Event> events;
  std::vector<Sample> samples;
  std::vector<SnapshotTaken> snapshots;
  std::vector<Gap> gaps;
  std::vector<std::string> others;

  void Clear();
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_EVENT_H_
