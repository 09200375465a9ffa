#include "analysis/categories/categorizer.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "analysis/stacks/frames.h"
#include "format/event.h"

namespace gmt::analysis {
namespace {

constexpr size_t kMaxReasons = UINT16_MAX;

}  // namespace

uint32_t Categorizer::Group::Traits() const {
  uint32_t traits = static_cast<uint32_t>(kind);
  traits = traits << 3 | static_cast<uint32_t>(life.life);
  traits = traits << 2 | static_cast<uint32_t>(life.born);
  for (const bool trait :
       {life.before_training, life.crosses_backward, life.crosses_optimizer, life.crosses_passes,
        life.crosses_steps, life.ran_out, life.dies_backward, life.dies_optimizer,
        life.dies_at_once, from_before, in_private_pool}) {
    traits = traits << 1 | (trait ? 1 : 0);
  }
  return traits << 3 | roles;
}

Categorizer::Categorizer(const Examination& examination, const CategoryRules& rules)
    : examination_(examination),
      trace_(examination.trace()),
      hints_(examination.definitions(), rules),
      phases_(examination.definitions()),
      spans_(FindPhaseSpans(trace_, examination.definitions(), phases_)),
      lives_(FindLives()),
      is_uncached_(IsUncached()),
      reports_parameters_(Reports(format::kRoleParameter)),
      reports_gradients_(Reports(format::kRoleGradient)) {}

Lives Categorizer::FindLives() {
  return Lives(trace_, examination_.cycles(), spans_,
               {[this](uint32_t stack) { return hints_.CallsModule(stack); },
                [this](uint32_t stack) { return phases_.Of(stack); }});
}

Categories Categorizer::Make() && {
  FindSavers();
  MakeGroups();
  CountSizes();
  DecideGroups();
  AssignRows();
  AssignRowsFromBefore();
  return {std::move(assignments_), std::move(reasons_)};
}

// Returns the requested size if known.
uint64_t Categorizer::SizeOf(RowId row) const {
  constexpr uint64_t kRounding = 512;  // PyTorch's allocator rounds sizes up to a multiple of this
  const std::optional<uint64_t> requested = trace_.rows.Requested(row);
  const uint64_t size = trace_.rows.size[row];
  if (!requested || *requested > size) return size;
  return std::min(size, (*requested + kRounding - 1) / kRounding * kRounding);
}

// A graph being captured takes its memory from a private pool.
bool Categorizer::IsBornInCapture(RowId row) const {
  const Step birth = trace_.rows.birth[row];
  return std::any_of(trace_.captures.begin(), trace_.captures.end(), [&](const Capture& capture) {
    return capture.begin < birth && birth <= capture.end &&
           capture.stream == trace_.rows.stream[row];
  });
}

// ---- Groups -------------------------------------------------------------------------------------

Categorizer::Group Categorizer::GroupOf(RowId row) const {
  const Rows& rows = trace_.rows;
  Group group;
  group.stack = rows.stack[row];
  if (rows.IsRegion(row)) {
    group.kind = Kind::kRegion;
  } else if (rows.heap[row] == kHostHeap) {
    group.kind = Kind::kHost;
  } else if (rows.heap[row] == kDriverHeap) {
    const bool holds_blocks = (rows.flags[row] & kRowHoldsBlocks) != 0;
    group.kind = holds_blocks ? Kind::kSegment : IsTensor(row) ? Kind::kBlock : Kind::kDriver;
  }
  if (group.kind == Kind::kSegment) return group;
  group.life = lives_.Of(row);
  if (group.kind != Kind::kBlock) return group;
  group.roles = static_cast<uint8_t>(rows.Roles(row));
  if (const auto saver = savers_.find(row); saver != savers_.end()) group.saver = saver->second;
  group.from_before = rows.birth[row] == 0;
  group.in_private_pool = rows.Pool(row).value_or(0) != 0 || IsBornInCapture(row);
  return group;
}

// Whether the size may affect the decision: by being that of a gradient or a parameter, or by
// grouping the row with others that the same code allocated. Asking too often is slow, too seldom
// is wrong.
bool Categorizer::AsksForSize(const Group& group) {
  if (group.kind != Kind::kBlock) return false;
  if ((group.roles & (format::kRoleParameter | format::kRoleGradient)) != 0) return true;
  if (group.is_open()) return true;
  const Lifespan life = group.life.life;
  const CategoryRule* rule = hints_.Find(group.stack, life, group.life.born).rule;
  if (rule != nullptr) {
    return rule->category == Category::kParameters ||
           (rule->category == Category::kInputs && life == Lifespan::kLong);
  }
  if (group.in_private_pool || group.life.born == Born::kOptimizer) return false;
  return group.life.born == Born::kBackward ? life != Lifespan::kPhase : life == Lifespan::kLong;
}

uint32_t Categorizer::AddGroup(const Group& group) {
  groups_.push_back(group);
  group_rows_.push_back(0);
  return static_cast<uint32_t>(groups_.size() - 1);
}

void Categorizer::MakeGroups() {
  // By stack, traits and the class of the node that saved it.
  absl::flat_hash_map<std::tuple<uint32_t, uint32_t, uint32_t>, Shape> shapes;
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, uint32_t> of_shapes;  // by shape and size
  row_groups_.reserve(trace_.rows.count());
  for (RowId row = 0; row < trace_.rows.count(); ++row) {
    Group group = GroupOf(row);
    const auto [shape, is_new] = shapes.try_emplace({group.stack, group.Traits(), group.saver});
    if (is_new) {
      const bool asks = AsksForSize(group);
      const auto number = asks ? static_cast<uint32_t>(shapes.size()) : AddGroup(group);
      shape->second = {asks, number};
    }
    uint32_t number = shape->second.number;
    if (shape->second.asks_for_size) {
      group.size = SizeOf(row);
      const auto [of_size, is_first] = of_shapes.try_emplace({number, group.size});
      if (is_first) of_size->second = AddGroup(group);
      number = of_size->second;
    }
    ++group_rows_[number];
    row_groups_.push_back(number);
  }
}

bool Categorizer::Reports(uint32_t role) const {
  return std::any_of(trace_.role_changes.begin(), trace_.role_changes.end(),
                     [role](const RoleChange& change) { return (change.roles & role) != 0; });
}

// A caching allocator allocates multiples of 2 MiB.
bool Categorizer::IsUncached() const {
  constexpr uint64_t kSegments = uint64_t{2} << 20;
  const Rows& rows = trace_.rows;
  bool takes_tensors = !trace_.role_changes.empty();
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.IsBlock(row)) return false;
    takes_tensors =
        takes_tensors || (rows.heap[row] == kDriverHeap && rows.size[row] % kSegments != 0 &&
                          IsOfPyTorchsAllocator(rows.stack[row]));
  }
  return takes_tensors;
}

