#include "analysis/fragmentation/fragmentation.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/examination/failures.h"

namespace gmt::analysis {
namespace {

// c10/cuda/CUDACachingAllocator.cpp: requests up to kSmallSize use the small pool.
constexpr uint64_t kSmallRequestBytes = 1 << 20;

// Returns the stream with most memory, whose requests are the most likely.
std::optional<uint64_t> BusiestStream(const std::vector<SegmentMap>& segments) {
  std::map<uint64_t, uint64_t> reserved;
  for (const SegmentMap& segment : segments) {
    if (segment.stream && !segment.is_private) reserved[*segment.stream] += segment.size;
  }
  std::optional<uint64_t> busiest;
  for (const auto& [stream, bytes] : reserved) {
    if (!busiest || bytes > reserved[*busiest]) busiest = stream;
  }
  return busiest;
}

class Fragments {
 public:
  Fragments(const Trace& trace, Fragmentation& result, const Requester& requester)
      : trace_(trace), result_(result), requester_(requester) {}

  void Find() {
    if (requester_.gave_up) FindPrivatePools();
    bool all_requested = true;
    uint64_t rounding = 0;
    for (const SegmentMap& segment : result_.segments) {
      result_.reserved_bytes += segment.size;
      AddSegment(segment);
      AddExpandable(segment);
      for (const Piece& piece : segment.pieces) {
        if (piece.kind != Piece::kLive) continue;
        result_.allocated_bytes += piece.size;
        // A block can be in two segments only in a damaged recording.
        const auto requested = trace_.rows.Requested(piece.row);
        if (!requested) all_requested = false;
        if (requested && *requested < piece.size) rounding += piece.size - *requested;
      }
    }
    result_.free_bytes = result_.reserved_bytes - result_.allocated_bytes;
    if (all_requested && result_.allocated_bytes > 0) result_.rounding_bytes = rounding;
    for (const auto& [row, bytes] : pinned_) result_.pins.push_back({row, bytes});
    std::sort(result_.pins.begin(), result_.pins.end(), [](const Pin& a, const Pin& b) {
      return std::tie(b.pinned_bytes, a.row) < std::tie(a.pinned_bytes, b.row);
    });
    FindExpandableGain();
  }

 private:
  bool IsOfOtherStream(const SegmentMap& segment) const {
    return segment.stream && result_.requesting_stream &&
           *segment.stream != *result_.requesting_stream;
  }
  bool MayServe(const SegmentMap& segment) const {
    if (segment.is_private || IsOfOtherStream(segment)) return false;
    return !requester_.bytes || segment.is_small == (*requester_.bytes <= kSmallRequestBytes);
  }

  // Marks segments as private if their pool is not recorded but the allocator could not use them.
  void FindPrivatePools() {
    for (SegmentMap& segment : result_.segments) {
      uint64_t run = 0;
      bool is_private = segment.is_private;
      for (const Piece& piece : segment.pieces) {
        run = piece.is_free() ? run + piece.size : 0;
        // Page records of an imported recording do not show which pages could be released.
        const bool stayed = piece.kind == Piece::kReleasable &&
                            (!segment.is_expandable || trace_.imported_from.empty());
        const bool would_serve = requester_.bytes && MayServe(segment) && run >= *requester_.bytes;
        is_private |= stayed || would_serve;
      }
      segment.is_private = is_private;
    }
  }

  void AddSegment(const SegmentMap& segment) {
    const std::vector<Piece>& pieces = segment.pieces;
    for (size_t i = 0; i < pieces.size();) {
      if (!pieces[i].is_free()) {
        if (pieces[i].kind == Piece::kAwaiting) result_.split.awaiting_stream += pieces[i].size;
        ++i;
        continue;
      }
      size_t end = i;
      uint64_t bytes = 0;
      for (; end < pieces.size() && pieces[end].is_free(); ++end) {
        bytes += pieces[end].size;
        BucketOf(segment, pieces[end]) += pieces[end].size;
      }
      if (MayServe(segment)) {
        result_.largest_free_bytes = std::max(result_.largest_free_bytes, bytes);
      }
      AddPins(segment, i, end);
      i = end;
    }
  }

  uint64_t& BucketOf(const SegmentMap& segment, const Piece& piece) {
    FragmentationSplit& split = result_.split;
    if (segment.is_private) return split.private_pool;
    if (piece.kind == Piece::kReleasable) return split.releasable;
    return IsOfOtherStream(segment) ? split.stream : split.pinned;
  }

  // Attributes free pieces begin..end-1 to the blocks on both sides. Releasable memory is not
  // pinned.
  void AddPins(const SegmentMap& segment, size_t begin, size_t end) {
    const std::vector<Piece>& pieces = segment.pieces;
    uint64_t bytes = 0;
    for (size_t i = begin; i < end; ++i) {
      if (pieces[i].kind == Piece::kFree) bytes += pieces[i].size;
    }
    const Piece* left =
        begin > 0 && pieces[begin - 1].kind == Piece::kLive ? &pieces[begin - 1] : nullptr;
    const Piece* right =
        end < pieces.size() && pieces[end].kind == Piece::kLive ? &pieces[end] : nullptr;
    if (bytes == 0) return;
    if (left != nullptr) pinned_[left->row] += right != nullptr ? bytes / 2 : bytes;
    if (right != nullptr) pinned_[right->row] += left != nullptr ? bytes - bytes / 2 : bytes;
  }

