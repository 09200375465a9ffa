#include "analysis/oom/actions.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmt::analysis {
namespace {

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
    MendLeak();
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
  // Worth doing, or worth saying that it is not.
  void Offer(std::string what, uint64_t effect, bool is_estimate, std::string why) {
    OomAction action{std::move(what), effect, false, is_estimate, std::move(why)};
    action.is_enough = effect > 0 && effect >= MissingBytes(evidence_);
    const bool helps = action.is_enough || effect >= evidence_.needed_bytes / 2;
    (helps && effect > 0 ? report_.actions : report_.not_helpful).push_back(std::move(action));
  }

  uint64_t LiveOf(Category category) const {
    for (const CategoryUse& use : report_.categories) {
      if (use.category == category) return use.bytes;
    }
    return 0;
  }

  void MendLeak() {
    if (leak_.suspect == nullptr) return;
    const auto& frame = leak_.suspect->common_frame;
    const std::string place =
        frame ? absl::StrCat(" at ", frame->Name(), " (", frame->Place(), ")") : "";
    Offer(absl::StrCat("mend ", leak_.suspect->id, place), leak_.bytes, false,
          "what it has kept up to here");
  }

  void EmptyCache() {
    const uint64_t effect = evidence_.split.releasable;
    const bool during_capture = evidence_.captures > 0 && effect > 0;
    Offer(during_capture ? "torch.cuda.empty_cache() before the capture" : "empty_cache()", effect,
          false,
          during_capture ? "PyTorch does not give its cache back while a graph is captured"
                         : "PyTorch gives back all that is without a block before it gives up");
  }

  void EmptyCacheForOthers() {
    Offer("torch.cuda.empty_cache() before this call", evidence_.split.releasable, false,
          "memory that PyTorch caches is not to be had by others");
  }

  void Expandable() {
    const bool is_on = AllocatorOption(examination_.trace(), "expandable_segments") == "True";
    Offer(kExpandable, is_on ? 0 : facts_.fragmentation.expandable_bytes, !is_on,
          is_on ? "it is on already" : "joins the free pieces of a stream");
  }

  void PrivatePools() {
    const uint64_t effect = evidence_.split.private_pool;
    if (effect == 0) return;
    Offer("free graphs and MemPools that are not needed, or let graphs share one pool", effect,
          true, "what is free in private pools");
  }

  void Training() {
    // What has leaked is not of this batch.
    uint64_t activations = LiveOf(Category::kActivations) + LiveOf(Category::kInputs) +
                           LiveOf(Category::kRecomputed) + LiveOf(Category::kTemporaries);
    activations -= std::min(activations, leak_.bytes);
    if (activations > 0 && report_.phase) {
      Offer("half the batch size", activations / 2 + evidence_.needed_bytes / 2, true,
            "half of activations, temporaries and inputs, and of the request");
      Offer("checkpoint the layers that hold most activations", Checkpointed(), true,
            "activations less the largest line, which is made again");
    }
    const uint64_t gradients = LiveOf(Category::kGradients);
    const bool in_forward = report_.phase == Phase::kForward;
    if (gradients > 0 || in_forward) {
      Offer("optimizer.zero_grad(set_to_none=True) before the forward pass",
            in_forward ? gradients : 0, false,
            in_forward ? "gradients that live through the forward pass"
                       : "the failure is not in a forward pass: gradients are needed");
    }
    const uint64_t state = LiveOf(Category::kOptimizerState);
    const uint64_t coming = report_.still_to_come ? report_.still_to_come->optimizer_bytes : 0;
    if (state > 0) {
      Offer("an 8-bit optimizer", state / 4 * 3, true, "three quarters of the optimizer's state");
    } else if (coming > 0 && evidence_.total_bytes > 0 &&
               report_.still_to_come->floor_bytes > evidence_.total_bytes) {
      report_.findings.push_back(
          "parameters, gradients and fp32 Adam state do not fit this device, at any batch size");
    }
  }

  // Activations, less those of the line that holds most.
  uint64_t Checkpointed() const {
    uint64_t largest = 0;
    for (const OomHolder& holder : report_.holders) {
      if (holder.category == Category::kActivations && holder.count > 0) {
        largest = std::max(largest, holder.bytes / holder.count);
      }
    }
    const uint64_t activations = LiveOf(Category::kActivations);
    // What has leaked is kept with checkpoints too.
    return activations - std::min(activations, largest + leak_.bytes);
  }

  void Limit() {
    if (!evidence_.limit_bytes || report_.verdict != OomVerdict::kCap) return;
    Offer("raise the limit: set_per_process_memory_fraction, per_process_memory_fraction",
          evidence_.driver_free_bytes.value_or(evidence_.needed_bytes), false,
          "what the driver has free");
  }

  void OtherProcesses() {
    if (evidence_.other_processes_bytes == 0) return;
    Offer("end the other processes on this GPU, or use another one",
          evidence_.other_processes_bytes, false, "what they hold");
  }

  void Outside() {
    if (facts_.avoidable_outside_bytes == 0 || evidence_.reserved_bytes == 0) return;
    Offer("reduce what this process holds beside the framework", facts_.avoidable_outside_bytes,
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