bool Categorizer::IsOfPyTorchsAllocator(uint32_t stack) const {
  const std::string& library = examination_.stacks().Library(stack);
  return library == "PyTorch's caching allocator" || library == "PyTorch's pluggable allocator";
}

bool Categorizer::IsTensor(RowId row) const {
  if (!is_uncached_) return false;
  return trace_.rows.Roles(row) != 0 || IsOfPyTorchsAllocator(trace_.rows.stack[row]);
}

void Categorizer::FindSavers() {
  for (const RoleChange& change : trace_.role_changes) {
    if (change.node != 0) savers_.try_emplace(change.row, change.node);
  }
}

bool Categorizer::IsRecomputed(const Group& group) const {
  return phases_.Of(group.stack) == StackPhase::kRecomputed;
}

bool Categorizer::IsOptimizers(const Group& group) const {
  return phases_.Of(group.stack) == StackPhase::kOptimizer;
}

// Returns "; train.py:50", the allocating line; "" if unknown.
std::string Categorizer::PlaceOf(const Group& group) const {
  const std::vector<FrameText>& frames = examination_.stacks().Frames(group.stack);
  const int own = OwnFrame(frames);
  const std::string place = own < 0 ? "" : frames[static_cast<size_t>(own)].Place();
  return place.empty() ? "" : absl::StrCat("; ", place);
}

