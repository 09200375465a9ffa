#include "preload/span.h"

#include <string.h>

#include "preload/clock.h"
#include "preload/current_device.h"
#include "preload/note_modules.h"

namespace gmt::preload {
namespace {

constexpr uint32_t kOutOfMemory = 2;  // cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY

bool HeapWanted(const Process& p, Memory memory) {
  const bool host = memory == Memory::kPinned || memory == Memory::kRegistered;
  return (p.options.heaps & (host ? session::kHostHeap : session::kDriverHeap)) != 0;
}

uint32_t RecordStack(Process* p) {
  if (!p->capture) return 0;
  session::StackTable::Buffer stack;
  bool truncated;
  const uint32_t depth = p->capture.Capture(stack.frames, session::kMaxStackDepth, &truncated);
  const uint16_t flags = truncated ? session::kStackTruncated : 0;
  bool is_new;
  const session::ModuleLog modules = p->map.modules();
  uint32_t id = p->stacks.Intern(&stack, depth, flags, modules.generation(), &is_new);
  if (is_new &&
      NoteModules(*p, stack.frames, depth)) {  // the same addresses mean something else now
    id = p->stacks.Intern(&stack, depth, flags, modules.generation(), &is_new);
  }
  if (id == 0) p->Count(session::kStacksFull);
  return id;
}

session::LiveValue ToLive(const session::Record& r, uint64_t ticket) {
  return {.ticket = ticket,
          .size = r.size,
          .stream = r.stream,
          .time_ns = r.time_ns,
          .stack = r.stack,
          .forward_stack = r.forward_stack,
          .thread = r.thread,
          .kind = r.kind,
          .memory = r.memory,
          .device = r.device,
          .context = r.context,
          .api = r.api};
}

void InsertLive(Process* p, Space space, uint64_t value, const session::LiveValue& live) {
  switch (p->live.Insert(space, value, live)) {
    case session::LiveTable::Result::kDone:
      break;
    case session::LiveTable::Result::kFull:
      p->Count(session::kLiveFull);
      break;
    case session::LiveTable::Result::kUnrepresentable:
      p->Count(session::kUnrepresentable);
      break;
  }
}

session::InFlightSlot* BeginInFlight(Process* p, const session::Record& r) {
  session::InFlightSlot* slot = p->in_flight.Begin(r.thread, r.api, r.size, r.time_ns);
  if (slot == nullptr) {
    p->Count(session::kInFlightFull);
  } else {
    slot->stack.store(r.stack, std::memory_order_relaxed);
  }
  return slot;
}

void CommitAlone(Process* p, const session::Record& r) {
  const session::Words words = session::Pack(r);
  p->ring.Commit(p->ring.Reserve(), words);
}

// Takes one entry out of the live table and records that, before the driver does it.
bool RecordReturn(Process* p, session::Record* r, session::LiveValue* live) {
  const session::RingWriter::Reservation reservation = p->ring.Reserve();
  const bool known = p->live.Erase(r->space, r->value, live);
  if (known) {
    r->size = live->size;
    r->memory = live->memory;
    r->device = live->device;
    r->context = live->context;
  }
  p->ring.Commit(reservation, session::Pack(*r));
  return known;
}

// What the driver said to a return; a failure brings the entry back.
void RecordReturnDone(Process* p, session::Record r, uint64_t duration_ns, uint32_t result,
                      const session::LiveValue* live) {
  r.kind = Kind::kFreeDone;
  r.duration_ns = duration_ns;
  r.result = static_cast<uint16_t>(result);
  const session::Words words = session::Pack(r);
  const session::RingWriter::Reservation reservation = p->ring.Reserve();
  if (result != 0 && live != nullptr) {
    session::LiveValue again = *live;
    again.ticket = reservation.ticket;
    InsertLive(p, r.space, r.value, again);
  }
  p->ring.Commit(reservation, words);
}

}  // namespace

Process* AcquisitionSpan::Wanted(const Acquisition& what) {
  if (thread_state.depth != 0) return nullptr;
  const KeepErrno keep;
  Process* p = Process::StartRecording();
  return p != nullptr && HeapWanted(*p, what.memory) ? p : nullptr;
}

AcquisitionSpan::AcquisitionSpan(Process* process, ApiId api, const Acquisition& what)
    : process_(process), what_(what) {
  const KeepErrno keep;
  record_.kind = what.kind;
  record_.space = what.space;
  record_.memory = what.memory;
  record_.api = api;
  record_.size = what.size;
  record_.stream = what.stream;
  record_.device = what.device;
  record_.thread = ThreadId(process->identity);
  record_.stack = RecordStack(process);
  begin_ns_ = record_.time_ns = NowNs();
  in_flight_ = BeginInFlight(process, record_);
}

void AcquisitionSpan::Finish(uint32_t result) {
  const KeepErrno keep;
  record_.time_ns = NowNs();
  record_.duration_ns = record_.time_ns - begin_ns_;
  record_.result = static_cast<uint16_t>(result);
  session::InFlightTable::End(in_flight_);
  if (what_.memory == Memory::kVmm) {
    session::LiveValue physical;
    if (what_.kind == Kind::kMap &&
        process_->live.Find(Space::kPhysical, what_.stream, &physical)) {
      record_.device = physical.device;
    }
  } else if (what_.space == Space::kDevice && (result == 0 || result == kOutOfMemory)) {
    record_.device = CurrentDevice();
  }
  if (result != 0) {
    record_.kind = Kind::kAllocFailed;
    return CommitAlone(process_, record_);
  }
  record_.value = what_.value;
  if (what_.out != nullptr) memcpy(&record_.value, what_.out, sizeof(record_.value));
  const session::Words words = session::Pack(record_);
  const session::RingWriter::Reservation reservation = process_->ring.Reserve();
  InsertLive(process_, record_.space, record_.value, ToLive(record_, reservation.ticket));
  process_->ring.Commit(reservation, words);
}

// cudaFree(nullptr) is how programs initialise the runtime: no event.
Process* ReturnSpan::Wanted(const Return& what) {
  if (thread_state.depth != 0 || what.value == 0) return nullptr;
  Process* p = Process::IfRecording();
  return p != nullptr && HeapWanted(*p, what.memory) ? p : nullptr;
}

ReturnSpan::ReturnSpan(Process* process, ApiId api, const Return& what) : process_(process) {
  const KeepErrno keep;
  record_.kind = what.kind;
  record_.space = what.space;
  record_.memory = what.memory;
  record_.api = api;
  record_.value = what.value;
  record_.stream = what.stream;
  record_.thread = ThreadId(process->identity);
  if (process->options.free_stacks) record_.stack = RecordStack(process);
  record_.time_ns = NowNs();
  known_ = RecordReturn(process, &record_, &live_);
  in_flight_ = BeginInFlight(process, record_);
}

void ReturnSpan::Finish(uint32_t result) {
  const KeepErrno keep;
  session::InFlightTable::End(in_flight_);
  const uint64_t begin_ns = record_.time_ns;
  record_.time_ns = NowNs();
  RecordReturnDone(process_, record_, record_.time_ns - begin_ns, result,
                   known_ ? &live_ : nullptr);
}

Process* RangeReturnSpan::Wanted(const RangeReturn& what) {
  if (thread_state.depth != 0) return nullptr;
  Process* p = Process::IfRecording();
  return p != nullptr && HeapWanted(*p, what.memory) ? p : nullptr;
}

RangeReturnSpan::RangeReturnSpan(Process* process, ApiId api, const RangeReturn& what)
    : process_(process) {
  const KeepErrno keep;
  record_.kind = what.kind;
  record_.space = what.space;
  record_.memory = what.memory;
  record_.api = api;
  record_.thread = ThreadId(process->identity);
  if (process->options.free_stacks) record_.stack = RecordStack(process);
  record_.time_ns = NowNs();
  for (uint64_t at = what.start; at - what.start < what.size;) {
    Part part;
    record_.value = part.value = at;
    record_.size = what.size - (at - what.start);
    if (!RecordReturn(process, &record_, &part.live) || part.live.size == 0) break;
    at += part.live.size;
    if (part_count_ < kMaxParts) parts_[part_count_] = part;
    ++part_count_;
  }
}

void RangeReturnSpan::Finish(uint32_t result) {
  const KeepErrno keep;
  const uint64_t begin_ns = record_.time_ns;
  record_.time_ns = NowNs();
  for (uint32_t i = 0; i < part_count_; ++i) {
    if (i >= kMaxParts) {
      if (result != 0) process_->Count(session::kLiveFull);
      continue;
    }
    record_.value = parts_[i].value;
    record_.size = parts_[i].live.size;
    RecordReturnDone(process_, record_, record_.time_ns - begin_ns, result, &parts_[i].live);
  }
}

}  // namespace gmt::preload
