// analysis/leaks/held_pieces.h
//
// HeldPieces: what is held after the events so far, as pieces with their stacks, and the effect of
// each event, without history. It can run beside a program for days; TraceBuilder reads whole
// recordings. Both follow HeldMemory (analysis/trace/held_memory.h).
//
//   HeldPieces pieces(definitions, listener);
//   pieces.OnEvent(event);      // listener.OnBorn(piece), OnFreed(piece), ...
//
// Differences from TraceBuilder, which knows later events
//   H1  Driver memory becomes a framework's segment when the first block is seen in it. Its
//       birth was reported as that of ordinary memory; listener.OnSegment() corrects it.
//   H2  Whether a block waits for streams is decided at its free: a code location that records
//       events counts only after an event of it has been queried.
//
// Memory: what is held, 80 bytes per piece. Thread safety: one thread at a time.

#ifndef GMT_ANALYSIS_LEAKS_HELD_PIECES_H_
#define GMT_ANALYSIS_LEAKS_HELD_PIECES_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "analysis/trace/held_memory.h"
#include "analysis/trace/memory_event.h"
#include "format/definitions.h"
#include "format/event.h"

namespace gmt::analysis {

using PieceId = HeldId;
inline constexpr PieceId kNoPiece = kNoHeld;

struct HeldPiece {
  MemoryPlace place;
  uint64_t size = 0;
  uint64_t stream = 0;
  uint32_t stack = 0, forward_stack = 0;
  int32_t device = 0;
  uint32_t heap = 0;
  uint8_t memory = 0;  // gmt::Memory
  bool is_held = false;
  bool is_segment = false, from_before = false, has_stream = false;
  bool awaits = false;     // freed, but not yet reusable
  uint32_t waits_for = 0;  // number of events
};

class HeldPieces : private HeldMemory::Listener {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnBorn(PieceId id, const HeldPiece& piece) = 0;
    virtual void OnFreed(PieceId id, const HeldPiece& piece) = 0;  // the id may be reused
    virtual void OnSegment(PieceId id, const HeldPiece& piece) = 0;
    // Freed, and awaiting streams: OnFreed may follow.
    virtual void OnAwaits(PieceId id, const HeldPiece& piece) = 0;
    virtual void OnFreeOfUnknown(int32_t device, uint32_t heap, uint64_t size) = 0;
  };

  // REQUIRES: both outlive this object; `definitions` contains what each event refers to.
  HeldPieces(const format::Definitions& definitions, Listener* listener)
      : listener_(listener), names_(definitions) {}

  // Ignores events that do not concern memory.
  void OnEvent(const format::Event& event);

  const std::vector<std::string>& heaps() const { return heaps_; }
  size_t most_pieces() const { return pieces_.size(); }
  // Calls visit(id, piece) for all that is held or awaiting.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (PieceId id = 0; id < pieces_.size(); ++id) {
      if (pieces_[id].is_held) visit(id, pieces_[id]);
    }
  }
  bool has_blocks() const { return has_blocks_; }

 private:
  struct Recorded {  // a CUDA event, as last recorded
    uint64_t site = 0, stream = 0;
    PieceId waiting = kNoPiece;
  };

  HeldId OnBorn(const format::Event& event, const MemoryPlace& place) override;
  void OnEnded(HeldId id, HeldMemory::End end, const format::Event& event) override;
  bool OnRestored(HeldId id, const MemoryPlace& place) override;
  void OnSegment(HeldId id) override;
  HeldId OnFreeOfUnknown(const format::Event& event) override;

  void OnAlloc(const format::Event& event);
  void OnFree(const format::Event& event);
  void OnFreeDone(const format::Event& event);
  uint32_t HeapOf(const format::Event& event) { return names_.HeapOf(event, &heaps_); }
  PieceId UnusedId();
  void EndPiece(PieceId id);

  // When a block may be reused.
  void OnBlockFreed(PieceId id, uint32_t thread);
  void OnRecord(const format::Event& event);
  void OnDone(uint64_t object, bool by_allocator);
  void OnReuse(const format::Event& event);
  void ForgetRecords(uint32_t thread);
  uint32_t WaitsOf(PieceId id, uint32_t thread);
  void Await(PieceId id);
  void EndAwaiting(PieceId id);

  Listener* const listener_;
  MemoryNames names_;
  std::vector<std::string> heaps_ = {"driver", "host"};
  HeldMemory memory_;

  std::vector<HeldPiece> pieces_;
  std::vector<PieceId> unused_;
  std::deque<PieceId> refusable_;  // driver memory whose free may still be refused
  absl::flat_hash_map<MemoryPlace, PieceId> awaiting_;
  absl::btree_map<std::pair<int32_t, uint64_t>, PieceId> awaiting_blocks_;
  absl::flat_hash_map<uint64_t, Recorded> recorded_;
  absl::flat_hash_map<uint32_t, std::vector<uint64_t>> by_thread_;
  absl::flat_hash_set<uint64_t> confirmed_;  // sites
  bool states_completions_ = false, has_blocks_ = false, has_gaps_ = false;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_HELD_PIECES_H_
