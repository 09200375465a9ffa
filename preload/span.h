// preload/span.h
//
// A span is one hooked call that is being recorded: it is opened before the real function is called
// and finished with that function's result.
//
//   acquisition   open: stack, in-flight slot, clock        finish: ticket, live table, ALLOC (or
//   ALLOC_FAILED) return        open: ticket, live table, FREE, ...       finish: FREE_DONE with
//   duration; a failure undoes the FREE
//
// So a free takes its ticket before the driver can hand the address out again, and an allocation
// after the driver has handed it out: the order of tickets is an order of the calls
// (session/ring.h, R1).
//
// `errno` is kept across everything a span does. Thread safety: a span belongs to the thread that
// opened it.

#ifndef GMT_PRELOAD_SPAN_H_
#define GMT_PRELOAD_SPAN_H_

#include <errno.h>

#include "preload/call_event.h"
#include "preload/process.h"
#include "preload/thread_state.h"
#include "session/record.h"

namespace gmt::preload {

// Hooked functions by number: 1 + line in the hook table. 0: none.
using ApiId = uint16_t;

class KeepErrno {
 public:
  KeepErrno() : errno_(errno) {}
  ~KeepErrno() { errno = errno_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  const int errno_;
};

class AcquisitionSpan {
 public:
  // nullptr where the call is not to be recorded (nested, not this heap, not recording).
  static Process* Wanted(const Acquisition& what);

  AcquisitionSpan(Process* process, ApiId api, const Acquisition& what);
  void Finish(uint32_t result);

 private:
  Process* const process_;
  const Acquisition what_;
  session::Record record_;
  session::InFlightSlot* in_flight_;
  uint64_t begin_ns_;
  const Nesting nesting_;
};

class ReturnSpan {
 public:
  static Process* Wanted(const Return& what);

  ReturnSpan(Process* process, ApiId api, const Return& what);
  void Finish(uint32_t result);

 private:
  Process* const process_;
  session::Record record_;
  session::LiveValue live_;  // what was freed
  bool known_;
  session::InFlightSlot* in_flight_;
  const Nesting nesting_;
};

// One event for each entry of the live table that the range covers.
class RangeReturnSpan {
 public:
  static Process* Wanted(const RangeReturn& what);

  RangeReturnSpan(Process* process, ApiId api, const RangeReturn& what);
  void Finish(uint32_t result);

 private:
  // Entries that a failure brings back; further ones stay missing from the table, and are counted.
  static constexpr uint32_t kMaxParts = 32;

  struct Part {
    uint64_t value;
    session::LiveValue live;
  };

  Process* const process_;
  session::Record record_;
  Part parts_[kMaxParts];
  uint32_t part_count_ = 0;  // may exceed kMaxParts
  const Nesting nesting_;
};

inline AcquisitionSpan OpenSpan(Process* p, ApiId api, const Acquisition& what) {
  return {p, api, what};
}
inline ReturnSpan OpenSpan(Process* p, ApiId api, const Return& what) { return {p, api, what}; }
inline RangeReturnSpan OpenSpan(Process* p, ApiId api, const RangeReturn& what) {
  return {p, api, what};
}

// Calls `real` and records it as `what`.
template <typename Result, typename What, typename Real>
Result Trace(ApiId api, const What& what, Real real) {
  Process* process = decltype(OpenSpan(nullptr, api, what))::Wanted(what);
  if (process == nullptr) return real();
  auto span = OpenSpan(process, api, what);
  const Result result = real();
  span.Finish(static_cast<uint32_t>(result));
  return result;
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_SPAN_H_
