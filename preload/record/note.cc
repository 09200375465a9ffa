#include "preload/record/note.h"

#include "preload/base/clock.h"
#include "preload/base/thread_state.h"
#include "preload/record/record_event.h"
#include "preload/record/record_stack.h"

namespace gmt::preload {
namespace {

using session::Kind;

void Record(Process* p, Kind kind, uint64_t name, uint64_t number, uint32_t stack) {
  session::Record r;
  r.kind = kind;
  r.thread = ThreadId(p->identity);
  r.value = name;
  r.size = number;
  r.stack = stack;
  r.time_ns = NowNs();
  CommitAlone(p, r);
}

uint32_t NameOf(Process* p, std::string_view name) {
  const uint32_t id = p->map.texts().Intern(name);
  if (id == 0 && !name.empty()) p->Count(session::kTextsFull);
  return id;
}

}  // namespace

void RecordMark(Process* p, std::string_view name, uint64_t index) {
  const KeepErrno keep;
  Record(p, Kind::kMark, NameOf(p, name), index, RecordStack(p));
}

uint64_t BeginRange(Process* p, std::string_view name) {
  const KeepErrno keep;
  const uint64_t id = NameOf(p, name);
  const uint64_t range = id << 32 | (p->last_range.fetch_add(1, std::memory_order_relaxed) + 1);
  Record(p, Kind::kRangeBegin, id, range, RecordStack(p));
  return range;
}

void EndRange(Process* p, uint64_t range) {
  const KeepErrno keep;
  if (static_cast<uint32_t>(range) <= p->first_range) return;  // begun in an earlier recording
  Record(p, Kind::kRangeEnd, range >> 32, range, 0);
}

void AskForSnapshot(Process* p, std::string_view name) {
  const KeepErrno keep;
  Record(p, Kind::kSnapshot, NameOf(p, name), 0, RecordStack(p));
}

}  // namespace gmt::preload
