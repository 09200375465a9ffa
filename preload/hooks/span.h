// preload/hooks/span.h
//
// A span is one hooked call that is being recorded. It is opened before the real function is called
// and finished with that function's result.
//
//   acquisition   open: stack, in-flight slot, clock
//                 finish: ticket, live table, ALLOC (or ALLOC_FAILED)
//   return        open: ticket, live table, FREE, ...
//                 finish: FREE_DONE with its duration; a failure undoes the FREE
//
// A free thus takes its ticket before the driver can hand the address out again, and an allocation
// takes it after the driver has handed the address out. The order of tickets is therefore a valid
// order of the calls (session/ring.h, R1).
//
// `errno` is preserved across everything a span does. Thread safety: a span belongs to the thread
// that opened it. Spans of calls that end many things: preload/hooks/span_of_many.h.

#ifndef GMT_PRELOAD_HOOKS_SPAN_H_
#define GMT_PRELOAD_HOOKS_SPAN_H_

#include "preload/base/thread_state.h"
#include "preload/process/process.h"
#include "preload/record/call_event.h"
#include "preload/record/record_event.h"

namespace gmt::preload {

class AcquisitionSpan {
 public:
  // Returns nullptr if the call is not to be recorded (heap disabled, or not recording).
  static Process* Wanted(const Acquisition& what);

  AcquisitionSpan(Process* process, ApiId api, const Acquisition& what);
  void Finish(uint32_t result);

 private:
  void Measure();

  Process* const process_;
  const Acquisition& what_;  // the caller's; outlives the span
  session::Record record_;
  session::InFlightSlot* in_flight_;
  uint64_t begin_ns_;
  const Nesting nesting_;
};

// Returning a physical handle, or another process's memory, that has further references drops one
// reference, without an event.
class ReturnSpan {
 public:
  static Process* Wanted(const Return& what);

  ReturnSpan(Process* process, ApiId api, const Return& what);
  void Finish(uint32_t result);

 private:
  Process* const process_;
  session::Record record_;
  session::LiveValue live_;  // what was freed
  bool known_ = false;
  bool dropped_ = false;  // a reference, not the thing
  session::InFlightSlot* in_flight_ = nullptr;
  const Nesting nesting_;
};

// Recorded after it has succeeded. For calls made by a caching allocator, the call site
// distinguishes the allocator's own events from those that its library records on behalf of others.
class ActivitySpan {
 public:
  static Process* Wanted(const Activity&) { return Process::IfRecordingCalls(); }

  ActivitySpan(Process* process, ApiId api, const Activity& what);
  void Finish(uint32_t result);

 private:
  void NoteContext();

  Process* const process_;
  const Activity what_;
  session::Record record_;
  uint64_t begin_ns_ = 0;
  const Nesting nesting_;
};

// A sample of the current device.
class MeasurementSpan {
 public:
  static Process* Wanted(const Measurement&) { return Process::IfRecordingCalls(); }

  MeasurementSpan(Process* process, ApiId api, const Measurement& what);
  void Finish(uint32_t result);

 private:
  Process* const process_;
  const Measurement what_;
  session::Record record_;
  const Nesting nesting_;
};

class ContextStartSpan {
 public:
  static Process* Wanted(const ContextStart&) { return Process::IfRecordingCalls(); }

  ContextStartSpan(Process* process, ApiId api, const ContextStart& what);
  void Finish(uint32_t result);

 private:
  Process* const process_;
  const ContextStart what_;
  session::Record record_;
  const Nesting nesting_;
};

// One more reference to a physical handle. While the handle is known there is no event, because a
// matching release then ends nothing. A handle that had been released while it was mapped comes
// back as an import.
class ReferenceSpan {
 public:
  static Process* Wanted(const Reference&) { return Process::IfRecordingCalls(); }

  ReferenceSpan(Process* process, ApiId api, const Reference& what);
  void Finish(uint32_t result);

 private:
  Process* const process_;
  const Reference what_;
  session::Record record_;
  const Nesting nesting_;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_HOOKS_SPAN_H_
