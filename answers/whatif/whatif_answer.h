// answers/whatif/whatif_answer.h
//
// WhatifAnswer: how much PyTorch's allocator would have reserved with other settings, on another
// device, or if the program had changed (analysis/whatif/replay.h).
//
// Ownership: the recording must outlive it. Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_WHATIF_WHATIF_ANSWER_H_
#define GMT_ANSWERS_WHATIF_WHATIF_ANSWER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "analysis/whatif/replay.h"
#include "answers/recording.h"
#include "answers/terminal.h"
#include "answers/whatif/program_scenarios.h"

namespace gmt::answers {

struct WhatifOptions {
  std::optional<int32_t> device;      // nullopt: the one with the highest peak
  std::vector<std::string> settings;  // each: "KEY=VALUE", several separated by commas
  std::vector<uint64_t> capacities;   // each: the driver can provide that many bytes
  ProgramOptions program;
};

// What a run with the settings of a scenario really did.
struct RealRun {
  uint64_t peak_reserved = 0;
  bool is_out_of_memory = false;
};

class WhatifAnswer {
 public:
  // Returns what the recorded program does with these settings.
  using RunSettings = std::function<absl::StatusOr<RealRun>(const std::string& settings)>;

  // Fails with INVALID_ARGUMENT for settings that PyTorch refuses, and with FAILED_PRECONDITION if
  // the recording cannot be replayed at all.
  static absl::StatusOr<WhatifAnswer> Make(const Recording& recording,
                                           const WhatifOptions& options);

  // Whether the replay does not agree with the recording well enough for predictions. Text and JSON
  // then say so and contain none.
  bool is_refused() const { return !reproduction_.is_good(); }

  // Runs the scenarios that are settings of the allocator, to be shown beside the predictions.
  absl::Status Verify(const RunSettings& run);

  int32_t device() const { return history_.device; }

  std::string Text(const Terminal& terminal) const;
  std::string Json() const;

 private:
  std::string Headline() const;
  std::string Assumptions() const;

  const Recording* recording_ = nullptr;
  analysis::AllocatorHistory history_;
  analysis::Reproduction reproduction_;
  std::vector<std::string> settings_;          // that were asked for
  std::vector<analysis::Scenario> scenarios_;  // the first one: as recorded
  std::vector<analysis::ScenarioResult> results_;
  std::optional<analysis::BatchFacts> inputs_;  // recorded; only if a scenario has others
  std::vector<FittingBatch> fits_;
  std::map<size_t, RealRun> real_;  // by scenario
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_WHATIF_WHATIF_ANSWER_H_