// Born in a backward pass, and still held after it.
bool Categorizer::Outlives(const Group& group) const {
  if (group.kind != Kind::kBlock || group.life.born != Born::kBackward) return false;
  if (IsRecomputed(group) && group.life.dies_backward) return false;
  if (group.life.dies_at_once && !spans_.backward_is_recorded) return false;
  return !IsShort(group.life.life) && (!group.is_open() || group.life.crosses_optimizer);
}

void Categorizer::CountSizes() {
  calls_modules_ = std::any_of(groups_.begin(), groups_.end(),
                               [&](const Group& group) { return hints_.CallsModule(group.stack); });
  for (RowId row = 0; row < trace_.rows.count(); ++row) {
    const Group& group = groups_[row_groups_[row]];
    if (group.kind == Kind::kBlock && !group.from_before && group.life.born == Born::kOptimizer &&
        !IsShort(group.life.life))
      sizes_of_state_.insert(SizeOf(row));
  }
  std::vector<bool> outlives(groups_.size());
  for (size_t i = 0; i < groups_.size(); ++i) {
    outlives[i] =
        Outlives(groups_[i]) &&
        hints_.Find(groups_[i].stack, groups_[i].life.life, Born::kBackward).rule == nullptr;
  }
  for (RowId row = 0; row < trace_.rows.count(); ++row) {
    if (outlives[row_groups_[row]]) sizes_.AddGradient(SizeOf(row), lives_.PassOf(row));
  }
}

// ---- Decisions ----------------------------------------------------------------------------------

void Categorizer::DecideGroups() {
  decisions_.resize(groups_.size());
  for (size_t i = 0; i < groups_.size(); ++i) {
    decisions_[i] = ByRule(groups_[i]);
    if (Decision observed = ByRole(groups_[i], decisions_[i]); observed.is_made)
      decisions_[i] = std::move(observed);
    if (decisions_[i].is_made && decisions_[i].category == Category::kParameters) {
      sizes_.AddParameters(groups_[i].size, group_rows_[i]);
    }
  }
  const auto decide = [&](bool open) {
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].is_open() != open) continue;
      const bool is_observed = decisions_[i].is_made && groups_[i].roles != 0;
      if (open && !groups_[i].from_before && !is_observed) {
        // A parameter's rule is stronger evidence than what else the same code did.
        const bool is_known = decisions_[i].is_made && !IsShort(groups_[i].life.life) &&
                              decisions_[i].category != Category::kActivations;
        if (!is_known) {
          Decision voted = ByVotes(groups_[i]);
          if (voted.is_made) decisions_[i] = std::move(voted);
        }
      }
      if (!decisions_[i].is_made) decisions_[i] = ByLife(groups_[i]);
      if (!open) Vote(groups_[i], decisions_[i], group_rows_[i]);
    }
  };
  decide(false);
  CountVotesOfSizes();
  decide(true);
}

// ---- Earlier allocations of the same code -------------------------------------------------------

void Categorizer::Vote(const Group& group, const Decision& decision, uint64_t rows) {
  if (HasVote(group)) votes_of_stacks_[group.stack][static_cast<size_t>(decision.category)] += rows;
}

void Categorizer::CountVotesOfSizes() {
  absl::flat_hash_set<uint32_t> stacks;
  for (const Group& group : groups_) {
    if (!group.is_open() || group.from_before || !HasVote(group)) continue;
    votes_of_sizes_.try_emplace({group.stack, group.size});
    stacks.insert(group.stack);
  }
  if (stacks.empty()) return;
  std::vector<bool> votes(groups_.size());
  for (size_t i = 0; i < groups_.size(); ++i) {
    votes[i] = HasVote(groups_[i]) && !groups_[i].is_open() && stacks.contains(groups_[i].stack);
  }
  for (RowId row = 0; row < trace_.rows.count(); ++row) {
    const uint32_t group = row_groups_[row];
    if (!votes[group]) continue;
    const auto of = votes_of_sizes_.find({groups_[group].stack, SizeOf(row)});
    if (of == votes_of_sizes_.end()) continue;
    ++of->second[static_cast<size_t>(decisions_[group].category)];
  }
}

