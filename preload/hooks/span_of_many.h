// preload/hooks/span_of_many.h
//
// Spans of calls that end many things at once: unmapping a range, resetting a context. Each thing
// gets its FREE before the real call and its FREE_DONE after it, as if it had been freed alone, so
// that readers of the events need not know the contents of a range or context.

#ifndef GMT_PRELOAD_HOOKS_SPAN_OF_MANY_H_
#define GMT_PRELOAD_HOOKS_SPAN_OF_MANY_H_

#include "preload/base/thread_state.h"
#include "preload/process/process.h"
#include "preload/record/call_event.h"
#include "preload/record/record_event.h"

namespace gmt::preload {

// The things that were ended, in case the call fails and they are restored. Grows without using the
// heap. Things that do not fit cannot be restored and are then counted as kLiveFull.
class EndedParts {
 public:
  struct Part {
    Kind kind;
    Space space;
    uint64_t value;
    bool known;
    session::LiveValue live;
  };

  EndedParts() = default;
  ~EndedParts();
  EndedParts(const EndedParts&) = delete;
  EndedParts& operator=(const EndedParts&) = delete;

  void Add(const Part& part);
  uint64_t size() const { return size_; }
  uint64_t kept() const { return size_ < capacity_ ? size_ : capacity_; }
  const Part& operator[](uint64_t i) const { return parts_[i]; }

 private:
  static constexpr uint64_t kInline = 16;

  bool Grow();

  Part inline_[kInline];
  Part* parts_ = inline_;
  uint64_t capacity_ = kInline;
  uint64_t size_ = 0;  // may exceed capacity_
};

class ReturnOfManySpan {
 public:
  static Process* Wanted(const ReturnOfMany& what);

  ReturnOfManySpan(Process* process, ApiId api, const ReturnOfMany& what);
  void Finish(uint32_t result);

 private:
  uint64_t End(const ReturnOfMany& what, uint64_t value, uint64_t size);

  Process* const process_;
  session::Record record_;
  EndedParts parts_;
  const Nesting nesting_;
};

// A context that ends also ends everything allocated in it.
class ContextEndSpan {
 public:
  // Also returns nullptr for a runtime reset from a thread without a context: only the runtime
  // knows which device that concerns, and it calls the driver, whose function is hooked.
  static Process* Wanted(const ContextEnd& what);

  ContextEndSpan(Process* process, ApiId api, const ContextEnd& what);
  void Finish(uint32_t result);

 private:
  void FreeContents(uint64_t before_ticket);

  Process* const process_;
  const ContextEnd what_;
  int device_;
  session::Record record_;
  uint64_t tail_;  // of the ring when the call began
  EndedParts parts_;
  const Nesting nesting_;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_HOOKS_SPAN_OF_MANY_H_
