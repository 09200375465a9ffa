#include "analysis/advise/advise.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/advise/adviser.h"
#include "analysis/oom/verdict.h"
#include "analysis/whatif/largest_batch.h"
#include "analysis/whatif/replay.h"

namespace gmt::analysis {
namespace {

// Less than this part of the peak, in percent, is not worth a change.
constexpr uint64_t kWorthPercent = 2;
// Nothing is needed if the process uses less than this part of what the device can provide.
constexpr uint64_t kRoomPercent = 75;
constexpr uint64_t kMaxUnknownPercent = 50;
// With a larger batch, at most this part of what the device can provide is to be used.
constexpr uint64_t kFullPercent = 88;

}  // namespace

AdviseReport Adviser::Advise() && {
  report_.is_out_of_memory =
      IsFailure(oom_.verdict) && options_.device.value_or(oom_.device) == oom_.device;
  report_.device =
      options_.device.value_or(report_.is_out_of_memory ? oom_.device : examination_.MainDevice());
  Measure();
  report_.refusal = Refusal();
  if (!report_.refusal.empty()) return std::move(report_);
  Changes changes(examination_, categories_, report_.device);
  changes_ = &changes;
  if (report_.is_out_of_memory) {
    TakeActions();
    TryBesideActions();
    ChooseAction();
  } else {
    ReadHistory();
    together_.emplace(trace_, report_.device);
    Try();
    ChooseNext();
  }
  return std::move(report_);
}

// ---- The recording

void Adviser::Measure() {
  const auto& devices = examination_.replay().devices();
  const auto totals = devices.find(report_.device);
  if (totals == devices.end() || report_.device == kHostDevice) return;
  report_.peak_bytes = totals->second.allocated.peak;
  peak_ = totals->second.allocated.peak_step;
  report_.peak_t_ns = trace_.TimeOf(peak_);
  report_.reserved_bytes = totals->second.segments.peak;
  report_.used_bytes = totals->second.bytes.peak;
  report_.categories = CategoriesAt(examination_, categories_, report_.device, peak_);
  for (const DeviceCycles& device : examination_.cycles().devices) {
    if (device.device != report_.device) continue;
    for (const CycleUse& cycle : device.cycles) {
      if (cycle.peak_step == peak_) report_.peak_phase = cycle.peak_phase;
    }
  }
  for (const GpuFacts& gpu : trace_.devices) {
    if (static_cast<int32_t>(gpu.index) == report_.device && gpu.total_bytes > 0)
      report_.capacity_bytes = gpu.total_bytes;
  }
}

std::string Adviser::Refusal() const {
  if (report_.device == kHostDevice || report_.peak_bytes == 0)
    return "no memory of a GPU is recorded";
  const bool has_blocks =
      std::any_of(examination_.replay().heaps().begin(), examination_.replay().heaps().end(),
                  [&](const auto& heap) {
                    return heap.first.first == report_.device && heap.first.second > kHostHeap &&
                           heap.second.bytes.peak > 0 && trace_.heaps[heap.first.second] != "nvtx";
                  });
  // Without a caching allocator, tensors are memory of the driver.
  if (!has_blocks && BytesOf(Category::kParameters) + BytesOf(Category::kActivations) == 0)
    return "no blocks of a framework's allocator are recorded: what the memory is for is not "
           "known";
  if (trace_.unknowns.gaps > 0)
    return absl::StrCat("events are missing in ", trace_.unknowns.gaps,
                        trace_.unknowns.gaps == 1 ? " place" : " places",
                        ": the peak is not known");
  if (report_.is_out_of_memory && options_.capacity)
    return "--capacity cannot be applied to a program that ran out of memory; gpumemtrace whatif "
           "--capacity replays it with another one";
  if (report_.is_out_of_memory) return "";
  const uint64_t unknown = BytesOf(Category::kUnknown);
  if (unknown * 100 > report_.peak_bytes * kMaxUnknownPercent)
    return absl::StrCat("it is not known what ", unknown * 100 / report_.peak_bytes,
                        " % of the memory at the peak is for");
  if (examination_.cycles().cycles.empty()) return "no steps of a training loop are recorded";
  if (examination_.cycles().cycles.size() < 2)
    return "it has fewer than two steps of a training loop: the first step does not hold all "
           "that later ones do";
  return "";
}

uint64_t Adviser::BytesOf(Category category) const {
  for (const CategoryUse& use : report_.categories) {
    if (use.category == category) return use.bytes;
  }
  return 0;
}

void Adviser::ReadHistory() {
  auto history = HistoryOf(examination_, report_.device);
  if (!history.ok()) {
    report_.not_replayable = std::string(history.status().message());
  } else {
    history_ = *std::move(history);
    report_.is_replayable = Reproduce(*history_).is_good();
    if (!report_.is_replayable)
      report_.not_replayable = "a replay does not agree with the recording";
    if (history_->capacity) report_.capacity_bytes = history_->capacity;
  }
  if (options_.capacity) report_.capacity_bytes = options_.capacity;
  if (report_.capacity_bytes) {
    report_.fits = report_.is_replayable ? FitsCapacity(*history_, history_->settings)
                                         : report_.used_bytes <= *report_.capacity_bytes;
  }
  report_.has_room =
      report_.capacity_bytes && report_.used_bytes * 100 < *report_.capacity_bytes * kRoomPercent;
}

// ---- Changes

// By how much the peak falls, alone and after all changes before it.
void Adviser::Add(Advice advice, const Change& change) {
  ProgramChange alone(trace_, report_.device);
  const absl::Status applied = change(alone);
  if (!applied.ok()) {
    if (advice.why_not.empty()) advice.why_not = std::string(applied.message());
    report_.advice.push_back(std::move(advice));
    return;
  }
  if (report_.is_out_of_memory) return AddAfterFailure(std::move(advice), alone);
  advice.saved_bytes = Less(report_.peak_bytes, alone.FindPeak().bytes);
  advice.freed_bytes = Less(report_.peak_bytes, alone.HeldAt(peak_));
  ProgramChange before = *together_;
  if (change(*together_).ok()) {
    const uint64_t peak = together_->FindPeak().bytes;
    if (peak < together_peak_) {
      advice.further_bytes = together_peak_ - peak;
      together_peak_ = peak;
    } else {
      together_->Replace(std::move(before));
    }
  }
  replays_.resize(report_.advice.size() + 1);
  replays_.back() = change;
  report_.advice.push_back(std::move(advice));
}

void Adviser::Try() {
  together_peak_ = report_.peak_bytes;
  Leak();
  SetToNone();
  OptimizerStep();
  Settings();
  HalfPrecision();
  Attention();
  MicroBatch();
  Checkpointing();
  EightBit();
  Sharding();
  Offload();
  InPlace();
  EmptyCache();
  report_.together_bytes = report_.peak_bytes - together_peak_;
  for (size_t i = 0; i < report_.advice.size(); ++i) {
    Advice& advice = report_.advice[i];
    if (options_.replay_all) ReplayOf(i);
    if (advice.applies() && report_.fits == false)
      advice.suffices = IsEnough(i) ? Suffices::kYes : Suffices::kNo;
    if (advice.name == "micro_batch") FindLargerBatch(2 * advice.freed_bytes);
  }
}

// The batch with which part of the capacity is left. `batch_bytes`: of the batch at the peak.
void Adviser::FindLargerBatch(uint64_t batch_bytes) {
  if (!report_.has_room || batch_bytes == 0) return;
  const uint64_t usable = *report_.capacity_bytes / 100 * kFullPercent;
  if (report_.is_replayable) {
    const auto largest = FindLargestBatch(*history_, trace_, *changes_, usable);
    if (largest.ok() && !largest->is_unlimited) report_.batch_factor = largest->factor();
  } else {
    report_.batch_factor = 1 + static_cast<double>(Less(usable, report_.used_bytes)) /
                                   static_cast<double>(batch_bytes);
  }
}

void Adviser::ReplayOf(size_t index) {
  Advice& advice = report_.advice[index];
  if (!report_.is_replayable || !advice.applies() || index >= replays_.size() || !replays_[index] ||
      advice.reserved_bytes)
    return;
  ProgramChange change(trace_, report_.device);
  if (!replays_[index](change).ok()) return;
  // Not limited by the device: what would be reserved if there were room.
  advice.reserved_bytes = PeakReserved(ChangedHistory(*history_, change), history_->settings);
}

bool Adviser::FitsCapacity(const AllocatorHistory& history,
                           const AllocatorSettings& settings) const {
  return !Simulate(history, {"", settings, report_.capacity_bytes}).is_out_of_memory();
}

bool Adviser::IsEnough(size_t index) const {
  const Advice& advice = report_.advice[index];
  if (!report_.is_replayable)
    return Less(report_.used_bytes, advice.saved_bytes) <= *report_.capacity_bytes;
  if (advice.is_of_reserved) return Fits(*history_, {"", best_settings_, report_.capacity_bytes});
  ProgramChange change(trace_, report_.device);
  return replays_[index](change).ok() &&
         FitsCapacity(ChangedHistory(*history_, change), history_->settings);
}

// ---- What to try next

uint64_t Adviser::WholeOf(const Advice& advice) const {
  return advice.is_of_reserved ? report_.reserved_bytes : report_.peak_bytes;
}

bool Adviser::IsWorth(const Advice& advice) const {
  return advice.applies() && advice.confidence != Confidence::kLow &&
         advice.saved_bytes * 100 >= WholeOf(advice) * kWorthPercent && advice.saved_bytes > 0;
}

// The first that is enough; otherwise the first that is worth it.
void Adviser::ChooseNext() {
  const std::vector<Advice>& all = report_.advice;
  auto next = std::find_if(all.begin(), all.end(), [&](const Advice& advice) {
    return IsWorth(advice) && advice.suffices == Suffices::kYes;
  });
  if (next == all.end())
    next =
        std::find_if(all.begin(), all.end(), [&](const Advice& advice) { return IsWorth(advice); });
  if (next == all.end()) return;
  report_.next = static_cast<size_t>(next - all.begin());
  ReplayOf(*report_.next);
}

// ---- After an out of memory (A3)

void Adviser::TakeActions() {
  const auto take = [&](const OomAction& action, bool helps) {
    Advice advice;
    advice.name = "oom_action";
    advice.what = action.what;
    advice.saved_bytes = advice.freed_bytes = helps ? action.effect_bytes : 0;
    advice.suffices = action.suffices;
    advice.confidence = action.is_estimate ? Confidence::kMedium : Confidence::kHigh;
    advice.why = action.why;
    if (!helps) advice.why_not = action.why;
    report_.advice.push_back(std::move(advice));
  };
  for (const OomAction& action : oom_.actions) take(action, true);
  for (const OomAction& action : oom_.not_helpful) take(action, false);
}

// The changes that `oom` does not list. Those that change the order of a step need a step that
// was recorded to its end.
void Adviser::TryBesideActions() {
  if (!oom_.phase || BytesOf(Category::kUnknown) * 100 > report_.peak_bytes * kMaxUnknownPercent)
    return;
  if (HasEarlierSteps()) {
    OptimizerStep();
    HalfPrecision();
  }
  Attention();
  Sharding();
  Offload();
  if (HasEarlierSteps()) InPlace();
}

bool Adviser::HasEarlierSteps() const {
  return oom_.evidence.expected.basis == ExpectedPeak::Basis::kEarlierSteps;
}

// Earlier steps show by how much the peak of a step falls. With smaller inputs, tensors of the
// batch save less; with larger ones more, which is not promised. Without earlier steps only what is
// freed at the failure counts.
void Adviser::AddAfterFailure(Advice advice, const ProgramChange& alone) {
  const OomEvidence& evidence = oom_.evidence;
  if (HasEarlierSteps()) {
    advice.saved_bytes = Less(report_.peak_bytes, alone.FindPeak().bytes);
    const bool is_of_batch =
        advice.name == "half_precision" || advice.name == "attention" || advice.name == "in_place";
    if (is_of_batch && evidence.expected.input_ratio < 1) {
      advice.saved_bytes = static_cast<uint64_t>(static_cast<double>(advice.saved_bytes) *
                                                 evidence.expected.input_ratio);
    }
  } else {
    const ProgramChange recorded(trace_, report_.device);
    advice.saved_bytes = Less(recorded.HeldAt(oom_.step), alone.HeldAt(oom_.step));
  }
  advice.freed_bytes = advice.saved_bytes;
  // Pieces that the request could not use remain unusable, and a leak fills what is saved.
  const uint64_t usable =
      Less(evidence.available_bytes, evidence.split.pinned + evidence.split.stream);
  const bool suffices = oom_.verdict != OomVerdict::kLeak && evidence.expected.bytes > 0 &&
                        advice.saved_bytes > 0 &&
                        advice.saved_bytes >= ShortBytes(evidence, usable);
  if (suffices) advice.suffices = Suffices::kPerhaps;
  report_.advice.push_back(std::move(advice));
}

// The first of those that most likely suffice.
void Adviser::ChooseAction() {
  for (size_t i = 0; i < report_.advice.size(); ++i) {
    const Advice& advice = report_.advice[i];
    if (!advice.applies() || advice.saved_bytes == 0 || advice.confidence == Confidence::kLow)
      continue;
    if (!report_.next || advice.suffices > report_.advice[*report_.next].suffices) report_.next = i;
  }
}

AdviseReport Advise(const Examination& examination, const Categories& categories,
                    const LeakReport& leaks, const OomReport& oom, const AdviseOptions& options) {
  return Adviser(examination, categories, leaks, oom, options).Advise();
}

}  // namespace gmt::analysis