  void AddExpandable(const SegmentMap& segment) {
    if (segment.is_private || segment.is_expandable) return;
    uint64_t& free = free_[{segment.stream.value_or(0), segment.is_small}];
    for (const Piece& piece : segment.pieces) {
      if (piece.kind == Piece::kFree) free += piece.size;
    }
  }
  // Adds up the whole pages that a stream's pool would have if its free pieces were contiguous.
  void FindExpandableGain() {
    for (const auto& [pool, bytes] : free_) {
      const uint64_t page = pool.second ? kSmallSegmentBytes : kLargePageBytes;
      result_.expandable_bytes += bytes / page * page;
    }
  }

  const Trace& trace_;
  Fragmentation& result_;
  const Requester& requester_;
  absl::flat_hash_map<RowId, uint64_t> pinned_;
  std::map<std::pair<uint64_t, bool>, uint64_t> free_;  // by stream and pool
};

std::set<int32_t> DevicesWithSegments(const Trace& trace) {
  std::set<int32_t> devices;
  const Rows& rows = trace.rows;
  for (RowId row = 0; row < rows.count(); ++row) {
    if ((rows.flags[row] & kRowHoldsBlocks) != 0 && rows.device[row] != kHostDevice) {
      devices.insert(rows.device[row]);
    }
  }
  return devices;
}

Fragmentation FragmentationIn(const Trace& trace, int32_t device, Step step,
                              std::vector<SegmentMap> segments, const Requester& requester) {
  Fragmentation result;
  result.device = device;
  result.at.step = step;
  result.at.t_ns = trace.TimeOf(step);
  result.segments = std::move(segments);
  result.requesting_stream = requester.stream ? requester.stream : BusiestStream(result.segments);
  Fragments(trace, result, requester).Find();
  result.pin_groups = GroupPins(trace, result.pins);
  return result;
}

}  // namespace

std::vector<PinGroup> GroupPins(const Trace& trace, const std::vector<Pin>& pins) {
  const Rows& rows = trace.rows;
  absl::flat_hash_map<uint64_t, size_t> index;
  std::vector<PinGroup> groups;
  for (const Pin& pin : pins) {  // most pinned bytes first, so the first pin of each group is its
                                 // largest
    const uint64_t key = uint64_t{rows.forward_stack[pin.row]} << 32 | rows.stack[pin.row];
    const auto [known, is_new] = index.try_emplace(key, groups.size());
    if (is_new) {
      PinGroup& made = groups.emplace_back();
      made.stack = rows.stack[pin.row];
      made.forward_stack = rows.forward_stack[pin.row];
      made.largest = pin.row;
      made.first_birth = rows.birth[pin.row];
    }
    PinGroup& group = groups[known->second];
    ++group.blocks;
    group.block_bytes += rows.size[pin.row];
    group.pinned_bytes += pin.pinned_bytes;
    group.first_birth = std::min(group.first_birth, Step{rows.birth[pin.row]});
  }
  std::stable_sort(groups.begin(), groups.end(), [](const PinGroup& a, const PinGroup& b) {
    return a.pinned_bytes > b.pinned_bytes;
  });
  return groups;
}

Fragmentation FragmentationAfter(const Examination& examination, int32_t device, Step step,
                                 const Requester& requester) {
  const Trace& trace = examination.trace();
  return FragmentationIn(trace, device, step, SegmentsAfter(trace, device, step), requester);
}

Fragmentation FragmentationAfter(const Examination& examination, int32_t device, Step step,
                                 const std::vector<RowId>& rows) {
  const Trace& trace = examination.trace();
  return FragmentationIn(trace, device, step, SegmentsAfter(trace, device, step, rows), {});
}

absl::StatusOr<std::vector<Fragmentation>> FindFragmentation(const Examination& examination,
                                                             const FragmentationOptions& options) {
  const std::set<int32_t> devices = DevicesWithSegments(examination.trace());
  if (options.device && !devices.contains(*options.device)) {
    return absl::NotFoundError(absl::StrCat(
        "GPU ", *options.device, " has no allocator segments in this recording;  ",
        devices.empty() ? "no GPU has any"
                        : absl::StrCat("available: GPU ", absl::StrJoin(devices, ", GPU "))));
  }
  std::vector<Fragmentation> all;
  for (int32_t device : devices) {
    if (options.device && device != *options.device) continue;
    auto instant = InstantOn(examination, options.at, device, PeakOf::kHeld);
    if (!instant.ok()) return instant.status();
    Requester requester;
    if (options.at.kind == At::kOom) {
      const auto failure = FindFailures(examination).decisive;
      const FailedAllocation* failed = failure ? &examination.trace().failed[*failure] : nullptr;
      if (failed != nullptr && failed->device == device) {
        requester = RequesterOf(examination.trace(), *failed);
      }
    }
    all.push_back(FragmentationAfter(examination, device, instant->step, requester));
    all.back().at = *std::move(instant);
  }
  return all;
}

}  // namespace gmt::analysis
