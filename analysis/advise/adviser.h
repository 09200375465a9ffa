// analysis/advise/adviser.h
//
// Adviser: how Advise() finds its answer (advise.h). What is measured and chosen is in advise.cc,
// what each change is in techniques.cc.
//
// Ownership: all that it is made of must outlive it. Thread safety: one thread at a time.

#ifndef GMT_ANALYSIS_ADVISE_ADVISER_H_
#define GMT_ANALYSIS_ADVISE_ADVISER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "analysis/advise/advise.h"
#include "analysis/oom/optimizer.h"
#include "analysis/whatif/allocator_history.h"
#include "analysis/whatif/changes.h"
#include "analysis/whatif/program_change.h"

namespace gmt::analysis {

class Adviser {
 public:
  Adviser(const Examination& examination, const Categories& categories, const LeakReport& leaks,
          const OomReport& oom, const AdviseOptions& options)
      : examination_(examination),
        trace_(examination.trace()),
        categories_(categories),
        leaks_(leaks),
        oom_(oom),
        options_(options) {}

  AdviseReport Advise() &&;

 private:
  using Change = std::function<absl::Status(ProgramChange&)>;

  static uint64_t Less(uint64_t a, uint64_t b) { return a - std::min(a, b); }

  // The recording.
  void Measure();
  std::string Refusal() const;
  uint64_t BytesOf(Category category) const;
  void ReadHistory();

  // Changes: each adds its advice.
  void Leak();
  void SetToNone();
  void OptimizerStep();
  void Settings();
  void HalfPrecision();
  void Attention();
  void MicroBatch();
  void Checkpointing();
  void EightBit();
  void Sharding();
  void Offload();
  void InPlace();
  void EmptyCache();
  Optimizer FoundOptimizer() const;
  bool IsSharded() const;

  // What they save.
  void Try();
  void Add(Advice advice, const Change& change);
  void FindLargerBatch(uint64_t batch_bytes);
  void ReplayOf(size_t index);
  bool FitsCapacity(const AllocatorHistory& history, const AllocatorSettings& settings) const;
  bool IsEnough(size_t index) const;

  // What to try next.
  uint64_t WholeOf(const Advice& advice) const;
  bool IsWorth(const Advice& advice) const;
  void ChooseNext();

  // After an out of memory (A3).
  void TakeActions();
  void TryBesideActions();
  bool HasEarlierSteps() const;
  void AddAfterFailure(Advice advice, const ProgramChange& alone);
  void ChooseAction();

  const Examination& examination_;
  const Trace& trace_;
  const Categories& categories_;
  const LeakReport& leaks_;
  const OomReport& oom_;
  const AdviseOptions& options_;
  Step peak_ = 0;
  const Changes* changes_ = nullptr;
  std::optional<AllocatorHistory> history_;
  AllocatorSettings best_settings_;  // the best of those that were replayed
  std::optional<ProgramChange> together_;
  uint64_t together_peak_ = 0;
  std::vector<Change> replays_;  // one per advice; empty: not replayed
  AdviseReport report_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_ADVISE_ADVISER_H_
