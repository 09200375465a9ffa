// answers/whatif/program_scenarios.h
//
// The scenarios of `whatif` in which the program changes, not its allocator
// (analysis/whatif/changes.h): what they are named, and what the program would request.
//
// Ownership: recording, history and failed step must outlive it. Thread safety: one thread at a
// time.

#ifndef GMT_ANSWERS_WHATIF_PROGRAM_SCENARIOS_H_
#define GMT_ANSWERS_WHATIF_PROGRAM_SCENARIOS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "analysis/whatif/changes.h"
#include "analysis/whatif/largest_batch.h"
#include "analysis/whatif/replay.h"
#include "answers/recording.h"
#include "answers/whatif/failed_step.h"

namespace gmt::answers {

// "2x": that many times the recorded size. "16": that size.
struct InputSize {
  std::string text;
  double value = 1;
  bool is_factor = true;
};

// A GPU, or memory of that size, which a batch is to fit.
struct FitDevice {
  std::string name;  // "H100 80 GB"; for a size its text
  uint64_t bytes = 0;
};

struct ProgramOptions {
  bool set_to_none = false;
  std::vector<std::string> without;  // ids of leaks: "leak/1"
  std::vector<InputSize> batches, lengths;
  std::vector<uint64_t> buckets;         // lengths are padded to multiples of it
  std::vector<std::string> checkpoints;  // classes of layers; "auto": those that save most
  std::vector<std::string> optimizers;   // "8bit", "fused", "foreach" or "single"
  bool half_precision = false;           // autocast to bfloat16
  std::vector<uint64_t> shards;          // GPUs over which the model is divided
  std::vector<FitDevice> fits;           // a scenario with the largest batch for each
};

// The largest batch for a device; its scenario has the same index.
struct FittingBatch {
  FitDevice device;
  uint64_t capacity = 0;  // what its driver can provide to the process
  analysis::LargestBatch largest;
  size_t scenario = 0;
  // A batch of that size may need more: the program failed before it had requested all memory of a
  // step.
  bool is_at_most = false;
};

class ProgramScenarios {
 public:
  ProgramScenarios(const Recording& recording, const analysis::AllocatorHistory& history,
                   const FailedStep& failed);

  // Appends a scenario for each option. Returns FAILED_PRECONDITION with the option and the reason
  // if one does not apply to the recorded program.
  absl::Status Add(const ProgramOptions& options, std::vector<analysis::Scenario>* scenarios);

  // The recorded inputs of a forward pass, if a scenario depends on them and they are known.
  const std::optional<analysis::BatchFacts>& inputs() const { return inputs_; }
  const std::vector<FittingBatch>& fits() const { return fits_; }

 private:
  absl::Status AddInputs(const ProgramOptions& options);
  absl::Status AddFit(const FitDevice& device);
  absl::Status ChangeOptimizer(const std::string& optimizer, analysis::ProgramChange& change) const;
  template <typename Apply>
  absl::Status AddChange(const std::string& name, const Apply& apply);
  absl::StatusOr<double> FactorOf(const std::string& option, const InputSize& size,
                                  uint64_t recorded) const;
  // What the step that failed needs with `factor` times as many samples; 0 if unknown.
  uint64_t StepNeeds(double factor) const;

  const Recording& recording_;
  const analysis::AllocatorHistory& history_;
  const FailedStep& failed_;
  const analysis::Changes changes_;
  std::vector<analysis::Scenario>* scenarios_ = nullptr;
  std::optional<analysis::BatchFacts> inputs_;
  std::vector<FittingBatch> fits_;
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_WHATIF_PROGRAM_SCENARIOS_H_
