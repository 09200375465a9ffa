#include "analysis/oom/actions.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/whatif/changes.h"
#include "analysis/whatif/replay.h"

namespace gmt::analysis {
namespace {

// An action counts as enough only if it suffices for a peak that is this much higher than expected.
// The cases: steps repeat; their inputs vary; this step is larger than all before, so others may be
// larger still; no step was seen to its end.
constexpr uint64_t kDoubtPercent = 5, kDoubtOfOtherInputsPercent = 20,
                   kDoubtOfLargestStepPercent = 40, kDoubtWithoutStepsPercent = 40;
constexpr double kSameInputs = 0.05;  // tolerated deviation of the ratio of inputs from 1
constexpr uint64_t kSamePercent = 1;  // tolerated difference of two peaks

// Expandable segments eliminate fragmentation between segments. Long-lived blocks still lie between
// others, the more so if blocks come and go in each step. A replay shows how much; this is for
// recordings that cannot be replayed.
constexpr uint64_t kLostToExpandablePercent = 10, kLostInTrainingPercent = 30;

constexpr char kExpandable[] = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";

class Advisor {
 public:
  Advisor(const Examination& examination, const OomFacts& facts, const LeakAtFailure& leak,
          OomReport& report)
      : examination_(examination),
        facts_(facts),
        evidence_(facts.evidence),
        leak_(leak),
        report_(report) {}

  void Advise() {
    FixLeak();
    if (facts_.is_pytorch) {
      EmptyCache();
      Expandable();
      PrivatePools();
      Training();
    } else if (!facts_.by_framework && evidence_.free_bytes > 0) {
      EmptyCacheForOthers();
    }
    Limit();
    OtherProcesses();
    Outside();
    std::stable_sort(
        report_.actions.begin(), report_.actions.end(),
        [](const OomAction& a, const OomAction& b) { return a.effect_bytes > b.effect_bytes; });
    if (report_.verdict != OomVerdict::kFragmentation) return;
    std::stable_partition(report_.actions.begin(), report_.actions.end(),
                          [](const OomAction& action) { return action.what == kExpandable; });
  }

 private:
  // Offers an action that lowers the peak or makes more memory available. Pieces that the request
  // could not use remain unusable. If a leak is to blame, a lower peak only delays the next
  // failure.
  void Offer(std::string what, uint64_t effect, bool is_estimate, std::string why) {
    const uint64_t pieces = evidence_.split.pinned + evidence_.split.stream;
    const uint64_t usable = evidence_.available_bytes - std::min(evidence_.available_bytes, pieces);
    const auto suffices_beside = [&](uint64_t doubt) {
      return effect >= ShortBytes(evidence_, usable - std::min(usable, doubt));
    };
    const bool cures = report_.verdict != OomVerdict::kLeak || what.starts_with("fix ");
    const Suffices suffices = !cures                         ? Suffices::kNo
                              : suffices_beside(Doubt())     ? Suffices::kYes
                              : suffices_beside(/*doubt=*/0) ? Suffices::kPerhaps
                                                             : Suffices::kNo;
    Add({std::move(what), effect, suffices, is_estimate, std::move(why)});
  }
  // Returns by how much the peak may exceed the expected one, in this step or a later one.
  uint64_t Doubt() const {
    const ExpectedPeak& expected = evidence_.expected;
    if (!report_.phase) return 0;
    if (expected.basis != ExpectedPeak::Basis::kEarlierSteps) {
      return expected.perhaps_bytes + PercentOf(expected.bytes, kDoubtWithoutStepsPercent);
    }
    if (expected.bytes > expected.earlier_peak + PercentOf(expected.earlier_peak, kDoubtPercent)) {
      return PercentOf(expected.bytes, kDoubtOfLargestStepPercent);
    }
    // A step that is a little larger than all before it may be one of a row that grows.
    const bool is_largest =
        expected.bytes > expected.earlier_peak + PercentOf(expected.earlier_peak, kSamePercent);
    const bool is_like_before = std::abs(expected.input_ratio - 1) < kSameInputs && !is_largest;
    return PercentOf(expected.bytes, is_like_before ? kDoubtPercent : kDoubtOfOtherInputsPercent);
  }

