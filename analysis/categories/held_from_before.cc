// Decides what memory held from before the recording is for (categorizer.h). No stack shows it;
// what remains as evidence is what frees it, and how many blocks of its size a training step
// handles.

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "analysis/categories/categorizer.h"
#include "analysis/stacks/frames.h"
#include "format/event.h"

namespace gmt::analysis {

// A block without a stack that existed before the recording and is no workspace by its size.
bool Categorizer::IsHeldFromBefore(const Group& group) const {
  return group.from_before && group.kind == Kind::kBlock && group.stack == 0 &&
         !group.in_private_pool && !IsWorkspaceBySize(group);
}

// Memory left by the step that was under way is freed soon. It includes gradients, of parameters'
// sizes.
bool Categorizer::IsFreedSoon(RowId row) const {
  const RowLife& life = groups_[row_groups_[row]].life;
  if (life.life != Lifespan::kOpen) return life.life != Lifespan::kLong;
  const bool no_phase_since = !life.crosses_backward && !life.crosses_optimizer;
  return trace_.rows.death[row] != kNever && no_phase_since;
}

Categorizer::HeldBySize Categorizer::HeldFromBefore() const {
  const Rows& rows = trace_.rows;
  HeldBySize by_size;
  for (const RowId row : held_before_) {
    if (IsFreedSoon(row) || IsFreedByOptimizer(row)) continue;
    by_size[GradientsOfBefore().GradientsFor(SizeOf(row))].push_back(row);
  }
  // Parameters were allocated first. Blocks whose size is only close come last, the closest first,
  // because they may be something else.
  for (auto& [size, held] : by_size) {
    const auto distance = [&, of = size](RowId row) {
      return std::max(SizeOf(row), of) - std::min(SizeOf(row), of);
    };
    std::sort(held.begin(), held.end(), [&](RowId a, RowId b) {
      return std::pair(distance(a), rows.address[a]) < std::pair(distance(b), rows.address[b]);
    });
  }
  return by_size;
}

// Returns the number of tensors that are held for each parameter in addition to it: those of the
// optimizer, two for Adam and one for momentum, and a gradient if the backward pass adds to it.
// Decided by majority over the parameters: there may be more blocks of a size, which are something
// else.
uint64_t Categorizer::OtherTensorsPerParameter(const HeldBySize& held) const {
  constexpr uint64_t kMaxTensors = 4;  // AMSGrad's three and a gradient
  std::array<uint64_t, kMaxTensors + 1> votes{};
  for (const auto& [size, rows] : held) {
    const uint64_t gradients = GradientsOfBefore().UsualGradientsOf(size);
    if (gradients == 0 || rows.size() < gradients) continue;
    votes[std::min<uint64_t>(rows.size() / gradients - 1, kMaxTensors)] += gradients;
  }
  return static_cast<uint64_t>(std::max_element(votes.begin(), votes.end()) - votes.begin());
}

bool Categorizer::IsFreedByZeroGrad(RowId row) {
  const uint32_t stack = trace_.rows.FreeStack(row);
  if (stack == 0) return false;
  const auto [known, is_new] = zero_grads_.try_emplace(stack);
  if (is_new) {
    const std::vector<FrameText> frames = DescribeStack(examination_.definitions(), stack);
    known->second = std::any_of(frames.begin(), frames.end(), [](const FrameText& frame) {
      return frame.function.ends_with("zero_grad") &&
             frame.file.find("torch/") != std::string::npos;
    });
  }
  return known->second;
}

// Whether an optimizer frees it that allocates the same size and keeps it: new state replaces old.
bool Categorizer::IsFreedByOptimizer(RowId row) const {
  const bool in_optimizer = groups_[row_groups_[row]].life.dies_optimizer ||
                            phases_.Of(trace_.rows.FreeStack(row)) == StackPhase::kOptimizer;
  return in_optimizer && sizes_of_state_.contains(SizeOf(row));
}

// Decides by what frees the row. If no training was recorded, what stays are parameters.
Categorizer::Decision Categorizer::OfRowFromBefore(RowId row) {
  if (IsFreedByZeroGrad(row))
    return {Category::kGradients, Confidence::kHigh, "held from before, freed by zero_grad", true};
  if (IsFreedByOptimizer(row)) {
    return {Category::kOptimizerState, Confidence::kMedium,
            "held from before, replaced by the optimizer", true};
  }
  if (!lives_.has_training() && groups_[row_groups_[row]].is_open() && calls_modules_) {
    if (keeps_from_before_ && trace_.rows.death[row] != kNever) return OfRowFreedAtTheEnd(row);
    if (brings_parameters_) {
      return {Category::kUnknown, Confidence::kLow,
              "held from before and throughout; the program brings its parameters later", true};
    }
    return {Category::kParameters, Confidence::kLow,
            "held from before and throughout; no training step was recorded", true};
  }
  const bool is_old_gradient = IsFreedSoon(row) &&
                               !groups_[row_groups_[row]].life.crosses_backward &&
                               sizes_.UsualGradientsOf(SizeOf(row)) > 0;
  if (is_old_gradient) {
    return {Category::kGradients, Confidence::kLow,
            "held from before, freed before the backward pass; of a gradient's size", true};
  }
  const Category so_far = assignments_[row].category;
  if (IsFreedSoon(row) && (so_far == Category::kParameters || so_far == Category::kOptimizerState))
    return {Category::kUnknown, Confidence::kLow, "held from before; freed soon", true};
  return {};
}

// A pass that keeps its graph frees that of the pass before at its end, as `loss = model(x)` does
// in a loop. Parameters stay; a program that ends frees both.
Categorizer::Decision Categorizer::OfRowFreedAtTheEnd(RowId row) const {
  const auto left = left_of_sizes_.find(SizeOf(row));
  if (left == left_of_sizes_.end()) {
    return {Category::kUnknown, Confidence::kLow,
            "held from before, freed at the end, unlike most that is held from before", true};
  }
  const auto most = absl::c_max_element(left->second);
  return {static_cast<Category>(most - left->second.begin()), Confidence::kLow,
          "held from before, freed at the end; of the size of what the recorded pass leaves", true};
}

void Categorizer::LookAtUseWithoutTraining() {
  constexpr uint64_t kFewest = 8;  // tensors of a model; with fewer it may be chance
  uint64_t never_freed = 0, bytes_before = 0, bytes_of_parameters = 0;
  for (const RowId row : held_before_) {
    bytes_before += trace_.rows.size[row];
    never_freed += trace_.rows.death[row] == kNever ? 1 : 0;
  }
  ForEachRowOf([](const Group& group) { return group.kind == Kind::kBlock && !group.from_before; },
               [&](RowId row) {
                 const Category category = assignments_[row].category;
                 if (category == Category::kParameters)
                   bytes_of_parameters += trace_.rows.size[row];
                 if (trace_.rows.death[row] == kNever)
                   ++left_of_sizes_[SizeOf(row)][static_cast<size_t>(category)];
               });
  keeps_from_before_ = never_freed >= kFewest;
  brings_parameters_ = bytes_of_parameters > bytes_before;
}

void Categorizer::AssignRowsFromBefore() {
  ForEachRowOf([&](const Group& group) { return IsHeldFromBefore(group); },
               [&](RowId row) { held_before_.push_back(row); });
  if (!lives_.has_training()) LookAtUseWithoutTraining();
  AssignRowsBySizeOfGradients();
  for (const RowId row : held_before_) {
    if (trace_.rows.Roles(row) != 0) continue;
    const Decision decision = OfRowFromBefore(row);
    if (decision.is_made) assignments_[row] = Assigned(decision);
  }
  if (!lives_.has_training()) {
    AssignTrainingState();
  } else if (calls_modules_ && !reports_parameters_) {
    AssignFrozenWeights();  // with roles, frozen weights are known by being saved
  }
}

std::map<uint64_t, std::vector<RowId>> Categorizer::RowsThatStay(
    absl::Span<const Category> categories) const {
  std::map<uint64_t, std::vector<RowId>> by_size;
  for (const RowId row : held_before_) {
    if (Stays(groups_[row_groups_[row]]) && trace_.rows.Roles(row) == 0 &&
        absl::c_linear_search(categories, assignments_[row].category))
      by_size[SizeOf(row)].push_back(row);
  }
  return by_size;
}

// A recording without a training step may show the state of training: if nearly all sizes occur in
// multiples of four, each parameter has a gradient and Adam's two tensors. A model alone has sizes
// that occur once or twice, those of its embedding and its head.
void Categorizer::AssignTrainingState() {
  constexpr uint64_t kTensors = 4;  // a parameter's, with itself
  constexpr uint64_t kFewest = 8;   // parameters; with fewer it may be chance
  auto by_size = RowsThatStay({Category::kUnknown, Category::kParameters});
  uint64_t bytes = 0, bytes_in_fours = 0, parameters = 0;
  for (const auto& [size, rows] : by_size) {
    bytes += size * rows.size();
    if (rows.size() % kTensors != 0) continue;
    bytes_in_fours += size * rows.size();
    parameters += rows.size() / kTensors;
  }
  const bool is_state = parameters >= kFewest && bytes_in_fours >= bytes - bytes / 100;
  if (!is_state) return;
  const auto decision = [](Category category) {
    return Decision{category, Confidence::kLow,
                    "held from before and throughout; four blocks of each size, as of a "
                    "parameter, its gradient and Adam's state",
                    true};
  };
  for (auto& [size, rows] : by_size) {
    std::sort(rows.begin(), rows.end(), [&](RowId a, RowId b) {
      return trace_.rows.address[a] < trace_.rows.address[b];  // parameters were allocated first
    });
    const size_t count = rows.size() / kTensors;
    for (size_t i = 0; i < count * kTensors; ++i) {
      assignments_[rows[i]] = Assigned(decision(i < count       ? Category::kParameters
                                                : i < 2 * count ? Category::kGradients
                                                                : Category::kOptimizerState));
    }
  }
}

// What stays and is still unknown are frozen weights if much of it has sizes that repeat, as those
// of layers do. Data, a few large blocks, does not look like that. Blocks that are a simple
// multiple of a gradient's size may be state in another precision, and stay unknown; so do those of
// sizes that the recorded steps keep, too, as a leak does.
void Categorizer::AssignFrozenWeights() {
  constexpr uint64_t kLayers = 4;  // a size that so many blocks have repeats from layer to layer
  constexpr uint64_t kSizes = 3;   // a layer has at least so many
  constexpr uint64_t kEmbeddings = 3;  // a small model's are up to two thirds of its bytes
  auto by_size = RowsThatStay({Category::kUnknown});
  ForEachRowOf(
      [](const Group& group) {
        return group.kind == Kind::kBlock && !group.from_before && Stays(group);
      },
      [&](RowId row) { by_size.erase(SizeOf(row)); });
  uint64_t bytes = 0, repeated = 0, sizes = 0;
  for (auto of = by_size.begin(); of != by_size.end();) {
    const auto& [size, rows] = *of;
    const bool may_be_state =
        sizes_.UsualGradientsOf(2 * size) > 0 || sizes_.UsualGradientsOf(4 * size) > 0 ||
        sizes_.UsualGradientsOf(size / 2) > 0 || sizes_.UsualGradientsOf(size / 4) > 0;
    if (!may_be_state) {
      bytes += size * rows.size();
      repeated += rows.size() >= kLayers ? size * rows.size() : 0;
      sizes += rows.size() >= kLayers ? 1 : 0;
    }
    of = may_be_state ? by_size.erase(of) : std::next(of);
  }
  if (sizes < kSizes || kEmbeddings * repeated < bytes) return;
  const Decision frozen{Category::kParameters, Confidence::kLow,
                        "held from before and throughout; in sizes that repeat like those of "
                        "layers, and without gradients: frozen weights",
                        true};
  for (const auto& [size, rows] : by_size) {
    for (const RowId row : rows) assignments_[row] = Assigned(frozen);
  }
}

// For each size, as many blocks as a backward pass leaves gradients are parameters, or those for
// which PyTorch reported that role. As many again per tensor of the optimizer are its state.
// Further blocks of that size are unknown. If the backward pass adds to gradients, as many again
// are those. It also allocates other blocks of that size, so there may be fewer parameters.
void Categorizer::AssignRowsBySizeOfGradients() {
  const HeldBySize by_size = HeldFromBefore();
  const uint64_t others_per_parameter = OtherTensorsPerParameter(by_size);
  if (adds_gradients_ && others_per_parameter == 0) return;
  for (const auto& [size, held] : by_size) {
    uint64_t gradients = GradientsOfBefore().UsualGradientsOf(size);
    if (adds_gradients_) gradients = std::min(gradients, held.size() / (1 + others_per_parameter));
    const Decision parameters{Category::kParameters,
                              held.size() == gradients ? Confidence::kMedium : Confidence::kLow,
                              "held from before; as many blocks as gradients of this size", true};
    const Decision added{Category::kGradients, Confidence::kLow,
                         "held from before; the backward pass only adds to gradients", true};
    const Decision state{Category::kOptimizerState, Confidence::kLow,
                         "held from before; more blocks than gradients of this size", true};
    const Decision unknown{
        Category::kUnknown, Confidence::kLow,
        size == 0 ? "held from before; not of a gradient's size"
                  : "held from before; more blocks of this size than parameters and state need",
        true};
    uint64_t observed = 0;
    std::vector<RowId> others;
    for (const RowId row : held) {
      const uint32_t roles = trace_.rows.Roles(row);
      if ((roles & format::kRoleParameter) != 0) ++observed;
      if (roles == 0) others.push_back(row);
    }
    const uint64_t all_parameters = observed > 0 ? observed : gradients;
    const uint64_t end_of_parameters = observed > 0 ? 0 : gradients;
    const uint64_t end_of_gradients = end_of_parameters + (adds_gradients_ ? all_parameters : 0);
    const uint64_t end_of_state = end_of_parameters + all_parameters * others_per_parameter;
    for (size_t i = 0; i < others.size(); ++i) {
      // A size that is merely close to a gradient's is too weak as the only evidence.
      if (size == 0 && assignments_[others[i]].category != Category::kParameters) continue;
      assignments_[others[i]] = Assigned(i < end_of_parameters  ? parameters
                                         : i < end_of_gradients ? added
                                         : i < end_of_state     ? state
                                                                : unknown);
    }
  }
}

}  // namespace gmt::analysis
