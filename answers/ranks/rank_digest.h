// answers/ranks/rank_digest.h
//
// RankDigest: what a comparison of ranks needs of one recording. It is small, so that the
// recordings of a job need not be open at the same time, and can be stored beside the recording
// (digest_file.h).
//
// A digest is bounded: of many lines it lists those with most bytes, of many steps one moment per
// group. What was stored is what is made of the recording, so comparisons of both are equal.
//
// Thread safety: MakeDigest: one thread at a time for one recording; MakePrintable: any thread.

#ifndef GMT_ANSWERS_RANKS_RANK_DIGEST_H_
#define GMT_ANSWERS_RANKS_RANK_DIGEST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/categories/categories.h"
#include "answers/recording.h"

namespace gmt::answers {

// The steps of a loop in groups of equal size, the last of which may be smaller. A group is
// described at its moment with most allocated bytes: blocks, and driver memory that holds none.
struct StepGroups {
  static constexpr size_t kMost = 64, kMaxStacks = 16;
  using Parts = std::map<std::string, std::vector<uint64_t>>;  // bytes in each group

  uint64_t steps_per_group = 1;  // a power of two
  std::vector<uint64_t> peak_bytes;
  Parts categories;  // by the names of JSON
  Parts stacks;      // the lines with most bytes in any group
};

struct RankDigest {
  static constexpr size_t kMaxStacks = 256, kMaxLibraries = 32, kMaxProcesses = 64, kMaxNotes = 16;
  static constexpr size_t kMaxTextBytes = 256;  // longer lines, names and notes are cut

  std::string file;  // the recording; if only its digest exists, that
  std::optional<int32_t> rank;
  std::string host;    // empty if unknown
  uint64_t pid = 0;    // 0 if unknown
  int32_t device = 0;  // the GPU with the highest peak; the following is of this GPU

  uint64_t peak_bytes = 0;  // most bytes recorded at one moment, each byte once
  int64_t peak_t_ns = 0;
  uint64_t reserved_bytes = 0;                                  // peak of a framework's segments
  std::array<uint64_t, analysis::kCategories> categories = {};  // at the peak
  std::map<std::string, uint64_t> stacks;     // at the peak: bytes by the line that allocated them
  uint64_t other_stacks_bytes = 0;            // at the peak: of the lines that are not listed
  std::map<std::string, uint64_t> libraries;  // at the peak: driver memory beside the framework
  std::optional<uint64_t> total_bytes;        // memory of the GPU
  uint64_t used_bytes = 0;  // by the driver at the peak, with all processes; 0 if unknown
  struct Process {
    uint64_t pid;
    uint64_t bytes;
  };
  std::vector<Process> others;  // other processes on the GPU, with the most that each had

  uint64_t steps = 0;
  uint64_t retries = 0;   // how often the allocator asked again for lack of memory
  uint64_t failures = 0;  // out of memory
  struct Leak {
    double bytes_per_step = 0;
    std::string place;       // "train.py:37"; empty if unknown
    bool is_likely = false;  // not certain yet
    std::optional<int64_t> eta_ns;
  };
  std::optional<Leak> leak;
  uint64_t collectives_bytes = 0;  // all that was allocated for collectives, freed or not
  StepGroups by_step;
  std::vector<std::string> notes;  // sentences: events that were lost, ...
};

RankDigest MakeDigest(const Recording& recording);

// Makes all text safe to print (format/printable.h).
void MakePrintable(RankDigest& digest);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_RANKS_RANK_DIGEST_H_
