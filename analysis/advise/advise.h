// analysis/advise/advise.h
//
// Advise: what to change to use less memory, in the order in which it is worth trying: first what
// costs nothing, then what costs time, precision or hardware. docs/advise.md has the order.
//
//   A1  A change saves the difference of the peaks of the recorded and the changed program
//       (analysis/whatif/program_change.h), each over all its moments. So it saves at most what it
//       frees at the recorded peak.
//   A2  `further_bytes` add up to the difference between the recorded peak and that of the program
//       with all changes.
//   A3  After an out of memory, the actions of `oom` (analysis/oom/oom.h) come first. Other changes
//       count with what they save in earlier steps, or with what they free at the failure.
//
// Thread safety: pure function. Cost: two walks over the rows for each change, and with
// `replay_all` a replay for each.

#ifndef GMT_ANALYSIS_ADVISE_ADVISE_H_
#define GMT_ANALYSIS_ADVISE_ADVISE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/confidence.h"
#include "analysis/examination/examination.h"
#include "analysis/leaks/leaks.h"
#include "analysis/oom/oom.h"

namespace gmt::analysis {

struct AdviseOptions {
  // nullopt: the one that ran out of memory; if none did, the one with the highest peak.
  std::optional<int32_t> device;
  // What the driver can provide; nullopt: as recorded. Refused after an out of memory.
  std::optional<uint64_t> capacity;
  uint64_t gpus = 2;                 // the number over which a model could be sharded
  bool replay_all = false;           // whether to replay every change, not only the next one
};

struct Advice {
  std::string name;             // "set_to_none"
  std::string what;             // the line or the setting: "torch.optim.AdamW(..., fused=True)"
  std::string where;            // "train.py:30"; "" if it is not one place, or unknown
  std::string why_not;          // why it does not apply; "" if it does
  bool is_of_reserved = false;  // it saves reserved memory, not memory of blocks
  uint64_t saved_bytes = 0;     // the fall of the peak
  // What it frees at the moment of the recorded peak. At most this is saved: another moment may
  // become the peak.
  uint64_t freed_bytes = 0;
  uint64_t further_bytes = 0;         // the fall of the peak beyond what all changes before it save
  Suffices suffices = Suffices::kNo;  // whether the program then fits the capacity
  // The peak of reserved memory in a replay of PyTorch's allocator; nullopt: not replayed.
  std::optional<uint64_t> reserved_bytes;
  std::string cost;
  Confidence confidence = Confidence::kLow;
  std::string why;

  bool applies() const { return why_not.empty(); }
};

struct AdviseReport {
  std::string refusal;  // why the recording cannot carry an answer; otherwise ""
  int32_t device = 0;
  uint64_t peak_bytes = 0;  // the most that the program asked for at one moment
  int64_t peak_t_ns = 0;
  std::optional<Phase> peak_phase;
  std::vector<CategoryUse> categories;     // what is held at that moment
  uint64_t reserved_bytes = 0;             // the peak of the allocator's segments
  uint64_t used_bytes = 0;                 // the peak of all recorded memory of the process
  std::optional<uint64_t> capacity_bytes;  // what the driver can provide to the process
  bool is_out_of_memory = false;           // the device ran out of it
  bool is_replayable = false;   // a replay agrees with the recording
  std::string not_replayable;   // why not
  std::vector<Advice> advice;   // in the order of trying
  std::optional<size_t> next;   // index of the one to try next
  uint64_t together_bytes = 0;  // saved by all of them: the sum of further_bytes
  // Whether the recorded program fits the capacity: by a replay, or by its use if there is none;
  // nullopt if the capacity is not known.
  std::optional<bool> fits;
  // Set if the device has so much room that nothing is needed.
  bool has_room = false;
  // Then: how many times as large the batch could be with 12 % left, by replays
  // (whatif/largest_batch.h), or in proportion if there are none; nullopt if not known.
  std::optional<double> batch_factor;
};

// `oom`: what `oom` answers; used if the device ran out of memory. `leaks`: of the whole recording,
// or up to the failure.
AdviseReport Advise(const Examination& examination, const Categories& categories,
                    const LeakReport& leaks, const OomReport& oom, const AdviseOptions& options);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_ADVISE_ADVISE_H_
