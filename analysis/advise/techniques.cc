#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analysis/advise/adviser.h"
#include "analysis/advise/catalog.h"
#include "analysis/categories/tensor_facts.h"
#include "analysis/text.h"
#include "analysis/whatif/settings_search.h"

namespace gmt::analysis {
namespace {

// Settings of the allocator are searched if at least this part of the reserved memory is not in
// blocks at its peak.
constexpr uint64_t kCachedPercent = 5;

}  // namespace

void Adviser::Leak() {
  Advice advice = NewAdvice("fix_leak");
  const LeakSuspect* found = nullptr;
  for (const LeakSuspect& suspect : leaks_.suspects) {
    if (suspect.tier != LeakTier::kPossible && suspect.device == report_.device &&
        !suspect.stacks.empty() && found == nullptr)
      found = &suspect;
  }
  if (found == nullptr) {
    advice.why_not = leaks_.enough ? "no leak was found" : "too few steps to find a leak";
    report_.advice.push_back(std::move(advice));
    return;
  }
  advice.what = absl::StrCat("fix ", found->id);
  if (found->common_frame) {
    advice.where =
        absl::StrCat(found->common_frame->Name(), " (", found->common_frame->Place(), ")");
  }
  if (found->tier == LeakTier::kLeak) advice.confidence = Confidence::kHigh;
  Add(std::move(advice),
      [this, found](ProgramChange& change) { return changes_->FixLeak(*found, change); });
}

void Adviser::SetToNone() {
  Add(NewAdvice("set_to_none"),
      [this](ProgramChange& change) { return changes_->SetGradientsToNone(change); });
}

Optimizer Adviser::FoundOptimizer() const { return FindOptimizer(examination_, trace_.end_t_ns); }

// Optimizers of PyTorch that have no fused implementation can compute one parameter at a time.
void Adviser::OptimizerStep() {
  const Optimizer optimizer = FoundOptimizer();
  const std::string_view name = optimizer.name;
  const bool can_fuse =
      name == "Adam" || name == "AdamW" || name == "SGD" || name == "Adagrad" || name.empty();
  Advice advice = NewAdvice(can_fuse ? "fused_optimizer" : "single_tensor_optimizer");
  advice.where = optimizer.place;
  if (!name.empty() && !optimizer.is_known) {
    advice.what = "another implementation of the optimizer's step";
    advice.why_not = absl::StrCat(optimizer.name, " is not one of PyTorch's optimizers");
    report_.advice.push_back(std::move(advice));
    return;
  }
  if (!name.empty()) {
    advice.what = absl::StrCat("torch.optim.", optimizer.name,
                               can_fuse ? "(..., fused=True)" : "(..., foreach=False)");
  }
  Add(std::move(advice), [this, can_fuse](ProgramChange& change) {
    return changes_->FuseOptimizer(can_fuse, change);
  });
}

// The settings with which replays reserve least.
void Adviser::Settings() {
  Advice advice = NewAdvice("allocator_settings");
  const uint64_t cached = Less(report_.reserved_bytes, report_.peak_bytes);
  if (!report_.is_replayable) {
    advice.why_not = report_.not_replayable;
  } else if (cached * 100 < report_.reserved_bytes * kCachedPercent) {
    advice.why_not = "blocks fill almost all reserved memory at the peak";
  } else {
    const SettingsSearch search = SearchSettings(*history_);
    if (search.best) advice.saved_bytes = Less(report_.reserved_bytes, search.best->worst_reserved);
    if (advice.saved_bytes == 0) {
      advice.why_not =
          absl::StrCat("none of ", search.tried, " settings is certain to reserve less");
    } else {
      best_settings_ = search.best->settings;
      advice.what = search.best->options.empty()
                        ? "no PYTORCH_CUDA_ALLOC_CONF"
                        : absl::StrCat("PYTORCH_CUDA_ALLOC_CONF=", search.best->options);
      advice.freed_bytes = advice.saved_bytes;
      advice.reserved_bytes = search.best->worst_reserved;
      advice.why = absl::StrCat("of ", search.tried,
                                " settings, it reserves least in replays; this much also if "
                                "frees come somewhat later");
    }
  }
  report_.advice.push_back(std::move(advice));
}

void Adviser::HalfPrecision() {
  Advice advice = NewAdvice("half_precision");
  if (trace_.role_changes.empty()) {
    advice.confidence = Confidence::kLow;
    advice.why = "half of the activations; types and nodes of tensors are not recorded";
  }
  Add(std::move(advice),
      [this](ProgramChange& change) { return changes_->UseHalfPrecision(change); });
}

void Adviser::Attention() {
  Advice advice = NewAdvice("attention");
  const std::optional<TensorFacts> facts =
      FindTensorFacts(examination_, categories_, report_.device, peak_);
  if (facts && facts->batch && !facts->batch->square.empty()) {
    advice.where = facts->batch->square.front().place;
    if (facts->batch->certain) advice.confidence = Confidence::kMedium;
  }
  Add(std::move(advice), [this, facts](ProgramChange& change) {
    return changes_->UseFlashAttention(facts.value_or(TensorFacts()), change);
  });
}

void Adviser::MicroBatch() {
  Add(NewAdvice("micro_batch"),
      [this](ProgramChange& change) { return changes_->HalveBatch(change); });
}

void Adviser::Checkpointing() {
  Advice advice = NewAdvice("checkpoint");
  ProgramChange change(trace_, report_.device);
  const absl::StatusOr<CheckpointedLayers> layers = changes_->Checkpoint("", change);
  if (layers.ok()) {
    if (layers->name == kSequential) {
      advice.what = absl::StrCat("torch.utils.checkpoint.checkpoint_sequential(model, ",
                                 layers->count + 1, ", x, use_reentrant=False)");
      advice.where = layers->caller;
    } else {
      // Without a class the name is a function and its line.
      const bool is_class = layers->name.find(' ') == std::string::npos;
      advice.where = absl::StrCat(layers->count,
                                  is_class ? absl::StrCat(" ", layers->name, " layers")
                                           : absl::StrCat(" layers, ", layers->name),
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

void Adviser::EightBit() {
  const Optimizer optimizer = FoundOptimizer();
  Advice advice = NewAdvice("eight_bit_optimizer");
  const std::string_view name = optimizer.name;
  const bool exists =
      name == "Adam" || name == "AdamW" || name == "SGD" || name == "RMSprop" || name == "Adagrad";
  if (exists) advice.what = absl::StrCat("bitsandbytes.optim.", optimizer.name, "8bit");
  advice.where = optimizer.place;
  Add(std::move(advice),
      [this](ProgramChange& change) { return changes_->UseEightBitState(change); });
}

void Adviser::Sharding() {
  const uint64_t gpus = std::max<uint64_t>(options_.gpus, 2);
  Advice advice = NewAdvice("shard");
  absl::StrAppend(&advice.what, ", over ", gpus, " GPUs");
  advice.cost = absl::StrCat(gpus, " GPUs, and communication");
  advice.why =
      absl::StrCat("1/", gpus, " of parameters, gradients and state, and two gathered layers");
  const bool is_sharded = IsSharded();
  Add(std::move(advice), [this, gpus, is_sharded](ProgramChange& change) {
    return is_sharded ? absl::FailedPreconditionError("parameters are sharded already")
                      : changes_->Shard(gpus, change);
  });
}

bool Adviser::IsSharded() const {
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

void Adviser::Offload() {
  Add(NewAdvice("offload_state"),
      [this](ProgramChange& change) { return changes_->OffloadState(change); });
}

void Adviser::InPlace() {
  Add(NewAdvice("in_place"),
      [this](ProgramChange& change) { return changes_->ComputeInPlace(change); });
}

void Adviser::EmptyCache() {
  Advice advice = NewAdvice("empty_cache");
  uint64_t calls = 0;
  for (const AllocatorAction& action : examination_.allocator_actions())
    calls += action.kind == AllocatorAction::kEmptyCache && action.device == report_.device;
  advice.why_not = "PyTorch releases its cache itself before a request fails";
  if (calls > 0)
    absl::StrAppend(&advice.why_not, "; it is called ", calls, calls == 1 ? " time" : " times",
                    " already");
  report_.advice.push_back(std::move(advice));
}

}  // namespace gmt::analysis
