#include "preload/nvtx/record_nvtx.h"

#include <unistd.h>

#include "preload/base/clock.h"
#include "preload/base/thread_state.h"
#include "preload/record/record_event.h"

namespace gmt::preload {
namespace {

using session::Action;
using session::Kind;

session::Record NewNote(Process* p, Kind kind, NvtxName* domain) {
  session::Record r;
  r.kind = kind;
  r.thread = ThreadId(p->identity);
  r.stream = TextId(p, domain);
  return r;
}

void Commit(Process* p, session::Record* r) {
  r->time_ns = NowNs();
  CommitAlone(p, *r);
}

bool HasRoomFor(Process* p, std::string_view text) {
  const auto size = static_cast<uint32_t>(text.size());
  if (p->nvtx.names.load(std::memory_order_relaxed) >= kNvtxNames ||
      p->nvtx.name_bytes.load(std::memory_order_relaxed) + size > kNvtxNameBytes) {
    return false;
  }
  p->nvtx.names.fetch_add(1, std::memory_order_relaxed);
  p->nvtx.name_bytes.fetch_add(size, std::memory_order_relaxed);
  return true;
}

session::Record HeapAction(Process* p, Action action, const NvtxHeap& heap) {
  session::Record r;
  r.kind = Kind::kPool;
  r.memory = session::Memory::kRegion;
  r.action = action;
  r.thread = ThreadId(p->identity);
  r.value = heap.handle;
  r.size = heap.size;
  r.stream = TextId(p, heap.name);
  return r;
}

}  // namespace

uint32_t TextId(Process* p, std::string_view text) {
  if (text.empty()) return 0;
  const session::TextTable texts = p->map.texts();
  uint32_t id = texts.Find(text);
  if (id == 0 && HasRoomFor(p, text)) id = texts.Intern(text);
  if (id == 0) p->Count(session::kTextsFull);
  return id;
}

uint32_t TextId(Process* p, NvtxName* name) {
  if (name == nullptr) return 0;
  const uint64_t known = name->known_as.load(std::memory_order_relaxed);
  if (known >> 32 == p->identity) [[likely]]
    return static_cast<uint32_t>(known);
  const NvtxNames& names = NvtxTables::IfMapped()->names;
  if (names.IsRefused(name)) p->Count(session::kTextsFull);
  const uint32_t id = TextId(p, names.TextOf(*name));
  if (id != 0) name->known_as.store(uint64_t{p->identity} << 32 | id, std::memory_order_relaxed);
  return id;
}

uint32_t TextId(Process* p, const NvtxMessage& message) {
  return message.registered() != nullptr ? TextId(p, message.registered())
                                         : TextId(p, message.text());
}

void RecordNvtxMark(Process* p, NvtxName* domain, const NvtxMessage& message) {
  session::Record r = NewNote(p, Kind::kMark, domain);
  r.value = TextId(p, message);
  r.size = session::kNoIndex;
  r.color = message.color();
  Commit(p, &r);
}

uint64_t BeginNvtxRange(Process* p, NvtxName* domain, uint32_t name, uint32_t color) {
  session::Record r = NewNote(p, Kind::kRangeBegin, domain);
  r.value = name;
  r.size = uint64_t{name} << 32 | (p->last_range.fetch_add(1, std::memory_order_relaxed) + 1);
  r.color = color;
  Commit(p, &r);
  return r.size;
}

void EndNvtxRange(Process* p, NvtxName* domain, uint64_t range) {
  session::Record r = NewNote(p, Kind::kRangeEnd, domain);
  r.value = range >> 32;
  r.size = range;
  Commit(p, &r);
}

void RecordPushedRanges(Process* p, PushStack* stack) {
  if (stack->recorded_in == p->identity) [[likely]]
    return;
  stack->recorded_in = p->identity;
  stack->tid.store(ThreadId(p->identity), std::memory_order_relaxed);
  for (uint32_t i = 0; i < stack->depth; ++i) {
    PushedRange& pushed = stack->ranges[i];
    if (pushed.recorded_by == p->identity) continue;
    const uint32_t name =
        pushed.registered != nullptr ? TextId(p, pushed.registered) : TextId(p, pushed.text());
    pushed.range = BeginNvtxRange(p, pushed.domain, name, pushed.color);
    pushed.recorded_by = p->identity;
  }
}

void RecordLabel(Process* p, Labelled what, uint64_t number, uint32_t name) {
  session::Record r;
  r.thread = ThreadId(p->identity);
  r.value = name;
  switch (what) {
    case Labelled::kStream:
      r.kind = Kind::kStream;
      r.action = Action::kName;
      r.stream = number;
      break;
    case Labelled::kThread:
      r.kind = Kind::kThread;
      r.thread = static_cast<uint32_t>(number);
      break;
    case Labelled::kDevice:
      r.kind = Kind::kDevice;
      r.action = Action::kName;
      r.device = static_cast<uint8_t>(number);
      break;
    case Labelled::kNothing:
      return;
  }
  Commit(p, &r);
}

void RecordKeptLabels(Process* p) {
  NvtxLabels& labels = NvtxTables::IfMapped()->labels;
  labels.TakeAll(static_cast<uint32_t>(getpid()),
                 [p](Labelled what, uint64_t number, NvtxName* name) {
                   RecordLabel(p, what, number, TextId(p, name));
                 });
  for (uint64_t refused = labels.TakeRefused(); refused > 0; --refused)
    p->Count(session::kActivitiesDropped);
}

// Records a heap as an external pool. If it has addresses, its size is recorded, but its bytes are
// counted where the driver allocated them.
void RecordHeap(Process* p, NvtxHeap* heap) {
  uint32_t recorded_in = heap->recorded_in.load(std::memory_order_relaxed);
  if (recorded_in == p->identity ||
      !heap->recorded_in.compare_exchange_strong(recorded_in, p->identity))
    return;
  session::Record r = HeapAction(p, Action::kCreate, *heap);
  Commit(p, &r);
}

void RecordEndOfHeap(Process* p, const NvtxHeap& heap) {
  session::Record r = HeapAction(p, Action::kDestroy, heap);
  Commit(p, &r);
}

}  // namespace gmt::preload
