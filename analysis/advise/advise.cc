#include "analysis/advise/advise.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analysis/categories/tensor_facts.h"
#include "analysis/oom/optimizer.h"
#include "analysis/text.h"
#include "analysis/whatif/changes.h"
#include "analysis/whatif/largest_batch.h"
#include "analysis/whatif/replay.h"

namespace gmt::analysis {
namespace {

// Less than this part of the peak, in percent, is not worth a change.
constexpr uint64_t kWorthPercent = 2;
// Nothing is needed if the process uses less than this part of what the device can provide.
constexpr uint64_t kRoomPercent = 75;
// Settings of the allocator are searched if at least this part of the reserved memory is not in
// blocks at its peak.
constexpr uint64_t kCachedPercent = 5;
constexpr uint64_t kMostUnknownPercent = 50;
// With a larger batch, at most this part of what the device can provide is to be used.
constexpr uint64_t kFullPercent = 88;

constexpr std::string_view kSettings[] = {
    "expandable_segments:True",   "max_split_size_mb:64",    "max_split_size_mb:128",
    "max_split_size_mb:256",      "max_split_size_mb:512",   "roundup_power2_divisions:4",
    "roundup_power2_divisions:8", "large_segment_size_mb:64"};

uint64_t Less(uint64_t a, uint64_t b) { return a - std::min(a, b); }

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

  AdviseReport Advise() && {
    report_.is_out_of_memory = oom_.verdict != OomVerdict::kNone;
    report_.device = report_.is_out_of_memory ? oom_.device
                                              : options_.device.value_or(examination_.MainDevice());
    Measure();
    report_.refusal = Refusal();
    if (!report_.refusal.empty()) return std::move(report_);
    if (report_.is_out_of_memory) {
      TakeActions();
    } else {
      ReadHistory();
      Changes changes(examination_, categories_, report_.device);
      changes_ = &changes;
      together_.emplace(trace_, report_.device);
      Try();
      ChooseNext();
    }
    return std::move(report_);
  }

 private:
  // ---- The recording

