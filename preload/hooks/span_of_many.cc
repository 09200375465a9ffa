#include "preload/hooks/span_of_many.h"

#include <string.h>
#include <sys/mman.h>

#include "preload/base/clock.h"
#include "preload/record/driver_query.h"
#include "preload/record/record_stack.h"

namespace gmt::preload {
namespace {

// Returns the kind of the call that would have ended it individually.
Kind ReturnOf(Kind acquisition) {
  switch (acquisition) {
    case Kind::kRegister:
      return Kind::kUnregister;
    case Kind::kImport:
      return Kind::kUnimport;
    default:
      return Kind::kFree;
  }
}

session::Record PartRecord(const session::Record& call, const EndedParts::Part& part) {
  session::Record r = call;
  r.kind = part.kind;
  r.space = part.space;
  r.value = part.value;
  r.size = part.live.size;
  r.memory = part.live.memory;
  r.device = part.live.device;
  r.context = part.live.context;
  return r;
}

void FinishParts(Process* p, const EndedParts& parts, const session::Record& call,
                 uint64_t duration_ns, uint32_t result) {
  for (uint64_t i = 0; i < parts.kept(); ++i) {
    const EndedParts::Part& part = parts[i];
    CommitReturnDone(p, PartRecord(call, part), duration_ns, result,
                     part.known ? &part.live : nullptr);
  }
  for (uint64_t i = parts.kept(); result != 0 && i < parts.size(); ++i)
    p->Count(session::kLiveFull);
}

}  // namespace

EndedParts::~EndedParts() {
  if (parts_ != inline_) munmap(parts_, capacity_ * sizeof(Part));
}

bool EndedParts::Grow() {
  const uint64_t capacity = capacity_ * 4;
  void* memory = mmap(nullptr, capacity * sizeof(Part), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  memcpy(memory, static_cast<const void*>(parts_), size_ * sizeof(Part));
  if (parts_ != inline_) munmap(parts_, capacity_ * sizeof(Part));
  parts_ = static_cast<Part*>(memory);
  capacity_ = capacity;
  return true;
}

void EndedParts::Add(const Part& part) {
  if (size_ < capacity_ || (size_ == capacity_ && Grow())) parts_[size_] = part;
  ++size_;
}

Process* ReturnOfManySpan::Wanted(const ReturnOfMany& what) {
  Process* p = Process::IfRecordingCalls();
  return p != nullptr && p->Records(what.memory) ? p : nullptr;
}

ReturnOfManySpan::ReturnOfManySpan(Process* process, ApiId api, const ReturnOfMany& what)
    : process_(process), nesting_(what.kind) {
  const KeepErrno keep;
  record_.space = what.space;
  record_.api = api;
  record_.thread = ThreadId(process->identity);
  if (WantsStackOfFree(*process, what.memory)) record_.stack = RecordStack(process);
  record_.time_ns = NowNs();
  for (uint64_t i = 0; i < what.count; ++i) End(what, what.list[i], 0);
  for (uint64_t at = what.start; at - what.start < what.size;) {
    const uint64_t ended = End(what, at, what.size - (at - what.start));
    if (ended == 0) break;
    at += ended;
  }
}

// Returns its size; 0 if nothing is known to begin there.
uint64_t ReturnOfManySpan::End(const ReturnOfMany& what, uint64_t value, uint64_t size) {
  session::Record r = record_;
  r.kind = what.kind;
  r.memory = what.memory;
  r.value = value;
  r.size = size;
  EndedParts::Part part = {what.kind, what.space, value, false, {}};
  part.known = CommitReturn(process_, &r, &part.live);
  if (!part.known) {
    part.live.size = r.size;
    part.live.memory = r.memory;
  }
  parts_.Add(part);
  return part.known ? part.live.size : 0;
}

void ReturnOfManySpan::Finish(uint32_t result) {
  const KeepErrno keep;
  const uint64_t begin_ns = record_.time_ns;
  record_.time_ns = NowNs();
  FinishParts(process_, parts_, record_, record_.time_ns - begin_ns, result);
}

Process* ContextEndSpan::Wanted(const ContextEnd& what) {
  const KeepErrno keep;
  Process* p = Process::IfRecordingCalls();
  if (p == nullptr || what.which != ContextEnd::Which::kPrimaryOfThisThread) return p;
  return CurrentDevice() == session::kNoDevice ? nullptr : p;
}

ContextEndSpan::ContextEndSpan(Process* process, ApiId api, const ContextEnd& what)
    : process_(process), what_(what), device_(what.device), nesting_(Kind::kContextReset) {
  const KeepErrno keep;
  record_.kind = Kind::kContextReset;
  record_.api = api;
  record_.thread = ThreadId(process->identity);
  record_.time_ns = NowNs();
  record_.value = what.context;
  if (what.which == ContextEnd::Which::kPrimaryOfThisThread) {
    const uint8_t device = CurrentDevice();
    device_ = device == session::kNoDevice ? -1 : device;
  }
  if (what.which != ContextEnd::Which::kHandle && device_ >= 0)
    record_.value = PrimaryContext(device_);
  if (record_.value != 0) record_.context = process->contexts.Find(record_.value).number;
  tail_ = process->map.control().tail.load(std::memory_order_acquire);
  if (!what.if_last) FreeContents(~uint64_t{0});
}

void ContextEndSpan::FreeContents(uint64_t before_ticket) {
  if (record_.context == 0) return;
  process_->live.Scan([&](Space space, uint64_t value, const session::LiveValue& live) {
    if (live.context != record_.context || live.ticket >= before_ticket) return;
    EndedParts::Part part = {ReturnOf(live.kind), space, value, true, live};
    session::Record r = PartRecord(record_, part);
    r.context = 0;  // completed from the entry
    if (CommitReturn(process_, &r, &part.live)) parts_.Add(part);
  });
}

void ContextEndSpan::Finish(uint32_t result) {
  const KeepErrno keep;
  if (record_.context == 0) return;
  bool ended = result == 0;
  if (what_.if_last) {
    // Only now is it known whether that was the last reference. Memory that another thread has
    // allocated since the call began is in a context which that thread created.
    ended = ended && !PrimaryContextIsActive(device_);
    if (ended) FreeContents(tail_);
  }
  const uint64_t begin_ns = record_.time_ns;
  record_.time_ns = NowNs();
  FinishParts(process_, parts_, record_, record_.time_ns - begin_ns, result);
  if (!ended) return;
  process_->contexts.End(record_.context);
  CommitAlone(process_, record_);
}

}  // namespace gmt::preload
