// preload/record/call_event.h
//
// What a hooked call does. preload/hooks/call_words.h has the functions by which
// preload/hooks/hook_table.inc describes it:
//
//   Acquisition     makes something live
//   Return          ends it
//   ReturnOfMany    ends everything in a range of addresses, or in a list
//   ContextStart, ContextEnd
//   Activity        is recorded, but changes nothing that is live
//   Measurement     reports how much memory of a device is free
//   Reference       takes a further reference to what is live
//   NodeAddition    adds a node to a graph, which may allocate or free
//   HandingOut      gives the program the address of a driver function
//
// They hold what is known before the call and where to read its results after it.

#ifndef GMT_PRELOAD_RECORD_CALL_EVENT_H_
#define GMT_PRELOAD_RECORD_CALL_EVENT_H_

#include <cuda.h>
#include <stdint.h>

#include "session/vocabulary.h"

namespace gmt::preload {

using session::Action;
using session::Kind;
using session::Memory;
using session::Space;

// A pointer, handle or stream as the number that identifies it.
template <typename T>
uint64_t Number(T value) {
  return (uint64_t)value;  // NOLINT: pointers and integers alike
}

// A result that the call stores in memory: a number of 4 or 8 bytes; nullptr if there is none.
struct Output {
  const void* at = nullptr;
  uint8_t bytes = 0;

  Output() = default;
  template <typename T>
  explicit Output(const T* out) : at(out), bytes(sizeof(T)) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  }
};

struct Acquisition {
  Kind kind;
  Space space;
  Memory memory;
  Output out = {};  // receives the address or handle; if empty, it is `value`
  uint64_t value = 0;
  uint64_t size = 0;     // requested size
  Output size_out = {};  // times `rows` is the size; if empty, the size is `size`
  uint64_t rows = 1;
  uint64_t stream = 0;  // stream; of a map: the physical handle
  uint8_t device = session::kNoDevice;
  bool measured = false;  // the call does not reveal its size; the driver is asked for it
                          // afterwards

  template <typename Stream>
  Acquisition On(Stream on) const {
    Acquisition a = *this;
    a.stream = Number(on);
    return a;
  }
  // For calls in which the driver chooses the pitch of rows.
  template <typename Pitch>
  Acquisition Rows(const Pitch* pitch, uint64_t count) const {
    Acquisition a = *this;
    a.size_out = Output(pitch);
    a.rows = count;
    return a;
  }
  Acquisition Measured() const {
    Acquisition a = *this;
    a.measured = true;
    return a;
  }
};

struct Return {
  Kind kind;
  Space space;
  Memory memory;  // kind of memory that is freed, if the live table does not know it
  uint64_t value = 0;
  uint64_t stream = 0;

  template <typename Stream>
  Return On(Stream on) const {
    Return r = *this;
    r.stream = Number(on);
    return r;
  }
};

struct ReturnOfMany {
  Kind kind;
  Space space;
  Memory memory;
  uint64_t start = 0;  // a range of addresses; or else
  uint64_t size = 0;
  const uint64_t* list = nullptr;  // handles
  uint64_t count = 0;
};

struct ContextStart {
  Output out;
  uint8_t device;
};

struct ContextEnd {
  enum class Which { kHandle, kPrimary, kPrimaryOfThisThread };
  Which which;
  uint64_t context = 0;  // kHandle
  int device = -1;       // kPrimary
  bool if_last = false;  // ends only if this was the last reference
};

struct Activity {
  Kind kind;
  Action action = Action::kNone;
  Output out = {};  // the object; if kind is kStream, the stream
  uint64_t object = 0;
  uint64_t amount = 0;
  uint64_t stream = 0;
  uint8_t flags = 0;  // session::ActivityFlags
  int16_t priority = 0;
  bool timed = false;            // record when it began, too
  bool waits = false;            // may take long: record its duration and stack
  const void* caller = nullptr;  // return address of the call, if a caching allocator may make it
};

struct Measurement {
  Output free, total;  // bytes
};

struct Reference {
  Output out;
};

struct NodeAddition {
  CUgraphNodeParams* parameters;
};

struct HandingOut {
  const char* name;
  void** function;
  unsigned version;  // of CUDA, as requested by the caller
  bool per_thread;   // the caller uses per-thread default streams
};

// 0, CU_STREAM_LEGACY (1) and CU_STREAM_PER_THREAD (2).
inline bool IsDefaultStream(uint64_t stream) { return stream <= 2; }

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_CALL_EVENT_H_