  void Measure() {
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

  std::string Refusal() const {
    if (report_.device == kHostDevice || report_.peak_bytes == 0)
      return "no memory of a GPU is recorded";
    const bool has_blocks = std::any_of(examination_.replay().heaps().begin(),
                                        examination_.replay().heaps().end(), [&](const auto& heap) {
                                          return heap.first.first == report_.device &&
                                                 heap.first.second > kHostHeap &&
                                                 heap.second.bytes.peak > 0 &&
                                                 trace_.heaps[heap.first.second] != "nvtx";
                                        });
    if (!has_blocks)
      return "no blocks of a framework's allocator are recorded: what the memory is for is not "
             "known";
    if (trace_.unknowns.gaps > 0)
      return absl::StrCat("events are missing in ", trace_.unknowns.gaps,
                          trace_.unknowns.gaps == 1 ? " place" : " places",
                          ": the peak is not known");
    if (report_.is_out_of_memory) return "";
    const uint64_t unknown = BytesOf(Category::kUnknown);
    if (unknown * 100 > report_.peak_bytes * kMostUnknownPercent)
      return absl::StrCat("it is not known what ", unknown * 100 / report_.peak_bytes,
                          " % of the memory at the peak is for");
    if (examination_.cycles().cycles.empty()) return "no steps of a training loop are recorded";
    if (examination_.cycles().cycles.size() < 2)
      return "it has fewer than two steps of a training loop: the first step does not hold all "
             "that later ones do";
    return "";
  }

  uint64_t BytesOf(Category category) const {
    for (const CategoryUse& use : report_.categories) {
      if (use.category == category) return use.bytes;
    }
    return 0;
  }

  void ReadHistory() {
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

  using Change = std::function<absl::Status(ProgramChange&)>;

  uint64_t Replayed(const AllocatorHistory& history, const AllocatorSettings& settings) const {
    // Not limited by the device: what would be reserved if there were room.
    return Simulate(history, {"", settings, AllocatorSettings::kUnlimited}).peak_reserved;
  }

  // By how much the peak falls, alone and after all changes before it.
  void Add(Advice advice, const Change& change) {
    ProgramChange alone(trace_, report_.device);
    const absl::Status applied = change(alone);
    if (!applied.ok()) {
      if (advice.why_not.empty()) advice.why_not = std::string(applied.message());
      report_.advice.push_back(std::move(advice));
      return;
    }
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

  void Try() {
    together_peak_ = report_.peak_bytes;
    Leak();
    SetToNone();
    Fused();
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
  void FindLargerBatch(uint64_t batch_bytes) {
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

  void ReplayOf(size_t index) {
    Advice& advice = report_.advice[index];
    if (!report_.is_replayable || !advice.applies() || index >= replays_.size() ||
        !replays_[index] || advice.reserved_bytes)
      return;
    ProgramChange change(trace_, report_.device);
    if (!replays_[index](change).ok()) return;
    advice.reserved_bytes = Replayed(ChangedHistory(*history_, change), history_->settings);
  }

  bool FitsCapacity(const AllocatorHistory& history, const AllocatorSettings& settings) const {
    return !Simulate(history, {"", settings, report_.capacity_bytes}).is_out_of_memory();
  }
  bool IsEnough(size_t index) const {
    const Advice& advice = report_.advice[index];
    if (!report_.is_replayable)
      return Less(report_.used_bytes, advice.saved_bytes) <= *report_.capacity_bytes;
    if (advice.is_of_reserved) return FitsCapacity(*history_, best_settings_);
    ProgramChange change(trace_, report_.device);
    return replays_[index](change).ok() &&
           FitsCapacity(ChangedHistory(*history_, change), history_->settings);
  }

  void Leak() {
    Advice advice;
    advice.name = "fix_leak";
    advice.cost = "none";
    const LeakSuspect* found = nullptr;
    for (const LeakSuspect& suspect : leaks_.suspects) {
      if (suspect.tier != LeakTier::kPossible && suspect.device == report_.device &&
          !suspect.stacks.empty() && found == nullptr)
        found = &suspect;
    }
    if (found == nullptr) {
      advice.what = "fix a leak";
      advice.why_not = leaks_.enough ? "no leak was found" : "too few steps to find a leak";
      report_.advice.push_back(std::move(advice));
      return;
    }
    advice.what = absl::StrCat("fix ", found->id);
    if (found->common_frame) {
      advice.where =
          absl::StrCat(found->common_frame->Name(), " (", found->common_frame->Place(), ")");
    }
    advice.confidence = found->tier == LeakTier::kLeak ? Confidence::kHigh : Confidence::kMedium;
    advice.why = "what it keeps after each step is not needed";
    Add(std::move(advice),
        [this, found](ProgramChange& change) { return changes_->FixLeak(*found, change); });
  }

  void SetToNone() {
    Advice advice;
    advice.name = "set_to_none";
    advice.what = "optimizer.zero_grad(set_to_none=True) directly after optimizer.step()";
    advice.cost = "none";
    advice.confidence = Confidence::kHigh;
    advice.why = "gradients then do not live through the next forward pass";
    Add(std::move(advice),
        [this](ProgramChange& change) { return changes_->SetGradientsToNone(change); });
  }

  Optimizer FoundOptimizer() const { return FindOptimizer(examination_, trace_.end_t_ns); }

  void Fused() {
    const Optimizer optimizer = FoundOptimizer();
    const std::string_view name = optimizer.name;
    const bool can_fuse =
        name == "Adam" || name == "AdamW" || name == "SGD" || name == "Adagrad" || name.empty();
    Advice advice;
    advice.name = "fused_optimizer";
    advice.what = name.empty() ? "fused=True for the optimizer"
                               : absl::StrCat("torch.optim.", optimizer.name, "(..., fused=True)");
    advice.where = optimizer.place;
    advice.cost = "none";
    advice.confidence = Confidence::kHigh;
    advice.why = "the optimizer's step then allocates no temporary memory";
    if (!can_fuse) {
      advice.what = absl::StrCat("torch.optim.", optimizer.name, "(..., foreach=False)");
      advice.cost = "a slower step of the optimizer";
      advice.confidence = Confidence::kMedium;
      advice.why = "the step then has temporary memory for one parameter at a time";
    }
    if (!name.empty() && !optimizer.is_known) {
      advice.what = "another implementation of the optimizer";
      advice.why_not = absl::StrCat(optimizer.name, " is not one of PyTorch's optimizers");
      report_.advice.push_back(std::move(advice));
      return;
    }
    Add(std::move(advice), [this, can_fuse](ProgramChange& change) {
      return changes_->FuseOptimizer(can_fuse, change);
    });
  }

  // The setting with which a replay reserves least.
  void Settings() {
    Advice advice;
    advice.name = "allocator_settings";
    advice.what = "PYTORCH_CUDA_ALLOC_CONF";
    advice.is_of_reserved = true;
    advice.cost = "none";
    advice.confidence = Confidence::kHigh;
    const uint64_t cached = Less(report_.reserved_bytes, report_.peak_bytes);
    if (!report_.is_replayable) {
      advice.why_not = report_.not_replayable;
    } else if (cached * 100 < report_.reserved_bytes * kCachedPercent) {
      advice.why_not = "blocks fill almost all reserved memory at the peak";
    } else {
      const uint64_t recorded = Replayed(*history_, history_->settings);
      uint64_t least = recorded;
      for (const std::string_view text : kSettings) {
        AllocatorSettings settings = history_->settings;
        if (!settings.Change(text).ok() || settings == history_->settings) continue;
        const uint64_t reserved = Replayed(*history_, settings);
        if (reserved >= least) continue;
        least = reserved;
        best_settings_ = settings;
        advice.what = absl::StrCat("PYTORCH_CUDA_ALLOC_CONF=", std::string(text));
      }
      advice.saved_bytes = advice.freed_bytes = recorded - least;
      advice.reserved_bytes = least;
      advice.why = "the setting of eight that reserves least in a replay";
      if (least == recorded) advice.why_not = "no setting reserves less in a replay";
    }
    report_.advice.push_back(std::move(advice));
  }

  void HalfPrecision() {
    Advice advice;
    advice.name = "half_precision";
    advice.what =
        "with torch.autocast(\"cuda\", dtype=torch.bfloat16): around the forward pass and the loss";
    advice.cost = "less precision; faster on GPUs since Ampere";
    advice.confidence = trace_.role_changes.empty() ? Confidence::kLow : Confidence::kMedium;
    advice.why = trace_.role_changes.empty()
                     ? "half of the activations; types and nodes of tensors are not recorded"
                     : "half of what products save, less copies of the weights";
    Add(std::move(advice),
        [this](ProgramChange& change) { return changes_->UseHalfPrecision(change); });
  }

  void Attention() {
    Advice advice;
    advice.name = "attention";
    advice.what = "torch.nn.functional.scaled_dot_product_attention(q, k, v)";
    advice.cost = "none; faster";
    advice.why = "no tensor then has the square of the sequence";
    const std::optional<TensorFacts> facts =
        FindTensorFacts(examination_, categories_, report_.device, peak_);
    if (facts && facts->batch && !facts->batch->square.empty()) {
      advice.where = facts->batch->square.front().place;
      advice.confidence = facts->batch->certain ? Confidence::kMedium : Confidence::kLow;
    }
    Add(std::move(advice), [this, facts](ProgramChange& change) {
      return changes_->UseFlashAttention(facts.value_or(TensorFacts()), change);
    });
  }

  void MicroBatch() {
    Advice advice;
    advice.name = "micro_batch";
    advice.what =
        "two micro-batches of half the batch: (loss / 2).backward() for each, then one "
        "optimizer.step()";
    advice.cost = "smaller kernels: somewhat slower";
    advice.confidence = Confidence::kMedium;
    advice.why = "half of activations, temporaries and inputs; gradients live through both";
    Add(std::move(advice), [this](ProgramChange& change) { return changes_->HalveBatch(change); });
  }

  void Checkpointing() {
    Advice advice;
    advice.name = "checkpoint";
    advice.what = "torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)";
    advice.cost = "20 to 33 % more computation";
    advice.confidence = Confidence::kMedium;
    ProgramChange change(trace_, report_.device);
    const absl::StatusOr<CheckpointedLayers> layers = changes_->Checkpoint("", change);
    if (layers.ok()) {
      if (layers->name == kSequential) {
        advice.what = absl::StrCat("torch.utils.checkpoint.checkpoint_sequential(model, ",
                                   layers->count + 1, ", x, use_reentrant=False)");
        advice.where = layers->caller;
      } else {
        advice.where = absl::StrCat(layers->count, " ", layers->name, " layers",
                                    layers->caller.empty() ? "" : ", called in ", layers->caller);
      }
      advice.why = absl::StrCat("all but the outputs of these layers, ", Bytes(layers->bytes),
                                " at the peak, is recomputed, one layer at a time");
    }
    Add(std::move(advice), [this, layers](ProgramChange& applied) {
      if (!layers.ok()) return layers.status();
      return changes_->Checkpoint(layers->name, applied).status();
    });
  }

  void EightBit() {
    const Optimizer optimizer = FoundOptimizer();
    Advice advice;
    advice.name = "eight_bit_optimizer";
    const std::string_view name = optimizer.name;
    const bool exists = name == "Adam" || name == "AdamW" || name == "SGD" || name == "RMSprop" ||
                        name == "Adagrad";
    advice.what = exists ? absl::StrCat("bitsandbytes.optim.", optimizer.name, "8bit")
                         : "an 8-bit optimizer of bitsandbytes";
    advice.where = optimizer.place;
    advice.cost = "another library; slightly different training";
    advice.confidence = Confidence::kMedium;
    advice.why = "three quarters of the optimizer's state";
    Add(std::move(advice),
        [this](ProgramChange& change) { return changes_->UseEightBitState(change); });
  }

  void Sharding() {
    const uint64_t gpus = std::max<uint64_t>(options_.gpus, 2);
    Advice advice;
    advice.name = "shard";
    advice.what = absl::StrCat("torch.distributed.fsdp.fully_shard(layer) for each layer, over ",
                               gpus, " GPUs");
    advice.cost = absl::StrCat(gpus, " GPUs, and communication");
    advice.why =
        absl::StrCat("1/", gpus, " of parameters, gradients and state, and two gathered layers");
    const bool is_sharded = IsSharded();
    Add(std::move(advice), [this, gpus, is_sharded](ProgramChange& change) {
      return is_sharded ? absl::FailedPreconditionError("parameters are sharded already")
                        : changes_->Shard(gpus, change);
    });
  }
  bool IsSharded() const {
    const Rows& rows = trace_.rows;
    for (const RowId row : HeldAfter(trace_, peak_)) {
      if (categories_.Of(row).category != Category::kParameters &&
          categories_.Of(row).category != Category::kCommunication)
        continue;
      for (const FrameText& frame : examination_.stacks().Frames(rows.stack[row])) {
        if (absl::StrContains(frame.file, "/fsdp/") || absl::StrContains(frame.file, "_fsdp"))
          return true;
      }
    }
    return false;
  }

  void Offload() {
    Advice advice;
    advice.name = "offload_state";
    advice.what = "torchao.optim.CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW)";
    advice.cost = "2 to 5 times slower steps of the optimizer, and host memory";
    advice.confidence = Confidence::kMedium;
    advice.why = "the optimizer's state is in host memory";
    Add(std::move(advice),
        [this](ProgramChange& change) { return changes_->OffloadState(change); });
  }

  void InPlace() {
    Advice advice;
    advice.name = "in_place";
    advice.what = "operators that write into their input: inplace=True, add_(), mul_()";
    advice.cost = "none; autograd refuses it if the input is needed";
    advice.confidence = Confidence::kLow;
    advice.why = "inputs that are freed directly after they were read";
    Add(std::move(advice),
        [this](ProgramChange& change) { return changes_->ComputeInPlace(change); });
  }

  void EmptyCache() {
    Advice advice;
    advice.name = "empty_cache";
    advice.what = "torch.cuda.empty_cache()";
    advice.is_of_reserved = true;
    advice.cost = "driver calls that wait for the GPU";
    uint64_t calls = 0;
    for (const AllocatorAction& action : examination_.allocator_actions())
      calls += action.kind == AllocatorAction::kEmptyCache && action.device == report_.device;
    advice.why_not = "PyTorch releases its cache itself before a request fails";
    if (calls > 0)
      absl::StrAppend(&advice.why_not, "; it is called ", calls, calls == 1 ? " time" : " times",
                      " already");
    report_.advice.push_back(std::move(advice));
  }

  // ---- What to try next

  uint64_t WholeOf(const Advice& advice) const {
    return advice.is_of_reserved ? report_.reserved_bytes : report_.peak_bytes;
  }
  bool IsWorth(const Advice& advice) const {
    return advice.applies() && advice.confidence != Confidence::kLow &&
           advice.saved_bytes * 100 >= WholeOf(advice) * kWorthPercent && advice.saved_bytes > 0;
  }

  // The first that is enough; otherwise the first that is worth it.
  void ChooseNext() {
    const std::vector<Advice>& all = report_.advice;
    auto next = std::find_if(all.begin(), all.end(), [&](const Advice& advice) {
      return IsWorth(advice) && advice.suffices == Suffices::kYes;
    });
    if (next == all.end())
      next = std::find_if(all.begin(), all.end(),
                          [&](const Advice& advice) { return IsWorth(advice); });
    if (next == all.end()) return;
    report_.next = static_cast<size_t>(next - all.begin());
    ReplayOf(*report_.next);
  }

  // A3
  void TakeActions() {
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
    if (oom_.actions.empty()) return;
    const auto most = std::max_element(
        oom_.actions.begin(), oom_.actions.end(),
        [](const OomAction& a, const OomAction& b) { return a.suffices < b.suffices; });
    report_.next = static_cast<size_t>(most - oom_.actions.begin());
  }

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

}  // namespace

AdviseReport Advise(const Examination& examination, const Categories& categories,
                    const LeakReport& leaks, const OomReport& oom, const AdviseOptions& options) {
  return Adviser(examination, categories, leaks, oom, options).Advise();
}

}  // namespace gmt::analysis
