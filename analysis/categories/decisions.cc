// Decides the category of a group of rows (categorizer.h): by a rule, by its life, by its size.

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "analysis/categories/categorizer.h"
#include "format/event.h"

namespace gmt::analysis {
namespace {

std::string_view PhaseText(Born born) {
  switch (born) {
    case Born::kBackward:
      return "in a backward pass";
    case Born::kOptimizer:
      return "in the optimizer";
    case Born::kStart:
    case Born::kForward:
      break;
  }
  return "in the forward phase";
}

}  // namespace

std::string Categorizer::LifeText(const Group& group) {
  const RowLife& life = group.life;
  if (life.crosses_steps) return "lives across steps";
  const char* freed = life.dies_backward ? "freed in a backward pass" : "freed after it";
  const std::string_view born = PhaseText(life.born);
  switch (life.life) {
    case Lifespan::kPhase:
    case Lifespan::kPass:
      return absl::StrCat("born and freed ", std::string(born));
    case Lifespan::kAcross:
    case Lifespan::kSteps:
      if (group.from_before)
        return absl::StrCat("held from before, ", life.dies_backward ? freed : "freed later");
      return absl::StrCat("born ", std::string(born), ", ", freed);
    case Lifespan::kLong:
      return life.before_training ? "held since before the first step" : "lives across steps";
    case Lifespan::kOpen:
      break;
  }
  if (life.ran_out) return "held when memory ran out";
  if (group.from_before) return "held from before";
  return absl::StrCat("born ", std::string(born), ", not freed at the end");
}

std::string Categorizer::WithoutEvidence(const Group& group) {
  return group.stack == 0 ? "; no stack was recorded, and its size is no evidence"
                          : "; neither its stack nor its size shows what it is for";
}

// A leaf that a step creates and drops is not a parameter. It is a segment's input when
// checkpointing recomputes it, or a weight gathered for one use.
bool Categorizer::IsPassingLeaf(const Group& group) const {
  const Lifespan life = group.life.life;
  return lives_.has_training() && group.life.born != Born::kStart && life != Lifespan::kLong &&
         life != Lifespan::kOpen;
}

// Decides by what PyTorch reported. A batch is saved for the backward pass like its activations, a
// buffer like a parameter, and so is what a library gathers: there the allocating code is better
// evidence.
Categorizer::Decision Categorizer::ByRole(const Group& group, const Decision& by_rule) const {
  const bool is_gathered = by_rule.is_made && by_rule.category == Category::kCommunication;
  const bool is_parameter = (group.roles & format::kRoleParameter) != 0;
  if (is_parameter && !is_gathered && !IsPassingLeaf(group)) {
    return {Category::kParameters, Confidence::kHigh,
            "observed: a leaf of the autograd graph that requires a gradient", true};
  }
  // One that ends in its backward pass is transient: of a transient leaf, or about to be reduced.
  if ((group.roles & format::kRoleGradient) != 0 && group.life.life != Lifespan::kPhase)
    return {Category::kGradients, Confidence::kHigh, "observed: the gradient of a leaf", true};
  if ((group.roles & format::kRoleSaved) == 0) return {};
  // A weight without a gradient and a buffer are saved too. Memory from before an attach has no
  // stack that would show what it is; an activation does not stay.
  const bool stays = group.is_open() || group.life.life == Lifespan::kLong;
  if (group.from_before && group.stack == 0 && stays) {
    return {Category::kParameters, Confidence::kMedium,
            "observed: held from before the attach, and saved for backward; it stays", true};
  }
  const bool says_more = by_rule.is_made && by_rule.category != Category::kActivations &&
                         by_rule.category != Category::kTemporaries &&
                         by_rule.category != Category::kUnknown &&
                         by_rule.category != Category::kGraphPools;
  if (says_more) return {};
  std::string reason = "observed: saved for backward";
  if (group.saver != 0)
    absl::StrAppend(&reason, " by ", std::string(examination_.definitions().string(group.saver)));
  const bool is_recomputed = group.life.born == Born::kBackward && IsRecomputed(group);
  return {is_recomputed ? Category::kRecomputed : Category::kActivations, Confidence::kHigh,
          std::move(reason), true};
}

Categorizer::Decision Categorizer::ByRule(const Group& group) {
  if (group.kind == Kind::kSegment) {
    return {Category::kCache, Confidence::kHigh,
            "held by a caching allocator in addition to its blocks", true};
  }
  const StackHints::Hint hint = hints_.Find(group.stack, group.life.life, group.life.born);
  if (hint.rule != nullptr && hint.rule->is_users) return ByRuleOf(group, hint);
  if (group.in_private_pool) {
    return {Category::kGraphPools, Confidence::kHigh, "in a private pool of its allocator", true};
  }
  if (IsWorkspaceBySize(group)) {
    return {Category::kWorkspaces, Confidence::kMedium,
            absl::StrCat(LifeText(group), "; of the size of a cuBLAS workspace"), true};
  }
  if (group.kind == Kind::kDriver || group.kind == Kind::kHost) {
    Decision decision = hint.rule != nullptr ? ByRuleOf(group, hint) : Decision{};
    return decision.is_made ? decision : OfDriver(group);
  }
  if (group.kind == Kind::kRegion && hint.rule == nullptr) {
    return {Category::kUnknown, Confidence::kLow, "a region that the program named", true};
  }
  // What a module creates looks like a batch otherwise: both are made before the first call.
  const bool is_batch = hint.rule == nullptr || hint.rule->category == Category::kInputs;
  if (is_batch && !IsShort(group.life.life) && hints_.CreatesModule(group.stack)) {
    return {Category::kParameters, Confidence::kMedium,
            absl::StrCat(LifeText(group), "; created with its module"), true};
  }
  if (hint.rule == nullptr) return {};
  return ByRuleOf(group, hint);
}

// Python-only stacks do not show the requester of a workspace, and memory from before has none. But
// a workspace has a characteristic size, and stays.
bool Categorizer::IsWorkspaceBySize(const Group& group) const {
  constexpr uint64_t kCublasWorkspace = (2 * 4096 + 8 * 16) * 1024;  // ":4096:2:16:8"
  if (group.kind != Kind::kBlock || group.size != kCublasWorkspace) return false;
  if (group.stack == 0) return group.from_before;
  const std::vector<FrameText>& frames = examination_.stacks().Frames(group.stack);
  return std::all_of(frames.begin(), frames.end(),
                     [](const FrameText& f) { return f.is_python(); });
}

Categorizer::Decision Categorizer::ByRuleOf(const Group& group,
                                            const StackHints::Hint& hint) const {
  Decision decision{hint.rule->category, Confidence::kHigh, "", true};
  decision.reason = absl::StrCat(LifeText(group), "; ", hints_.FrameName(hint.frame),
                                 hint.rule->is_users ? ", by your rule" : "");
  if (hint.rule->is_users) return decision;
  const bool is_long = group.life.life == Lifespan::kLong || group.is_open();
  if (decision.category == Category::kInputs) {
    decision.confidence = Confidence::kMedium;
    // A batch does not live for several steps unless it existed before the first.
    const bool is_kept = group.life.life == Lifespan::kLong && group.life.crosses_passes;
    if (is_kept && !group.life.before_training) return KeptByTheProgram(group);
    if (is_long && group.life.before_training && sizes_.LacksParameters(group.size)) {
      decision.category = Category::kParameters;
      absl::StrAppend(&decision.reason, ", like inputs, but of a gradient's size");
    }
  }
  if (decision.category == Category::kActivations && group.is_open()) {
    decision.confidence = Confidence::kMedium;
  }
  return decision;
}

Categorizer::Decision Categorizer::OfDriver(const Group& group) const {
  const std::string& library = examination_.stacks().Library(group.stack);
  if (group.kind == Kind::kHost) {
    return {Category::kUnknown, Confidence::kLow,
            library.empty() ? "host memory, no stack" : absl::StrCat("host memory of ", library),
            true};
  }
  if (library.empty())
    return {Category::kUnknown, Confidence::kLow, "driver memory, no stack", true};
  const std::string reason = absl::StrCat("allocated from the driver by ", library);
  if (library == "the program") return {Category::kUnknown, Confidence::kLow, reason, true};
  if (library == "NCCL" || library == "NVSHMEM") {
    return {Category::kCommunication, Confidence::kHigh, reason, true};
  }
  if (library.starts_with("cuBLAS") || library == "cuDNN" || library == "cuSOLVER") {
    return {Category::kWorkspaces, Confidence::kHigh, reason, true};
  }
  if (library == "PyTorch's caching allocator")
    return {Category::kCache, Confidence::kHigh, reason, true};
  return {Category::kOtherLibraries, Confidence::kHigh, reason, true};
}

Categorizer::Decision Categorizer::ByLife(const Group& group) {
  if (group.life.born == Born::kBackward) return OfBackward(group);
  if (group.life.born == Born::kOptimizer) {
    const bool is_optimizers = IsOptimizers(group);
    const Confidence confidence = is_optimizers ? Confidence::kHigh : Confidence::kMedium;
    const Category category =
        IsShort(group.life.life) ? Category::kTemporaries : Category::kOptimizerState;
    return {category, group.life.ran_out ? Confidence::kMedium : confidence, LifeText(group), true};
  }
  if (!lives_.has_training()) return WithoutTraining(group);
  return OfForward(group);
}

Categorizer::Decision Categorizer::OfBackward(const Group& group) const {
  const RowLife& life = group.life;
  const bool is_parameters =
      sizes_.IsParameters(group.size) || (life.crosses_optimizer && sizes_.IsGradients(group.size));
  if (IsRecomputed(group) && (life.dies_backward || group.is_open())) {
    return {Category::kRecomputed, group.is_open() ? Confidence::kMedium : Confidence::kHigh,
            absl::StrCat(LifeText(group), "; recomputed by checkpointing"), true};
  }
  // A gradient that an optimizer takes within the pass would have the role of one.
  const bool is_short =
      life.life == Lifespan::kPhase || (life.life == Lifespan::kPass && reports_gradients_);
  if (is_short) return {Category::kTemporaries, Confidence::kHigh, LifeText(group), true};
  const char* of_size = is_parameters ? "; of a parameter's size" : "; not of a parameter's size";
  // Had it been a temporary, its pass would have freed it before the recording began.
  if (group.from_before && group.is_open()) {
    return {Category::kGradients, Confidence::kMedium,
            absl::StrCat(LifeText(group), "; born in a backward pass, outlives it"), true};
  }
  const bool in_doubt = life.life == Lifespan::kPass || group.is_open() ||
                        (life.dies_at_once && !spans_.backward_is_recorded);
  if (in_doubt) {
    return {is_parameters ? Category::kGradients : Category::kTemporaries, Confidence::kMedium,
            absl::StrCat(LifeText(group), of_size), true};
  }
  if (life.dies_backward && !is_parameters) {
    return {Category::kActivations, Confidence::kLow,
            absl::StrCat("born in one backward pass, freed in another", of_size), true};
  }
  return {Category::kGradients, is_parameters ? Confidence::kHigh : Confidence::kMedium,
          absl::StrCat("born in a backward pass, outlives it", of_size), true};
}

Categorizer::Decision Categorizer::OfForward(const Group& group) const {
  const RowLife& life = group.life;
  if (life.life == Lifespan::kLong) return OfLongForward(group);
  if (life.life == Lifespan::kPhase) {
    return {Category::kTemporaries, Confidence::kHigh, LifeText(group), true};
  }
  if (group.is_open()) return OfOpen(group);
  if (!life.crosses_backward) {
    return {Category::kTemporaries, Confidence::kMedium,
            absl::StrCat(LifeText(group), "; no backward pass in between"), true};
  }
  return {Category::kActivations,
          group.stack != 0 && life.dies_backward ? Confidence::kHigh : Confidence::kMedium,
          absl::StrCat(LifeText(group), "; held for the backward pass"), true};
}

Categorizer::Decision Categorizer::OfLongForward(const Group& group) const {
  const RowLife& life = group.life;
  if (group.stack != 0 && life.born == Born::kForward) {
    return {Category::kActivations, Confidence::kLow,
            absl::StrCat(LifeText(group), "; created in a forward pass and kept"), true};
  }
  const bool is_kept = group.stack != 0 && life.life == Lifespan::kLong && !life.before_training;
  // A parameter would have the role of one.
  if (is_kept && reports_parameters_) return KeptByTheProgram(group);
  if (sizes_.IsGradients(group.size)) {
    return {Category::kParameters, life.before_training ? Confidence::kMedium : Confidence::kLow,
            absl::StrCat(LifeText(group), "; of a gradient's size"), true};
  }
  // Master weights: a parameter in half precision has a copy of twice its size.
  const bool is_seen = group.stack != 0 && !group.from_before;
  if (is_seen && life.before_training && group.size % 2 == 0 &&
      sizes_.IsGradients(group.size / 2)) {
    return {Category::kOptimizerState, Confidence::kLow,
            absl::StrCat(LifeText(group), "; of twice a gradient's size, like float32 copies"),
            true};
  }
  if (is_kept) return KeptByTheProgram(group);
  return {Category::kUnknown, Confidence::kLow,
          absl::StrCat(LifeText(group), WithoutEvidence(group)), true};
}

Categorizer::Decision Categorizer::KeptByTheProgram(const Group& group) const {
  return {Category::kUnknown, Confidence::kLow,
          absl::StrCat("kept by the program", PlaceOf(group), "; ", LifeText(group)), true};
}

Categorizer::Decision Categorizer::OfOpen(const Group& group) const {
  const RowLife& life = group.life;
  if (life.before_training && life.crosses_backward && life.born == Born::kStart) {
    return OfLongForward(group);
  }
  const bool on_the_way = life.ran_out || life.born == Born::kForward || life.crosses_backward;
  if (on_the_way && (life.born == Born::kForward || !life.before_training)) {
    return {Category::kActivations, Confidence::kMedium, LifeText(group), true};
  }
  return OfLongForward(group);
}

Categorizer::Decision Categorizer::WithoutTraining(const Group& group) {
  const bool is_kept = group.life.born == Born::kForward && group.life.crosses_steps;
  if (is_kept && group.stack != 0 && !group.from_before) return KeptByTheProgram(group);
  if (group.is_open() || group.life.life == Lifespan::kLong) {
    if (group.life.born == Born::kForward) {
      return {Category::kActivations, Confidence::kLow,
              absl::StrCat(LifeText(group), "; created in a forward pass"), true};
    }
    return {Category::kUnknown, Confidence::kLow,
            "held; no training step was recorded that would show its purpose", true};
  }
  if (group.from_before)
    return {Category::kUnknown, Confidence::kLow, "held from before, then freed", true};
  // A copy to the device is a batch. Without a training loop its lifetime does not show that.
  const StackHints::Hint hint = hints_.Find(group.stack, Lifespan::kSteps, Born::kForward);
  // Buffers are copied with their module and live as long.
  const StackHints::Hint of_module = hints_.Find(group.stack, Lifespan::kLong, Born::kForward);
  const bool is_of_module =
      of_module.rule != nullptr && of_module.rule->category == Category::kParameters;
  if (hint.rule != nullptr && hint.rule->category == Category::kInputs && !is_of_module) {
    return {Category::kInputs, Confidence::kMedium,
            absl::StrCat("copied to the device, then freed; ", hints_.FrameName(hint.frame)), true};
  }
  return {Category::kTemporaries, Confidence::kMedium, "freed; no backward pass was recorded",
          true};
}

// Decides by what the same code allocated before.
Categorizer::Decision Categorizer::ByVotes(const Group& group) const {
  if (group.kind != Kind::kBlock || group.stack == 0) return {};
  const Votes* votes = nullptr;
  const auto of_size = votes_of_sizes_.find({group.stack, group.size});
  const auto any = votes_of_stacks_.find(group.stack);
  if (of_size != votes_of_sizes_.end() && of_size->second != Votes{}) {
    votes = &of_size->second;
  } else if (any != votes_of_stacks_.end()) {
    votes = &any->second;
  }
  if (votes == nullptr) return {};
  Votes counted = *votes;
  // If a backward pass has begun since, it is not a temporary of the forward pass.
  if (group.life.crosses_backward) counted[static_cast<size_t>(Category::kTemporaries)] = 0;
  const auto most = std::max_element(counted.begin(), counted.end());
  if (*most == 0) return {};
  return {static_cast<Category>(most - counted.begin()), Confidence::kMedium,
          absl::StrCat(LifeText(group), "; like earlier allocations of the same code"), true};
}

}  // namespace gmt::analysis
