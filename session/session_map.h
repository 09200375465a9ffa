// session/session_map.h
//
// SessionMap: typed access to a session that is mapped into this process. Used by the writer, which
// laid it out, and by a reader, which validated it (session/session_file.h).
//
// Thread safety: the pointers never change; for the tables see their headers. Ownership: none; the
// mapping must outlive the SessionMap.

#ifndef GMT_SESSION_SESSION_MAP_H_
#define GMT_SESSION_SESSION_MAP_H_

#include <cstdint>

#include "session/arena.h"
#include "session/code_table.h"
#include "session/context_table.h"
#include "session/in_flight.h"
#include "session/layout.h"
#include "session/live_table.h"
#include "session/module_log.h"
#include "session/ring.h"
#include "session/stack_table.h"
#include "session/text_table.h"

namespace gmt::session {

// Returns the value of a counter relative to the start of the recording.
inline uint64_t CountOf(const Control& control, Counter counter) {
  const uint64_t now = control.counters[counter].load(std::memory_order_acquire);
  const uint64_t before = control.attach_counters[counter].load(std::memory_order_acquire);
  return now < before ? 0 : now - before;
}

class SessionMap {
 public:
  constexpr SessionMap() = default;
  SessionMap(void* base, Control* control) : base_(static_cast<char*>(base)), control_(control) {}

  explicit operator bool() const { return base_ != nullptr; }
  const Header& header() const { return *reinterpret_cast<const Header*>(base_); }
  Control& control() const { return *control_; }

  uint64_t count(SectionId id) const { return header().sections[id].count; }
  template <typename T>
  T* section(SectionId id) const {
    return reinterpret_cast<T*>(base_ + header().sections[id].offset);
  }

  RingWriter ring_writer() const {
    return RingWriter(control_, section<Slot>(kRing), count(kRing));
  }
  RingReader ring_reader() const {
    return RingReader(control_, section<Slot>(kRing), count(kRing), first_ticket());
  }
  bool has_attach_gate() const {
    return control_->attach_gate.load(std::memory_order_relaxed) != AttachGate::kNone;
  }
  // Returns the ticket at which the history of the current, or else the last, recording begins.
  uint64_t first_ticket() const {
    return has_attach_gate() ? control_->attach_first_ticket.load(std::memory_order_acquire) : 0;
  }
  // Returns how many bytes of the file have memory while the process is recorded.
  uint64_t MemoryBytes() const {
    const Section& last = header().sections[kArena];
    return last.offset + arena().Backed() * last.stride + live().FurtherBytes();
  }
  LiveTable live() const {
    LiveTable table(section<std::atomic<uint64_t>>(kLiveKeys), section<LiveEntry>(kLiveEntries),
                    count(kLiveKeys));
    for (uint32_t level = kLiveLevel1; level < kSectionCount; ++level) {
      const auto id = static_cast<SectionId>(level);
      if (count(id) == 0) break;
      table.AddLevel(control_, section<char>(id), count(id));
    }
    return table;
  }
  Arena arena() const { return Arena(control_, section<uint64_t>(kArena), count(kArena)); }
  StackTable stacks() const { return StackTable(Index(kStackIndex), arena()); }
  TextTable texts() const { return TextTable(Index(kTextIndex), arena()); }
  CodeTable codes() const { return CodeTable(Index(kCodeIndex), arena()); }
  ModuleLog modules() const {
    return ModuleLog(control_, section<ModuleRecord>(kModules),
                     static_cast<uint32_t>(count(kModules)));
  }
  ContextTable contexts() const {
    return ContextTable(section<ContextEntry>(kContexts), count(kContexts));
  }
  InFlightTable in_flight() const {
    return InFlightTable(section<InFlightSlot>(kInFlight), static_cast<uint32_t>(count(kInFlight)));
  }

 private:
  InternIndex Index(SectionId id) const {
    return InternIndex(section<std::atomic<uint64_t>>(id), count(id));
  }

  char* base_ = nullptr;
  Control* control_ = nullptr;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_SESSION_MAP_H_
