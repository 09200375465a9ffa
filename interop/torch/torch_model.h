// interop/torch/torch_model.h
//
// TorchModel: the memory of one device as PyTorch's tools represent it, as segments and their
// blocks. Items of the recording change it, and each change becomes an entry of the device's trace.
//
//   recording                          trace
//   driver memory with blocks in it    segment_alloc ... segment_free
//   driver memory without              the same around one alloc and free of its full size
//   mapped physical memory             the same, at the address that it is mapped at
//   ... with blocks in it              segment_map, segment_unmap: one entry for all pages that one
//                                      call of the allocator mapped
//   block of a framework               alloc, free_requested, free_completed
//   failed allocation                  oom
//   snapshot taken                     snapshot
//
// The tools rebuild every moment by undoing entries from the end, and fail if an entry does not
// fit. So each entry is made from the current state of the model, never from the recording alone:
//
//   M1  A block is inside one segment. A block in no known segment gets its own.
//   M2  Neither segments nor blocks overlap. If something overlaps newer memory, its end was not
//       recorded: an end is added, and counted.
//   M3  A segment is empty when it ends: frees of its blocks come before its own.
//   M4  Adjoining ranges of one stream are one expandable segment.
//   M5  Every address and size is exact for readers that only have floating point.
//
// The model is run twice for a device. The first run learns what is known only later (the stream
// and pool of a segment are those of its first block); the second run uses it.
//
// Thread safety: one thread at a time.

#ifndef GMT_INTEROP_TORCH_TORCH_MODEL_H_
#define GMT_INTEROP_TORCH_TORCH_MODEL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "analysis/trace/trace.h"
#include "interop/torch/torch_event.h"
#include "interop/torch/torch_feed.h"
#include "interop/torch/torch_segment_facts.h"

namespace gmt::interop {

// What could not be represented exactly.
struct TorchModelCounts {
  uint64_t made_up = 0;   // ends of memory that are missing in the recording
  uint64_t left_out = 0;  // rows that cannot be shown: inexact addresses, blocks in blocks
  uint64_t moved = 0;     // arrays, which have no address, shown at made-up addresses
  uint64_t tries = 0;     // failed driver calls that a caching allocator retried
};

class TorchModel {
 public:
  enum class Mode { kLearn, kEmit };  // fills `facts`, or uses the facts of an earlier run
  TorchModel(const analysis::Trace& trace, int32_t device, Mode mode, TorchSegmentFacts& facts,
             TorchSink& sink);

  // Sets the failures (by index) that are retried by the allocator.
  void IgnoreFailures(const std::vector<bool>* failures) { ignored_failures_ = failures; }

  // Adds what exists before the first step, without emitting entries.
  void Begin();
  void Take(const TorchItem& item);
  // Call it after the last item.
  void Finish() { FlushRun(); }

  // Returns the segments by address, with gaps between blocks filled.
  std::vector<TorchSegment> Segments() const;
  const TorchModelCounts& counts() const { return counts_; }

 private:
  struct Segment {
    uint64_t size = 0, stream = 0;
    bool expandable = false;
    bool assumed = false;  // M1: only as large as its block
    analysis::RowId row = analysis::kNoRow;
    uint32_t stack = 0;
    TorchSegmentFacts::Id facts = TorchSegmentFacts::kNone;
  };
  struct Block {
    uint64_t size = 0, stream = 0;
    analysis::RowId row = analysis::kNoRow;
    bool pending = false;
  };
  using Segments_ = absl::btree_map<uint64_t, Segment>;
  using Blocks = absl::btree_map<uint64_t, Block>;
  // Mappings that one call created or ended.
  struct Run {
    bool open = false, maps = false;
    uint64_t address = 0, end = 0;
    uint32_t mapping = 0;  // the first mapping
    int64_t t_ns = 0;
  };

  bool IsHere(analysis::RowId row) const;
  bool HoldsBlocks(analysis::RowId row) const;
  bool IsPhysical(analysis::RowId row) const;
  bool IsFromBefore(const analysis::Mapping& mapping) const;
  // Returns the address at which a row is shown, or nullopt if it cannot be shown.
  std::optional<uint64_t> PlaceOf(analysis::RowId row);

  void TakeSideEvent(const TorchItem& item);
  void OnBirth(analysis::RowId row);
  void OnDeath(analysis::RowId row);
  void OnCompleted(const analysis::Completion& completion);
  void OnMapping(uint32_t index, bool maps);
  void OnFailed(uint32_t index);
  void OnSnapshot(uint32_t index);
  void OnAction(uint32_t index);

  void BeginRaw(uint64_t address, uint64_t size, analysis::RowId row);
  void EndRaw(uint64_t address, analysis::RowId row);
  void BeginSegment(uint64_t address, uint64_t size, analysis::RowId row, bool assumed);
  void EndSegment(Segments_::iterator segment, uint32_t stack);
  void BeginBlock(uint64_t address, uint64_t size, analysis::RowId row);
  void EndBlock(Blocks::iterator block, bool awaited);
  void Complete(Blocks::iterator block, uint32_t stack = 0);
  void FlushRun();
  void Map(const Run& run);
  void Unmap(const Run& run);
  void Insert(uint64_t address, Segment segment);

  // For M2. Returns the removed blocks of assumed segments that overlapped.
  std::vector<std::pair<uint64_t, Block>> ClearSegments(uint64_t address, uint64_t end);
  void PutBack(const std::vector<std::pair<uint64_t, Block>>& blocks);
  bool ClearBlocks(uint64_t address, uint64_t end, analysis::RowId for_row);
  void EndBlocks(uint64_t address, uint64_t end);
  Segments_::iterator SegmentOf(uint64_t address, uint64_t end);
  bool Overlaps(uint64_t address, uint64_t end);

  void Emit(TorchEvent::Action action, uint64_t address, uint64_t size, uint64_t stream,
            analysis::RowId row, uint32_t stack);
  void Emit(const TorchEvent& event);
  void Boundary();
  bool IsSmall(const Segment& segment) const;
  uint64_t PoolOf(const Segment& segment) const;

  const analysis::Trace& trace_;
  const int32_t device_;
  const Mode mode_;
  TorchSegmentFacts& facts_;
  TorchSink& sink_;
  const std::vector<bool>* ignored_failures_ = nullptr;

  Segments_ segments_;
  Blocks blocks_;
  uint64_t block_bytes_ = 0;
  // Live arrays: address at which they are shown.
  absl::btree_map<analysis::RowId, uint64_t> moved_;
  uint64_t next_moved_;
  Run run_;
  int64_t now_ = 0;
  bool silent_ = false;
  TorchModelCounts counts_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_TORCH_MODEL_H_
