// preload/record/call_event.h
//
// What a hooked call does; preload/hooks/call_words.h has the words in which preload/hooks/hook_table.inc says it:
//
//   Acquisition     makes something live
//   Return          ends it
//   ReturnOfMany    ends everything in a range of addresses, or in a list
//   ContextStart, ContextEnd
//   Activity        is told, and changes nothing that is live
//   Measurement     tells how much of a device is free
//   Reference       takes a further reference to what is live
//   NodeAddition    adds a node to a graph, which may allocate or free
//   HandingOut      tells the program where a driver function is
//
// They hold what is known before the call and where to look after it.

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

// What the call leaves somewhere: a number of 4 or 8 bytes, nullptr if there is none.
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
  Output out = {};  // the address or handle; where there is none, it is `value`
  uint64_t value = 0;
  uint64_t size = 0;     // of what is asked for
  Output size_out = {};  // times `rows`: the size; where there is none, it is `size`
  uint64_t rows = 1;
  uint64_t stream = 0;  // of a map: the physical handle
  uint8_t device = session::kNoDevice;
  bool measured = false;  // the call does not say how big it is; the driver does, later

  template <typename Stream>
  Acquisition On(Stream on) const {
    Acquisition a = *this;
    a.stream = Number(on);
    return a;
  }
  // The driver chooses how far rows are apart.
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
  Memory memory;  // of what is freed, where the live table does not know it
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
  uint64_t start = 0;  // a range of addresses, or
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
  bool if_last = false;  // it goes on living while others refer to it
};

struct Activity {
  Kind kind;
  Action action = Action::kNone;
  Output out = {};  // the object; of kStream the stream
  uint64_t object = 0;
  uint64_t amount = 0;
  uint64_t stream = 0;
  uint8_t flags = 0;  // session::ActivityFlags
  int16_t priority = 0;
  bool timed = false;            // when it began matters too
  bool waits = false;            // it may take long: its duration and its stack are worth something
  const void* caller = nullptr;  // where the call returns to, where a caching allocator may make it
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
  unsigned version;  // of CUDA, as the caller knows it
  bool per_thread;   // to a caller whose default stream is per thread
};

// 0, CU_STREAM_LEGACY (1) and CU_STREAM_PER_THREAD (2).
inline bool IsDefaultStream(uint64_t stream) { return stream <= 2; }

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_CALL_EVENT_H_
