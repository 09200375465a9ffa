// interop/torch_import/torch_import_events.h
//
// SnapshotEvents: converts the events of a PyTorch snapshot to those of a recording, one by one,
// and passes them on in batches. See the right column of the table in
// interop/torch_import/torch_import.h.
//
// Thread safety: one thread at a time.

#ifndef GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_EVENTS_H_
#define GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_EVENTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "format/definitions.h"
#include "format/definitions_builder.h"
#include "format/event.h"
#include "format/recording_reader.h"
#include "interop/torch_import/torch_import_begin.h"
#include "interop/torch_import/torch_import_stacks.h"
#include "interop/torch_import/torch_import_view.h"

namespace gmt::interop {

class SnapshotEvents {
 public:
  // `start_us` is the time of t_ns 0.
  SnapshotEvents(const PickleTree& tree, format::DefinitionsBuilder& definitions,
                 format::RecordingVisitor& visitor, int64_t start_us);

  // Before all events: adds what `device` held, and reservations of what is mapped later. `begin`
  // must outlive this object.
  void AddBegin(uint32_t device, const DeviceBegin& begin, std::vector<format::Event>* live);
  // Adds the frees of the blocks that waited for a stream when the history began.
  void AddBeginFrees(uint32_t device, const DeviceBegin& begin);

  // `index` is that of the event in the trace of `device`.
  void Add(uint32_t device, uint32_t index, const SnapshotEvent& event);
  void Add(const SnapshotAnnotation& annotation);

  // If the history contradicts the final state: changes what is held to the final state. REQUIRES:
  // Follow() was called for the device before its first event.
  void Follow(uint32_t device) { followed_[device]; }
  void AddFinalState(uint32_t device, const std::vector<SnapshotSegment>& segments);

  // Adds the rows of a live set for the final state.
  void AddLive(const SnapshotSegment& segment, std::vector<format::Event>* live);

  // Passes on the added events.
  absl::Status Flush();
  absl::Status FlushIfMany() {
    return batch_.events.size() < kBatchEvents ? absl::OkStatus() : Flush();
  }

  const SnapshotStacks& stacks() const { return stacks_; }
  int64_t last_t_ns() const { return last_t_ns_; }
  // Number of frees with a compile_context or metadata, which a recording keeps only for
  // allocations.
  uint64_t labelled_frees() const { return labelled_frees_; }
  uint64_t annotations_without_stage() const { return annotations_without_stage_; }

 private:
  static constexpr size_t kBatchEvents = 32768;

  struct Piece {  // a piece of mapped memory
    uint64_t size = 0, handle = 0;
  };
  struct Followed {
    std::map<uint64_t, bool> blocks;        // address -> pending
    std::map<uint64_t, uint64_t> segments;  // address -> size
  };

  format::Event Make(Kind kind, uint32_t heap, Memory memory, uint32_t device) const;
  format::Event MakeFrom(Kind kind, uint32_t heap, Memory memory, uint32_t device,
                         const SnapshotEvent& event);
  format::Event Block(uint32_t device, const SnapshotBlock& block, std::optional<uint64_t> stream);
  format::Event Segment(const SnapshotSegment& segment);
  void Put(const format::Event& event);
  void SetTime(std::optional<int64_t> time_us, format::Event* event);
  uint32_t Label(PickleValue value);

  void AddAlloc(uint32_t device, uint32_t index, const SnapshotEvent& event);
  void AddFree(uint32_t device, const SnapshotEvent& event, bool completed);
  void FollowFree(uint32_t device, const SnapshotEvent& event, bool completed, Followed* held);
  void AddSegment(uint32_t device, uint32_t index, const SnapshotEvent& event);
  void AddSegmentFree(uint32_t device, const SnapshotEvent& event);
  void AddMap(uint32_t device, uint32_t index, const SnapshotEvent& event);
  void AddUnmap(uint32_t device, const SnapshotEvent& event);
  void AddOutOfMemory(uint32_t device, const SnapshotEvent& event);
  void AddAction(uint32_t device, const SnapshotEvent& event);
  void AddMapped(uint32_t device, const MappedRange& range, const std::vector<uint64_t>& cuts,
                 std::vector<format::Event>* live);
  // Returns CREATE and MAP of one piece of a range. `like` has their common fields.
  std::pair<format::Event, format::Event> MapPiece(uint32_t device, uint64_t address, uint64_t size,
                                                   const format::Event& like);

  struct FinalBlock {
    const SnapshotBlock* block = nullptr;
    const SnapshotSegment* segment = nullptr;
  };
  // Adds an event that is missing in the history, with the API "(lost)".
  void PutLost(format::Event event);
  void EndLost(Kind kind, uint32_t heap, Memory memory, uint32_t device, uint64_t address,
               uint64_t size);
  void EndLostMappings(uint32_t device, const std::map<uint64_t, const SnapshotSegment*>& ranges);
  void AddLostMappings(const SnapshotSegment& segment);

  const PickleTree& tree_;
  format::DefinitionsBuilder& definitions_;
  format::RecordingVisitor& visitor_;
  const int64_t start_us_;
  SnapshotStacks stacks_;
  const uint32_t driver_, pytorch_, lost_, no_context_;  // strings
  format::EventBatch batch_;
  int64_t last_t_ns_ = 0;

  absl::flat_hash_map<uint32_t, const DeviceBegin*> begins_;
  absl::flat_hash_map<uint32_t, std::map<uint64_t, Piece>> mapped_;  // by device, address
  uint64_t next_handle_ = 1;
  // Number of pages before the history that are added individually: 2 TiB of small ones. Larger
  // ranges are added as a whole.
  uint64_t pages_left_ = 1 << 20;
  absl::flat_hash_map<uint64_t, uint32_t> labels_;  // identity -> string
  absl::flat_hash_map<std::pair<uint32_t, int64_t>, std::vector<uint64_t>> open_ranges_;
  uint64_t next_range_ = 1;
  absl::flat_hash_map<uint32_t, Followed> followed_;
  uint64_t labelled_frees_ = 0, annotations_without_stage_ = 0;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_EVENTS_H_
