#include "preload/lifecycle/before_attach.h"

#include <stdio.h>
#include <string.h>

#include "preload/base/clock.h"
#include "preload/process/write_guard.h"
#include "preload/record/driver_query.h"
#include "preload/record/python_blocks.h"
#include "preload/record/record_event.h"
#include "preload/record/record_source.h"

namespace gmt::preload {
namespace {

using session::Kind;
using session::Memory;
using session::Space;

void ReportStatus(Process* p, const char* text) {
  RecordSource(p, session::kBeforeAttachSource, "before_attach", text);
}

void ReportOff(Process* p, const char* why) {
  char text[192];
  snprintf(text, sizeof(text), "off: allocations made before the attach are unknown: %s", why);
  ReportStatus(p, text);
}

// Records the driver's totals for this thread's device, which include all processes.
void RecordTotals(Process* p) {
  session::Record r;
  if (CurrentContext() == 0 || !MemoryOfDevice(&r.value, &r.size)) return;
  r.kind = Kind::kSample;
  r.api = session::kBeforeAttachApi;
  r.thread = ThreadId(p->identity);
  r.time_ns = NowNs();
  r.device = CurrentDevice();
  CommitAlone(p, r);
}

// Converts Python's answer to events.
class Seeds {
 public:
  explicit Seeds(Process* p) : p_(p) {}

  void Add(const char* blocks, size_t count) {
    for (const bool wants_block : {false, true}) {
      for (size_t i = 0; i < count; ++i) {
        PythonBlock block;
        memcpy(&block, blocks + i * sizeof(block), sizeof(block));
        if ((block.is_block != 0) == wants_block && block.device < kDevices) AddOne(block);
      }
    }
    RemoveFreedBlocks();
  }

  void ReportResult() const {
    char text[256];
    const uint32_t freed = p_->frees_during_query.count();
    snprintf(text, sizeof(text),
             "on: PyTorch reported %llu bytes in %llu blocks and %llu bytes in %llu segments%s",
             ull(block_bytes_), ull(blocks_), ull(segment_bytes_), ull(segments_),
             freed > FreesDuringQuery::kRoom ? "; some of them may have been freed meanwhile" : "");
    ReportStatus(p_, text);
  }

 private:
  static constexpr uint64_t kDevices = 255;
  static unsigned long long ull(uint64_t number) { return number; }

  void AddOne(const PythonBlock& block) {
    const bool is_block = block.is_block != 0;
    session::Record r;
    r.kind = Kind::kAlloc;
    r.space = is_block ? Space::kBlock : Space::kDevice;
    r.memory = is_block ? Memory::kBlock : Memory::kDevice;
    r.api = session::kBeforeAttachApi;
    r.thread = ThreadId(p_->identity);
    r.time_ns = p_->map.control().attach_begin_ns.load(std::memory_order_relaxed);
    r.device = static_cast<uint8_t>(block.device);
    r.value = block.address;
    r.size = block.size;
    r.stream = block.stream;
    session::LiveValue live;
    if (!p_->Records(r.memory) || p_->live.Find(r.space, r.value, &live)) return;
    if (!is_block) r.context = ContextOf(r);
    (is_block ? blocks_ : segments_) += 1;
    (is_block ? block_bytes_ : segment_bytes_) += block.size;
    CommitAcquisition(p_, r);
  }

  // PyTorch uses the device's primary context.
  uint8_t ContextOf(const session::Record& r) {
    if (r.device != device_) {
      device_ = r.device;
      const uint64_t handle = PrimaryContext(r.device);
      context_ = handle == 0 ? uint8_t{0} : EnterContext(p_, handle, r.device, r);
    }
    return context_;
  }

  // Removes blocks freed after PyTorch reported them and before they were in the table.
  void RemoveFreedBlocks() {
    p_->frees_during_query.ForEach([&](Space space, uint64_t value) {
      session::LiveValue live;
      if (!p_->live.Find(space, value, &live) || live.api != session::kBeforeAttachApi) return;
      session::Record r;
      r.kind = Kind::kFree;
      r.space = space;
      r.value = value;
      r.api = live.api;
      r.thread = ThreadId(p_->identity);
      r.time_ns = NowNs();
      CommitReturn(p_, &r, &live);
    });
  }

  Process* const p_;
  uint64_t blocks_ = 0, block_bytes_ = 0, segments_ = 0, segment_bytes_ = 0;
  uint8_t device_ = session::kNoDevice, context_ = 0;
};

struct Answer {
  Process* process;
  uint32_t identity;
};

void Take(void* argument, const char* blocks, size_t count) {
  const auto* answer = static_cast<const Answer*>(argument);
  const WriteGuard p(answer->process, answer->identity);
  if (p == nullptr) return;
  Seeds seeds(p);
  seeds.Add(blocks, count);
  seeds.ReportResult();
}

// `argument`: the identity of the recording that asked. It may be over, or this may be a fork
// child.
int OnPythonsThread(void* argument) {
  const KeepErrno keep;
  const auto identity = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(argument));
  Process* p = Process::IfRecording();
  {
    const WriteGuard still(p, identity);
    if (still == nullptr) return 0;
    p->frees_during_query.Begin();
  }
  Answer answer = {p, identity};
  const char* why = ReadPythonBlocks(Take, &answer);
  p->frees_during_query.End();
  const WriteGuard still(p, identity);
  if (why != nullptr && still != nullptr) ReportOff(p, why);
  return 0;
}

}  // namespace

void RecordPriorAllocations(Process* p) {
  RecordTotals(p);
  if (!p->Records(Memory::kBlock)) return ReportOff(p, "heap= does not name pytorch");
  // Set before asking, because the answer may come at once and must be the final status.
  ReportOff(p, "Python's main thread has not answered yet");
  const auto argument = reinterpret_cast<void*>(static_cast<uintptr_t>(p->identity));
  if (const char* why = AskPython(OnPythonsThread, argument); why != nullptr) ReportOff(p, why);
}

}  // namespace gmt::preload
