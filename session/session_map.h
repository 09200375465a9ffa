// session/session_map.h
//
// SessionMap: typed access to a session that is mapped into this process. The same for the writer,
// which has laid it out, and for a reader, which has validated it (session/session_file.h).
//
// Thread safety: the pointers never change; see the tables for theirs. Ownership: none, the mapping
// must outlive it.

#ifndef GMT_SESSION_SESSION_MAP_H_
#define GMT_SESSION_SESSION_MAP_H_

#include <cstdint>

#include "session/context_table.h"
#include "session/in_flight.h"
#include "session/intern_table.h"
#include "session/layout.h"
#include "session/live_table.h"
#include "session/module_log.h"
#include "session/ring.h"

namespace gmt::session {

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
    return RingReader(control_, section<Slot>(kRing), count(kRing));
  }
  LiveTable live() const {
    return LiveTable(section<std::atomic<uint64_t>>(kLiveKeys), section<LiveEntry>(kLiveEntries),
                     count(kLiveKeys));
  }
  StackTable stacks() const {
    const ArenaGrowth growth = {&control_->stack_arena_backed, &control_->stack_growth_errno};
    return StackTable(Interned(kStackIndex, kStackArena, &control_->stack_arena_used, growth));
  }
  TextTable texts() const {
    return TextTable(Interned(kTextIndex, kTextArena, &control_->text_arena_used, ArenaGrowth()));
  }
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
  InternTable Interned(SectionId index, SectionId arena, std::atomic<uint64_t>* used,
                       const ArenaGrowth& growth) const {
    return InternTable(section<std::atomic<uint64_t>>(index), count(index),
                       section<uint64_t>(arena), count(arena), used, growth);
  }

  char* base_ = nullptr;
  Control* control_ = nullptr;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_SESSION_MAP_H_
