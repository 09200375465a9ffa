#include "answers/whatif/program_scenarios.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "analysis/leaks/leaks.h"
#include "analysis/oom/optimizer.h"
#include "analysis/text.h"
#include "analysis/whatif/program_change.h"

namespace gmt::answers {
namespace {

using analysis::InputChange;
using analysis::ProgramChange;

// By how much a failed step may need more than expected, in a batch that is said to fit: also
// because free memory is in pieces.
constexpr uint64_t kDoubtPercent = 10;

absl::Status DoesNotApply(const std::string& name, const absl::Status& why) {
  return absl::FailedPreconditionError(fmt::format("{}: {}", name, std::string(why.message())));
}

}  // namespace

ProgramScenarios::ProgramScenarios(const Recording& recording,
                                   const analysis::AllocatorHistory& history,
                                   const FailedStep& failed)
    : recording_(recording),
      history_(history),
      failed_(failed),
      changes_(recording.examination(), recording.categories(), history.device) {}

template <typename Apply>
absl::Status ProgramScenarios::AddChange(const std::string& name, const Apply& apply) {
  ProgramChange change(recording_.trace(), history_.device);
  if (absl::Status status = apply(change); !status.ok()) return DoesNotApply(name, status);
  scenarios_->push_back({name, history_.settings, std::nullopt,
                         std::make_shared<const analysis::AllocatorHistory>(
                             analysis::ChangedHistory(history_, change))});
  return absl::OkStatus();
}

absl::Status ProgramScenarios::Add(const ProgramOptions& options,
                                   std::vector<analysis::Scenario>* scenarios) {
  scenarios_ = scenarios;
  absl::Status status;
  if (options.set_to_none) {
    status.Update(AddChange(
        "set_to_none", [&](ProgramChange& change) { return changes_.SetGradientsToNone(change); }));
  }
  if (!options.without.empty()) {
    const analysis::LeakReport leaks = analysis::FindLeaks(recording_.examination());
    for (const std::string& id : options.without) {
      status.Update(AddChange("without " + id, [&](ProgramChange& change) {
        for (const analysis::LeakSuspect& suspect : leaks.suspects) {
          if (suspect.id == id) return changes_.FixLeak(suspect, change);
        }
        return absl::FailedPreconditionError("`leaks` finds no such leak");
      }));
    }
  }
  if (options.half_precision) {
    status.Update(AddChange(
        "dtype bf16", [&](ProgramChange& change) { return changes_.UseHalfPrecision(change); }));
  }
  for (const std::string& layers : options.checkpoints) {
    status.Update(AddChange("checkpoint " + layers, [&](ProgramChange& change) {
      return changes_.Checkpoint(layers == "auto" ? "" : layers, change).status();
    }));
  }
  for (const std::string& optimizer : options.optimizers) {
    status.Update(AddChange("optimizer " + optimizer, [&](ProgramChange& change) {
      return ChangeOptimizer(optimizer, change);
    }));
  }
  for (const uint64_t gpus : options.shards) {
    status.Update(AddChange(fmt::format("shard {}", gpus),
                            [&](ProgramChange& change) { return changes_.Shard(gpus, change); }));
  }
  status.Update(AddInputs(options));
  return status;
}

absl::Status ProgramScenarios::ChangeOptimizer(const std::string& optimizer,
                                               ProgramChange& change) const {
  if (optimizer == "8bit") return changes_.UseEightBitState(change);
  if (optimizer != "foreach") return changes_.FuseOptimizer(optimizer == "fused", change);
  const analysis::Optimizer found =
      analysis::FindOptimizer(recording_.examination(), recording_.trace().end_t_ns);
  if (!found.has_foreach_temporaries) {
    return absl::FailedPreconditionError(
        fmt::format("what {} allocates with foreach=True is not known, only what Adam and AdamW do",
                    found.name.empty() ? "the optimizer" : found.name));
  }
  return changes_.UseForeach(change);
}

absl::Status ProgramScenarios::AddInputs(const ProgramOptions& options) {
  if (options.batches.empty() && options.lengths.empty() && options.buckets.empty() &&
      options.fits.empty())
    return absl::OkStatus();
  inputs_ = changes_.Shapes().batch();
  const auto add = [&](const std::string& name, const InputChange& inputs) {
    return AddChange(name,
                     [&](ProgramChange& change) { return changes_.ScaleInputs(inputs, change); });
  };
  absl::Status status;
  for (const InputSize& batch : options.batches) {
    const std::string name = "batch " + batch.text;
    const auto factor = FactorOf(name, batch, inputs_ ? inputs_->samples : 0);
    status.Update(factor.ok() ? add(name, {.samples = *factor}) : factor.status());
    if (status.ok()) scenarios_->back().step_needs = StepNeeds(*factor);
  }
  for (const InputSize& length : options.lengths) {
    const std::string name = "seq " + length.text;
    const auto factor = FactorOf(name, length, inputs_ ? inputs_->tokens : 0);
    status.Update(factor.ok() ? add(name, {.tokens = *factor}) : factor.status());
  }
  for (const uint64_t bucket : options.buckets)
    status.Update(add(fmt::format("bucket-seq {}", bucket), {.bucket = bucket}));
  for (const FitDevice& device : options.fits) status.Update(AddFit(device));
  return status;
}

absl::StatusOr<double> ProgramScenarios::FactorOf(const std::string& option, const InputSize& size,
                                                  uint64_t recorded) const {
  if (size.is_factor) return size.value;
  if (recorded == 0) {
    return absl::FailedPreconditionError(
        fmt::format("{}: the size of the recorded inputs is not known; write a multiple of it, "
                    "such as 2x",
                    option));
  }
  return size.value / static_cast<double>(recorded);
}

uint64_t ProgramScenarios::StepNeeds(double factor) const {
  // The factor is that of the pass with the highest peak, which another step may have had.
  const analysis::BatchShapes& shapes = changes_.Shapes();
  return !shapes.batch() || shapes.IsInPass(failed_.step()) ? failed_.Needs(factor) : 0;
}

absl::Status ProgramScenarios::AddFit(const FitDevice& device) {
  FittingBatch fit{device, device.bytes, {}, scenarios_->size()};
  // Contexts and other processes take as much as they did.
  if (history_.capacity && history_.device_bytes > *history_.capacity)
    fit.capacity -= std::min(fit.capacity, history_.device_bytes - *history_.capacity);
  const auto step_needs = [this](double factor) {
    return StepNeeds(factor) / 100 * (100 + kDoubtPercent);
  };
  const auto largest =
      analysis::FindLargestBatch(history_, recording_.trace(), changes_, fit.capacity, step_needs);
  if (!largest.ok()) return DoesNotApply("fit " + device.name, largest.status());
  fit.largest = *largest;
  fit.is_at_most = failed_.has_failed() && (!failed_.is_compared() || StepNeeds(1) == 0);
  // If none fits, the smallest is shown as it fails.
  const uint64_t batch = std::max<uint64_t>(1, largest->batch);
  const double factor = static_cast<double>(batch) / static_cast<double>(largest->recorded);
  auto history = analysis::HistoryWithBatch(history_, recording_.trace(), changes_, factor);
  if (!history.ok()) return DoesNotApply("fit " + device.name, history.status());
  scenarios_->push_back(
      {largest->is_counted ? fmt::format("batch {} on {}", Count(batch), device.name)
                           : fmt::format("batch {:.2f}x on {}", factor, device.name),
       history_.settings, fit.capacity,
       std::make_shared<const analysis::AllocatorHistory>(*std::move(history)), StepNeeds(factor)});
  fits_.push_back(std::move(fit));
  return absl::OkStatus();
}

}  // namespace gmt::answers
