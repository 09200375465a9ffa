#include "analysis/whatif/largest_batch.h"

#include <optional>

#include "analysis/categories/tensor_facts.h"
#include "analysis/whatif/program_change.h"
#include "analysis/whatif/replay.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kSixteenths = 16;
constexpr uint64_t kLargestFactor = 1024;

}  // namespace

absl::StatusOr<AllocatorHistory> HistoryWithBatch(const AllocatorHistory& history,
                                                  const Trace& trace, const Changes& changes,
                                                  double factor) {
  if (factor == 1) return history;
  ProgramChange change(trace, history.device);
  if (absl::Status status = changes.ScaleInputs({.samples = factor}, change); !status.ok())
    return status;
  return ChangedHistory(history, change);
}

absl::StatusOr<LargestBatch> FindLargestBatch(const AllocatorHistory& history, const Trace& trace,
                                              const Changes& changes, uint64_t capacity,
                                              StepNeeds step_needs) {
  LargestBatch found;
  const std::optional<BatchFacts>& batch = changes.Shapes().batch();
  found.is_counted = batch.has_value();
  found.recorded = batch ? batch->samples : kSixteenths;
  const auto fits = [&](uint64_t size) -> absl::StatusOr<bool> {
    const double factor = static_cast<double>(size) / static_cast<double>(found.recorded);
    const auto changed = HistoryWithBatch(history, trace, changes, factor);
    if (!changed.ok()) return changed.status();
    return Fits(*changed, {"", history.settings, capacity, nullptr, step_needs(factor)});
  };
  // The largest that fits, and the smallest that does not.
  uint64_t fitting = 0, failing = found.recorded;
  while (true) {
    const auto is_fitting = fits(failing);
    if (!is_fitting.ok()) return is_fitting.status();
    if (!*is_fitting) break;
    fitting = failing;
    if (failing >= found.recorded * kLargestFactor) {
      found.batch = fitting;
      found.is_unlimited = true;
      return found;
    }
    failing *= 2;
  }
  while (failing - fitting > 1) {
    const uint64_t middle = fitting + (failing - fitting) / 2;
    const auto is_fitting = fits(middle);
    if (!is_fitting.ok()) return is_fitting.status();
    (*is_fitting ? fitting : failing) = middle;
  }
  found.batch = fitting;
  return found;
}

}  // namespace gmt::analysis
