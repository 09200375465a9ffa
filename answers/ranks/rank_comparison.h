// answers/ranks/rank_comparison.h
//
// Compares the ranks of a job: which of them differ from the others, by how much, and why.
//
// A rank differs if its peak is further from the median of all ranks than kMinDifference, a share
// of that median, and three times the usual distance (the median of all distances, scaled to a
// standard deviation: Leys et al., 2013); if contexts of other ranks are on its GPU; or if it
// leaks, fails or retries and most others do not.
//
// Buffers of collectives that are released late are no difference: a thread of the process group
// drops them when it notices that the collective is done, which is sooner or later by chance. So a
// peak must be far with and without them. They are recognised by two facts. The rank has them in
// one stretch of steps, which ends before its last one, and it has allocated as much for
// collectives as the others.
//
// Thread safety: JobDigests: one thread at a time. CompareRanks: a pure function. Memory: about
// 5 KB for each rank, or as much as its steps need if they are kept.

#ifndef GMT_ANSWERS_RANKS_RANK_COMPARISON_H_
#define GMT_ANSWERS_RANKS_RANK_COMPARISON_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "answers/ranks/bytes_by_name.h"
#include "answers/ranks/rank_digest.h"

namespace gmt::answers {

inline constexpr uint64_t kMinDifference = uint64_t{32} << 20;

// The digests of a job's ranks, with equal names stored once.
class JobDigests {
 public:
  // kSteps: also the categories and lines of every group of steps, which are not compared.
  enum class Keep { kPeaks, kSteps };

  explicit JobDigests(Keep keep = Keep::kPeaks) : keep_(keep) {}
  void Add(RankDigest digest);
  bool empty() const { return digests_.empty(); }

 private:
  friend class RankComparer;

  Keep keep_;
  std::vector<RankDigest> digests_;   // without `stacks`, which are in stacks_
  std::vector<uint64_t> late_bytes_;  // by digest: LateBytes()
  BytesByName stacks_, libraries_;
};

// A line whose bytes at the peak are not those of most ranks.
struct StackDifference {
  std::string stack;
  uint64_t bytes = 0, median_bytes = 0;
};

struct RankRow {
  static constexpr size_t kMaxStacks = 8;

  RankDigest digest;        // without `stacks`
  size_t added = 0;         // how many digests had been added before
  std::string name;         // "rank 3", or the file if the rank is unknown
  int64_t delta_bytes = 0;  // peak less the median
  bool differs = false;
  // The first and last step, from 1, in which its peak is far from the median of that step.
  // nullopt if the whole peak is not, or steps are not known.
  std::optional<std::pair<uint64_t, uint64_t>> differing_steps;
  std::vector<std::string> causes;  // most bytes first; empty unless it differs
  // If its peak is far from the median: the lines that differ most, the most different first.
  std::vector<StackDifference> stacks;
};

struct RankComparison {
  std::vector<RankRow> rows;  // by rank
  bool has_steps = false;     // rows have all of `by_step`
  Spread peak_bytes, reserved_bytes, retries;
  std::array<Spread, analysis::kCategories> categories;  // at the peaks
  std::map<std::string, Spread> libraries;               // at the peaks
  // The peaks of all ranks are compared in equal groups of steps; PeaksOfGroups() returns those of
  // one rank.
  uint64_t steps_per_group = 1;
  std::vector<uint64_t> median_step_peaks;  // by group, over the ranks that took these steps
  std::vector<size_t> outliers;             // indices of rows; the most different first
  // The rank that will be out of memory first: by its leak, otherwise by what is free at its peak.
  std::optional<size_t> next_to_fail;
  std::string why_next;  // "1.20 GiB free at its peak"
};

// Returns the peaks of larger groups, which consist of whole ones because all sizes are powers of
// two. REQUIRES: `steps_per_group` is not smaller than that of `by_step`.
std::vector<uint64_t> PeaksOfGroups(const StepGroups& by_step, uint64_t steps_per_group);

// REQUIRES: at least one digest.
RankComparison CompareRanks(JobDigests digests);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_RANKS_RANK_COMPARISON_H_