  // Offers an action that merges available memory or makes it usable. `lost` bytes remain unusable;
  // with `doubt`, that many more may. A leak fills that memory, too.
  void OfferToJoin(std::string what, uint64_t effect, bool is_estimate, std::string why,
                   uint64_t lost = 0, uint64_t doubt = 0) {
    const auto suffices_without = [&](uint64_t bytes) {
      const uint64_t available = evidence_.available_bytes;
      return ShortBytes(evidence_, available - std::min(available, bytes)) == 0;
    };
    const Suffices suffices = report_.verdict == OomVerdict::kLeak ? Suffices::kNo
                              : suffices_without(lost + doubt)     ? Suffices::kYes
                              : suffices_without(lost)             ? Suffices::kPerhaps
                                                                   : Suffices::kNo;
    Add({std::move(what), effect, suffices, is_estimate, std::move(why)});
  }
  // Adds the action to those worth doing, or to those worth mentioning as not helpful. What is
  // enough for the step must also be enough for the request.
  void Add(OomAction action) {
    if (action.effect_bytes == 0 || action.effect_bytes < MissingBytes(evidence_))
      action.suffices = Suffices::kNo;
    const bool helps =
        action.suffices == Suffices::kYes || action.effect_bytes >= evidence_.needed_bytes / 2;
    (helps && action.effect_bytes > 0 ? report_.actions : report_.not_helpful)
        .push_back(std::move(action));
  }

  uint64_t LiveOf(Category category) const {
    for (const CategoryUse& use : report_.categories) {
      if (use.category == category) return use.bytes;
    }
    return 0;
  }

  void FixLeak() {
    if (leak_.suspect == nullptr) return;
    const auto& frame = leak_.suspect->common_frame;
    const std::string place =
        frame ? absl::StrCat(" at ", frame->Name(), " (", frame->Place(), ")") : "";
    Offer(absl::StrCat("fix ", leak_.suspect->id, place), leak_.bytes, false,
          "what it has kept so far");
  }

  void EmptyCache() {
    const uint64_t effect = evidence_.split.releasable;
    const bool during_capture = evidence_.captures > 0 && effect > 0;
    OfferToJoin(during_capture ? "torch.cuda.empty_cache() before the capture" : "empty_cache()",
                effect, false,
                during_capture ? "PyTorch does not release its cache during the capture of a graph"
                               : "PyTorch releases all memory without blocks before it fails");
  }

  void EmptyCacheForOthers() {
    OfferToJoin("torch.cuda.empty_cache() before this call", evidence_.split.releasable, false,
                "memory cached by PyTorch is unavailable to other code");
  }

  void Expandable() {
    if (AllocatorOption(examination_.trace(), "expandable_segments") == "True") {
      OfferToJoin(kExpandable, 0, false, "already enabled");
    } else if (ShortBytes(evidence_, evidence_.available_bytes) > 0) {
      OfferToJoin(kExpandable, 0, true, "the step needs more than is available, fragmented or not");
    } else {
      OfferToJoin(kExpandable, facts_.fragmentation.expandable_bytes, true,
                  "merges the free pieces of a stream", LostToExpandable(), Doubt());
    }
  }

  // What could not be used at the expected peak, with expandable segments: in proportion to what a
  // replay needs besides its blocks.
  uint64_t LostToExpandable() const {
    const ExpectedPeak& expected = evidence_.expected;
    const auto history = HistoryOf(examination_, report_.device);
    if (!history.ok() || !Reproduce(*history).is_good()) {
      return PercentOf(expected.bytes,
                       report_.phase ? kLostInTrainingPercent : kLostToExpandablePercent);
    }
    AllocatorSettings settings = history->settings;
    settings.expandable_segments = true;
    const Need need = NeedOf(*history, settings);
    const double excess = static_cast<double>(need.least_reserved) /
                              static_cast<double>(std::max<uint64_t>(need.peak_allocated, 1)) -
                          1;
    return static_cast<uint64_t>(excess * static_cast<double>(expected.bytes));
  }

  void PrivatePools() {
    const uint64_t effect = evidence_.split.private_pool;
    if (effect == 0) return;
    OfferToJoin("free unused graphs and MemPools, or let graphs share one pool", effect, true,
                "free memory in private pools");
  }

