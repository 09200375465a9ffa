#include "analysis/categories/categorizer.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace gmt::analysis {
namespace {

constexpr size_t kMaxReasons = UINT16_MAX;

}  // namespace

uint32_t Categorizer::Group::Traits() const {
  uint32_t traits = static_cast<uint32_t>(kind);
  traits = traits << 3 | static_cast<uint32_t>(life.life);
  traits = traits << 2 | static_cast<uint32_t>(life.born);
  for (const bool trait :
       {life.before_training, life.crosses_backward, life.crosses_optimizer, life.ran_out,
        life.dies_backward, life.dies_at_once, from_before, in_private_pool}) {
    traits = traits << 1 | (trait ? 1 : 0);
  }
  return traits;
}

Categorizer::Categorizer(const Examination& examination, const CategoryRules& rules)
    : examination_(examination),
      trace_(examination.trace()),
      hints_(examination.definitions(), rules),
      phases_(examination.definitions()),
      spans_(FindPhaseSpans(trace_, examination.definitions(), phases_)),
      lives_(FindLives()) {}

Lives Categorizer::FindLives() {
  return Lives(trace_, examination_.cycles(), spans_,
               {[this](uint32_t stack) { return hints_.CallsModule(stack); },
                [this](uint32_t stack) { return phases_.Of(stack); }});
}

Categories Categorizer::Make() && {
  MakeGroups();
  CountSizes();
  DecideGroups();
  AssignRows();
  AssignRowsFromBefore();
  return {std::move(assignments_), std::move(reasons_)};
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
    group.kind = holds_blocks ? Kind::kSegment : Kind::kDriver;
  }
  if (group.kind == Kind::kSegment) return group;
  group.life = lives_.Of(row);
  if (group.kind != Kind::kBlock) return group;
  group.size = rows.size[row];
  group.from_before = rows.birth[row] == 0;
  group.in_private_pool = rows.Pool(row).value_or(0) != 0;
  return group;
}

void Categorizer::MakeGroups() {
  absl::flat_hash_map<GroupKey, uint32_t> known;
  row_groups_.reserve(trace_.rows.count());
  for (RowId row = 0; row < trace_.rows.count(); ++row) {
    const Group group = GroupOf(row);
    const auto [it, is_new] = known.try_emplace({group.size, group.stack, group.Traits()},
                                                static_cast<uint32_t>(groups_.size()));
    if (is_new) {
      groups_.push_back(group);
      group_rows_.push_back(0);
    }
    ++group_rows_[it->second];
    row_groups_.push_back(it->second);
  }
}

bool Categorizer::IsRecomputed(const Group& group) const {
  return phases_.Of(group.stack) == StackPhase::kRecomputed;
}

bool Categorizer::IsOptimizers(const Group& group) const {
  return phases_.Of(group.stack) == StackPhase::kOptimizer;
}

// Born in a backward pass, and there when it is over.
bool Categorizer::Outlives(const Group& group) const {
  if (group.kind != Kind::kBlock || group.life.born != Born::kBackward) return false;
  if (IsRecomputed(group) && group.life.dies_backward) return false;
  if (group.life.dies_at_once && !spans_.backward_told) return false;
  return !IsShort(group.life.life) && (!group.is_open() || group.life.crosses_optimizer);
}

void Categorizer::CountSizes() {
  std::vector<bool> outlives(groups_.size());
  for (size_t i = 0; i < groups_.size(); ++i) {
    outlives[i] =
        Outlives(groups_[i]) &&
        hints_.Find(groups_[i].stack, groups_[i].life.life, Born::kBackward).rule == nullptr;
  }
  for (RowId row = 0; row < trace_.rows.count(); ++row) {
    if (outlives[row_groups_[row]]) sizes_.AddGradient(trace_.rows.size[row], lives_.PassOf(row));
  }
}

// ---- Decisions ----------------------------------------------------------------------------------

void Categorizer::DecideGroups() {
  decisions_.resize(groups_.size());
  for (size_t i = 0; i < groups_.size(); ++i) {
    decisions_[i] = ByRule(groups_[i]);
    if (decisions_[i].is_made && decisions_[i].category == Category::kParameters) {
      sizes_.AddParameters(groups_[i].size, group_rows_[i]);
    }
  }
  const auto decide = [&](bool open) {
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].is_open() != open) continue;
      if (open && !groups_[i].from_before) {
        // A parameter's rule says more than what else the same code did.
        const bool is_told = decisions_[i].is_made && !IsShort(groups_[i].life.life) &&
                             decisions_[i].category != Category::kActivations;
        if (!is_told) {
          Decision voted = ByVotes(groups_[i]);
          if (voted.is_made) decisions_[i] = std::move(voted);
        }
      }
      if (!decisions_[i].is_made) decisions_[i] = ByLife(groups_[i]);
      if (!open) Vote(groups_[i], decisions_[i], group_rows_[i]);
    }
  };
  decide(false);
  decide(true);
}

// ---- What the same code did before --------------------------------------------------------------

void Categorizer::Vote(const Group& group, const Decision& decision, uint64_t rows) {
  if (group.kind != Kind::kBlock || group.stack == 0) return;
  const auto category = static_cast<size_t>(decision.category);
  votes_of_sizes_[{group.stack, group.size}][category] += rows;
  votes_of_stacks_[group.stack][category] += rows;
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

// Of blocks without a stack that were there before the recording: as many as a backward pass leaves
// gradients of their size are parameters, the first by address, because they were allocated first;
// so many again, twice, are the optimizer's.
void Categorizer::AssignRowsFromBefore() {
  const Rows& rows = trace_.rows;
  std::map<uint64_t, std::vector<RowId>> by_size;
  for (RowId row = 0; row < rows.count(); ++row) {
    const Group& group = groups_[row_groups_[row]];
    if (!group.from_before || group.kind != Kind::kBlock || group.stack != 0) continue;
    if (group.life.life != Life::kLong && !group.is_open()) continue;
    if (sizes_.GradientsOf(group.size) > 0) by_size[group.size].push_back(row);
  }
  for (auto& [size, held] : by_size) {
    std::sort(held.begin(), held.end(),
              [&](RowId a, RowId b) { return rows.address[a] < rows.address[b]; });
    const uint64_t gradients = sizes_.GradientsOf(size);
    const Decision parameters{Category::kParameters,
                              held.size() == gradients ? Confidence::kMedium : Confidence::kLow,
                              "held from before; as many as gradients of its size", true};
    const Decision state{Category::kOptimizerState, Confidence::kLow,
                         "held from before; more than gradients of its size", true};
    for (size_t i = 0; i < held.size() && i < 3 * gradients; ++i) {
      assignments_[held[i]] = Assigned(i < gradients ? parameters : state);
    }
  }
}

}  // namespace gmt::analysis