// ---- Rows ---------------------------------------------------------------------------------------

Categories::Assignment Categorizer::Assigned(const Decision& decision) {
  const auto next = static_cast<uint16_t>(std::min(reasons_.size(), kMaxReasons));
  const auto [it, is_new] = reason_ids_.try_emplace(decision.reason, next);
  if (is_new && reasons_.size() <= kMaxReasons) reasons_.push_back(decision.reason);
  return {decision.category, decision.confidence, it->second};
}

void Categorizer::AssignRows() {
  std::vector<Categories::Assignment> of_groups;
  of_groups.reserve(groups_.size());
  for (const Decision& decision : decisions_) of_groups.push_back(Assigned(decision));
  assignments_.reserve(row_groups_.size());
  for (const uint32_t group : row_groups_) assignments_.push_back(of_groups[group]);
}

// A block without a stack that existed before the recording.
bool Categorizer::IsHeldFromBefore(RowId row) const {
  const Group& group = groups_[row_groups_[row]];
  return group.from_before && group.kind == Kind::kBlock && group.stack == 0 &&
         !group.in_private_pool;
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
  for (RowId row = 0; row < rows.count(); ++row) {
    if (!IsHeldFromBefore(row) || IsFreedSoon(row) || IsFreedByOptimizer(row)) continue;
    by_size[sizes_.GradientsFor(SizeOf(row))].push_back(row);
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

// Returns the number of the optimizer's tensors per parameter: two for Adam, one for momentum.
// Decided by majority over the parameters: there may be more blocks of a size, which are something
// else.
uint64_t Categorizer::TensorsOfState(const HeldBySize& held) const {
  constexpr uint64_t kMaxTensors = 3;  // AMSGrad's number
  std::array<uint64_t, kMaxTensors + 1> votes{};
  for (const auto& [size, rows] : held) {
    const uint64_t gradients = sizes_.UsualGradientsOf(size);
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
    return {Category::kParameters, Confidence::kLow,
            "held from before and throughout; no training step was recorded", true};
  }
  const bool is_old_gradient = IsFreedSoon(row) && !lives_.Of(row).crosses_backward &&
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

void Categorizer::AssignRowsFromBefore() {
  AssignRowsBySizeOfGradients();
  for (RowId row = 0; row < trace_.rows.count(); ++row) {
    if (!IsHeldFromBefore(row) || trace_.rows.Roles(row) != 0) continue;
    const Decision decision = OfRowFromBefore(row);
    if (decision.is_made) assignments_[row] = Assigned(decision);
  }
}

// For each size, as many blocks as a backward pass leaves gradients are parameters, or those for
// which PyTorch reported that role. As many again per tensor of the optimizer are its state.
// Further blocks of that size are unknown.
void Categorizer::AssignRowsBySizeOfGradients() {
  const HeldBySize by_size = HeldFromBefore();
  const uint64_t tensors = TensorsOfState(by_size);
  for (const auto& [size, held] : by_size) {
    const uint64_t gradients = sizes_.UsualGradientsOf(size);
    const Decision parameters{Category::kParameters,
                              held.size() == gradients ? Confidence::kMedium : Confidence::kLow,
                              "held from before; as many blocks as gradients of this size", true};
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
    const uint64_t more_parameters = observed > 0 ? 0 : gradients;
    const uint64_t of_state = (observed > 0 ? observed : gradients) * tensors;
    for (size_t i = 0; i < others.size(); ++i) {
      // A size that is merely close to a gradient's is too weak as the only evidence.
      if (size == 0 && assignments_[others[i]].category != Category::kParameters) continue;
      assignments_[others[i]] = Assigned(i < more_parameters              ? parameters
                                         : i < more_parameters + of_state ? state
                                                                          : unknown);
    }
  }
}

}  // namespace gmt::analysis
