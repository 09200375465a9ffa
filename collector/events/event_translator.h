// collector/events/event_translator.h
//
// EventTranslator: turns records of the session's ring into events of the recording. Ids of stacks
// and texts and API numbers become ids of the file, times become relative to the session's start,
// and `present` marks the fields that are set.
//
// Heaps
//   "driver"   device, managed, pool, virtual memory management, arrays, ipc, external, graph,
//              graphics, multicast
//   "host"     pinned, registered
//   "pytorch"  blocks of a framework's allocator
//   "nvtx"     regions
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_EVENTS_EVENT_TRANSLATOR_H_
#define GMT_COLLECTOR_EVENTS_EVENT_TRANSLATOR_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "collector/events/stack_translator.h"
#include "format/definitions.h"
#include "format/definitions_builder.h"
#include "format/event.h"
#include "session/record.h"
#include "session/session_map.h"

namespace gmt::collector {

// How an event changes the set of live allocations.
enum class Effect { kNone, kAcquires, kReturns };
constexpr Effect EffectOf(session::Kind kind) {
  using session::Kind;
  switch (kind) {
    case Kind::kAlloc:
    case Kind::kReserve:
    case Kind::kCreate:
    case Kind::kMap:
    case Kind::kImport:
    case Kind::kRegister:
      return Effect::kAcquires;
    case Kind::kFree:
    case Kind::kUnreserve:
    case Kind::kRelease:
    case Kind::kUnmap:
    case Kind::kUnimport:
    case Kind::kUnregister:
      return Effect::kReturns;
    default:
      return Effect::kNone;
  }
}

const char* HeapNameOf(session::Memory memory);

class EventTranslator {
 public:
  // `apis`: names by API number. New definitions are added to `definitions` and `stacks`, which
  // must outlive this.
  EventTranslator(const session::SessionMap& session, std::vector<std::string> apis,
                  format::DefinitionsBuilder* definitions, StackTranslator* stacks);

  format::Event Translate(const session::Record& record);

  // Return ids of the recording.
  uint32_t Heap(session::Memory memory) {
    uint32_t& id = heap_ids_[static_cast<size_t>(memory)];
    if (id == 0) id = definitions_->InternString(HeapNameOf(memory));
    return id;
  }
  uint32_t Api(uint16_t api) {  // 0: none
    if (api == 0) return 0;
    return api < api_ids_.size() && api_ids_[api] != 0 ? api_ids_[api] : DefineApi(api);
  }
  uint32_t Text(uint64_t id);  // 0: none
  uint32_t ActionId(session::Action action);

  const std::string& ApiName(uint16_t api) const;
  int64_t Time(uint64_t monotonic_ns) const {
    return static_cast<int64_t>(monotonic_ns - start_ns_);
  }

 private:
  // Returns whether a PyTorch block was allocated before the attach. Records of blocks have no room
  // for an API number.
  bool IsFromBeforeAttach(const session::Record& r) const {
    return r.memory == session::Memory::kBlock && r.kind == session::Kind::kAlloc && r.stack == 0 &&
           session_.has_attach_gate() && r.time_ns == start_ns_;
  }
  uint32_t DefineApi(uint16_t api);
  // What a tensor requested; dtype and shape are string ids of the recording.
  struct Layout {
    uint64_t bytes = 0;
    uint32_t dtype = 0, shape = 0;
  };
  const Layout& LayoutOf(uint32_t id);

  void TranslateMemory(const session::Record& record, format::Event* event);
  void TranslateRole(const session::Record& record, format::Event* event);
  void TranslateActivity(const session::Record& record, format::Event* event);
  void TranslateNote(const session::Record& record, format::Event* event);

  session::SessionMap session_;
  uint64_t start_ns_;
  std::vector<std::string> apis_;
  format::DefinitionsBuilder* definitions_;
  StackTranslator* stacks_;
  // Copied for each event: the instruction with which GCC zeroes an Event takes 9 ns.
  const format::Event empty_;
  std::vector<uint32_t> api_ids_;
  std::array<uint32_t, static_cast<size_t>(session::Memory::kLast) + 1> heap_ids_{};
  std::array<uint32_t, static_cast<size_t>(session::Action::kLast) + 1> action_ids_{};
  absl::flat_hash_map<uint64_t, uint32_t> text_ids_;
  absl::flat_hash_map<uint32_t, Layout> layouts_;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_EVENTS_EVENT_TRANSLATOR_H_
