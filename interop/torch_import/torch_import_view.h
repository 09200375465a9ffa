// interop/torch_import/torch_import_view.h
//
// Reads the values of a pickle as PyTorch's memory snapshot (torch.cuda.memory._dump_snapshot()),
// in all layouts since PyTorch 1.13:
//
//   1.13           a list of segments; the last allocation of a block is in its `history`
//   2.0            a dict with `segments` and `device_traces`
//   2.1            frames and addresses of blocks, expandable segments
//   2.2, 2.3, 2.5  time_us; allocator_settings; external_annotations
//   2.8 to 2.14    compile_context, user_metadata, forward_frames, pool_id; pinned memory
//
// Unknown fields are counted and ignored; more than 256 in a dict are an error.
//
// Errors name the place: "device_traces[0][17]: addr is not an integer".
// Thread safety: one thread at a time.

#ifndef GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_VIEW_H_
#define GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_VIEW_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "interop/pickle/pickle_value.h"

namespace gmt::interop {

// An entry of device_traces.
struct SnapshotEvent {
  enum class Action : uint8_t {
    kAlloc,
    kFreeRequested,
    kFreeCompleted,
    kSegmentAlloc,
    kSegmentFree,
    kSegmentMap,
    kSegmentUnmap,
    kOutOfMemory,
    kOther,
  };
  Action action = Action::kOther;
  PickleValue action_name{};
  uint64_t address = 0;  // for kOutOfMemory: free bytes of the device
  uint64_t size = 0;
  std::optional<uint64_t> stream;
  std::optional<int64_t> time_us;  // since 1970
  std::optional<uint64_t> pool;    // a << 32 | b
  uint32_t unknown_fields = 0;
  // None if missing.
  PickleValue frames{}, forward_frames{}, compile_context{}, user_metadata{};
};

// A block that is not inactive.
struct SnapshotBlock {
  uint64_t address = 0, size = 0;
  uint64_t requested = 0;  // 0: unknown
  bool pending = false;    // freed; other streams may still use it
  PickleValue frames{};
};

struct SnapshotSegment {
  uint32_t device = 0;
  uint64_t address = 0, size = 0;
  std::optional<uint64_t> stream;
  uint64_t pool = 0;  // a << 32 | b
  bool expandable = false, small = false;
  PickleValue frames{};
  std::vector<SnapshotBlock> blocks;  // by address
};

// An entry of external_annotations.
struct SnapshotAnnotation {
  enum class Stage : uint8_t { kStart, kEnd, kOther };
  Stage stage = Stage::kOther;
  PickleValue name{};
  std::optional<uint32_t> device;
  std::optional<int64_t> time_us;
};

class SnapshotView {
 public:
  // `tree` must outlive the view. Fails if `root` is not a snapshot.
  static absl::StatusOr<SnapshotView> Of(const PickleTree& tree, PickleValue root);

  uint32_t device_count() const { return static_cast<uint32_t>(traces_.size()); }
  uint32_t event_count(uint32_t device) const { return traces_[device].size; }
  absl::Status Event(uint32_t device, uint32_t index, SnapshotEvent* event) const;
  uint32_t annotation_count() const { return annotations_.size; }
  absl::Status Annotation(uint32_t index, SnapshotAnnotation* annotation) const;
  absl::StatusOr<std::vector<SnapshotSegment>> Segments();
  PickleValue settings() const { return settings_; }  // a dict or None

  // Counts the unknown fields of the event.
  void NoteUnknownFields(uint32_t device, uint32_t index);
  // The numbers of unknown fields, by "field of what".
  const std::map<std::string, uint64_t>& unknown() const { return unknown_; }

  const PickleTree& tree() const { return *tree_; }

 private:
  // Keys and strings, looked up once.
  struct Words {
    explicit Words(const PickleTree& tree);
    PickleValue action, addr, device_free, size, stream, frames, time_us, compile_context,
        user_metadata, forward_frames, pool_id;
    PickleValue device, address, total_size, allocated_size, active_size, requested_size,
        segment_type, segment_pool_id, is_expandable, blocks, state, history, real_size;
    PickleValue name, stage, start, end, small, inactive, active_allocated, active_pending_free,
        active_awaiting_free;
    PickleValue actions[8];  // in the order of SnapshotEvent::Action
  };

  SnapshotView(const PickleTree& tree, PickleValue root)
      : tree_(&tree), words_(tree), root_(root) {}

  absl::Status TakeRoot();
  absl::Status TakeTraces(const PickleValue* traces);
  absl::Status TakeSegment(PickleValue value, const std::string& where, SnapshotSegment* segment);
  absl::Status TakeBlocks(PickleValue value, const std::string& where, SnapshotSegment* segment);
  absl::Status TakeBlock(PickleValue value, const std::string& where, uint64_t address,
                         SnapshotSegment* segment, uint64_t* size);
  absl::Status TakeHistory(PickleValue history, const std::string& where,
                           SnapshotBlock* block) const;
  // What is wrong with a dict of fields, or nullptr.
  const char* ProblemOf(PickleValue dict) const;
  bool Unsigned(PickleValue dict, PickleValue key, uint64_t* number) const;
  PickleValue Field(PickleValue dict, PickleValue key) const;
  std::optional<uint64_t> PoolId(PickleValue pair) const;
  template <size_t n>
  void NoteUnknown(PickleValue dict, const PickleValue (&known)[n], const char* what);

  const PickleTree* tree_;
  Words words_;
  PickleValue root_;
  PickleValue segments_{}, settings_{};
  std::vector<PickleTree::Items> traces_;
  PickleTree::Items annotations_;
  std::map<std::string, uint64_t> unknown_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_VIEW_H_