  void Training() {
    if (evidence_.expected.basis == ExpectedPeak::Basis::kGrowth) {
      Offer("keep the parts on the CPU: x.cpu() before torch.cat", evidence_.needed_bytes, true,
            "the tensor grows with each batch, without a known bound");
      return;
    }
    if (const uint64_t cache = LiveOf(Category::kKvCache); cache >= evidence_.live_bytes / 2) {
      Offer("generate fewer sequences at a time, or fewer tokens (max_new_tokens)", cache / 2, true,
            "half of the KV cache");
      Offer("cache_implementation=\"offloaded\": all but two layers' KV cache in host memory",
            cache / 4 * 3, true, "most of the KV cache");
      return;
    }
    HalfTheBatch();
    Checkpoint();
    const uint64_t gradients = LiveOf(Category::kGradients);
    const bool in_forward = report_.phase == Phase::kForward;
    const bool at_peak = in_forward && !evidence_.expected.gradients_go;
    if (gradients > 0 || in_forward) {
      Offer("optimizer.zero_grad(set_to_none=True) before the forward pass",
            at_peak ? gradients : 0, false,
            at_peak      ? "gradients that live through the forward pass"
            : in_forward ? "no gradients are live at the peak of the step"
                         : "the failure is not in a forward pass: gradients are needed");
    }
    const uint64_t state = LiveOf(Category::kOptimizerState);
    const uint64_t coming = report_.still_to_come ? report_.still_to_come->optimizer_bytes : 0;
    if (state > 0) {
      Offer("an 8-bit optimizer", state - EightBitBytes(state), true,
            "three quarters of the optimizer's state");
    } else if (coming > 0 && evidence_.total_bytes > 0 &&
               report_.still_to_come->floor_bytes > evidence_.total_bytes) {
      report_.findings.push_back(
          "parameters, gradients and the optimizer's state do not fit this device, at any batch "
          "size");
    }
  }

  // Activations, temporaries and inputs. Leaked memory does not belong to this batch.
  uint64_t OfTheBatch() const {
    const uint64_t bytes = LiveOf(Category::kActivations) + LiveOf(Category::kInputs) +
                           LiveOf(Category::kRecomputed) + LiveOf(Category::kTemporaries);
    return bytes - std::min(bytes, leak_.bytes);
  }

  void HalfTheBatch() {
    if (!report_.phase || OfTheBatch() == 0) return;
    const ExpectedPeak& expected = evidence_.expected;
    if (expected.basis == ExpectedPeak::Basis::kSoFar) {
      Offer("half the batch size", OfTheBatch() / 2 + evidence_.needed_bytes / 2, true,
            "half of activations, temporaries and inputs, and of the request");
    } else {
      Offer("half the batch size", expected.bytes - expected.WithInputs(0.5), true,
            "half of what the inputs take at the peak of the step");
    }
  }

  void Checkpoint() {
    if (!report_.phase || OfTheBatch() == 0) return;
    const uint64_t saved =
        report_.checkpoint_bytes - std::min(report_.checkpoint_bytes, leak_.bytes);
    const ExpectedPeak& expected = evidence_.expected;
    const uint64_t above = expected.bytes - std::min(expected.bytes, expected.least_bytes);
    Offer("checkpoint the layers that hold most activations",
          expected.bytes == 0 ? saved : std::min(saved, above), true,
          "activations of repeated layers except one, which is recomputed");
  }

  void Limit() {
    if (!evidence_.limit_bytes || report_.verdict != OomVerdict::kCap) return;
    Offer("raise the limit: set_per_process_memory_fraction, per_process_memory_fraction",
          evidence_.driver_free_bytes.value_or(evidence_.needed_bytes), false,
          "the driver's free memory");
  }

  void OtherProcesses() {
    if (evidence_.other_processes_bytes == 0) return;
    Offer("end the other processes on this GPU, or use another GPU",
          evidence_.other_processes_bytes, false, "what they hold");
  }

  void Outside() {
    if (facts_.avoidable_outside_bytes == 0 || evidence_.reserved_bytes == 0) return;
    Offer("reduce the memory of this process outside the framework", facts_.avoidable_outside_bytes,
          true, "allocations of libraries and of the program itself");
  }

  const Examination& examination_;
  const OomFacts& facts_;
  const OomEvidence& evidence_;
  const LeakAtFailure& leak_;
  OomReport& report_;
};

}  // namespace

void AddActions(const Examination& examination, const OomFacts& facts, const LeakAtFailure& leak,
                OomReport& report) {
  Advisor(examination, facts, leak, report).Advise();
}

}  // namespace gmt::analysis
