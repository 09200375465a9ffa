#include "analysis/categories/categorizer.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string_view>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "analysis/stacks/frames.h"
#include "analysis/trace/captures.h"
#include "format/event.h"

namespace gmt::analysis {
namespace {

constexpr size_t kMaxReasons = UINT16_MAX;

// Spreads the bits of a key over all bits.
uint64_t Mixed(uint64_t key) {
  key *= 0x9e3779b97f4a7c15u;
  return key ^ key >> 32;
}

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
      kinds_(examination.kinds()),
      hints_(examination.definitions(), rules),
      phases_(examination.definitions()),
      cycles_(examination.cycles()),
      spans_(examination.phase_spans()),
      lives_(trace_, kinds_, cycles_, spans_, hints_, phases_),
      is_uncached_(IsUncached()),
      reports_parameters_(Reports(format::kRoleParameter)),
      reports_gradients_(Reports(format::kRoleGradient)) {}

Categories Categorizer::Make() && {
  FindSavers();
  MakeGroups();
  CountSizes();
  DecideGroups();
  lives_.ForgetRows();  // they take more memory than the categories of a long recording
  AssignRows();
  AssignRowsFromBefore();
  AssignReplacedParameters();
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
  return AnyCaptureAt(trace_, trace_.rows.birth[row], [&](const Capture& capture) {
    return capture.stream == trace_.rows.stream[row];
  });
}

// ---- Groups -------------------------------------------------------------------------------------

Categorizer::Group Categorizer::GroupOf(RowId row) const {
  const Rows& rows = trace_.rows;
  const RowKind& kind = kinds_.Of(row);
  Group group;
  group.stack = rows.stack[row];
  if (kind.is_region()) {
    group.kind = Kind::kRegion;
  } else if (kind.heap == kHostHeap) {
    group.kind = Kind::kHost;
  } else if (kind.heap == kDriverHeap) {
    const bool holds_blocks = kind.Has(kRowHoldsBlocks);
    group.kind = holds_blocks ? Kind::kSegment : IsTensor(row) ? Kind::kBlock : Kind::kDriver;
  }
  if (group.kind == Kind::kSegment) return group;
  group.life = lives_.Of(row);
  if (group.kind != Kind::kBlock) return group;
  group.roles = static_cast<uint8_t>(rows.Roles(row));
  if (const auto saver = savers_.find(row); saver != savers_.end()) group.saver = saver->second;
  group.from_before = rows.birth[row] == 0;
  group.in_private_pool = kind.is_in_pool || IsBornInCapture(row);
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
  const auto shape_of = [&](RowId row) {
    const Group group = GroupOf(row);
    const auto [shape, is_new] = shapes.try_emplace({group.stack, group.Traits(), group.saver});
    if (is_new) {
      const bool asks = AsksForSize(group);
      const auto number = asks ? static_cast<uint32_t>(shapes.size()) : AddGroup(group);
      shape->second = {asks, number};
    }
    return shape->second;
  };
  // Shapes of rows seen before. Most rows equal an earlier one in what a shape consists of.
  struct Seen {
    std::pair<uint64_t, uint64_t> key{UINT64_MAX, UINT64_MAX};
    Shape shape;
  };
  constexpr size_t kSeen = size_t{1} << 12;
  std::vector<Seen> seen(kSeen);
  const RowId count = trace_.rows.count();
  for (RowId row = 0; row < count; ++row) {
    Shape shape;
    if (const auto key = ShapeKeyOf(row); key) {
      Seen& last = seen[Mixed(key->first + Mixed(key->second)) % kSeen];
      if (last.key != *key) last = {*key, shape_of(row)};
      shape = last.shape;
    } else {
      shape = shape_of(row);
    }
    uint32_t number = shape.number;
    if (shape.asks_for_size) {
      const uint64_t size = SizeOf(row);
      const auto [of_size, is_first] = of_shapes.try_emplace({number, size});
      if (is_first) {
        Group group = GroupOf(row);
        group.size = size;
        of_size->second = AddGroup(group);
      }
      number = of_size->second;
    }
    ++group_rows_[number];
    row_groups_.push_back(number);
  }
}

// Returns numbers that are equal only for rows of the same shape; nullopt if more than what they
// contain decides.
std::optional<std::pair<uint64_t, uint64_t>> Categorizer::ShapeKeyOf(RowId row) const {
  if (!trace_.captures.empty() || (!savers_.empty() && savers_.contains(row))) return std::nullopt;
  const Rows& rows = trace_.rows;
  static_assert(sizeof(RowLife) == sizeof(uint16_t));
  const uint64_t life = std::bit_cast<uint16_t>(lives_.Of(row));
  const uint64_t from_before = rows.birth[row] == 0 ? 1 : 0;
  return std::pair(uint64_t{rows.stack[row]} << 32 | kinds_.NumberOf(row),
                   from_before << 32 | uint64_t{rows.Roles(row)} << 16 | life);
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
  for (const RowKind& kind : kinds_.all()) {
    if (kind.is_block()) return false;
  }
  for (RowId row = 0; row < rows.count(); ++row) {
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
  ForEachRowOf(
      [](const Group& group) {
        return group.kind == Kind::kBlock && !group.from_before &&
               group.life.born == Born::kOptimizer && !IsShort(group.life.life);
      },
      [&](RowId row) { sizes_of_state_.insert(SizeOf(row)); });
  const bool any_outlives = ForEachRowOf(
      [&](const Group& group) {
        return Outlives(group) &&
               hints_.Find(group.stack, group.life.life, Born::kBackward).rule == nullptr;
      },
      [&](RowId row) { sizes_.AddGradient(SizeOf(row), lives_.PassOf(row)); });
  adds_gradients_ = lives_.has_backward() && !reports_gradients_ && !any_outlives;
  if (adds_gradients_) CountAddedGradients();
}

// AccumulateGrad frees a gradient once it is added to the one of an earlier pass.
void Categorizer::CountAddedGradients() {
  ForEachRowOf(
      [](const Group& group) {
        const RowLife& life = group.life;
        const bool ends_in_pass =
            IsShort(life.life) || life.dies_at_once;  // the last one ends after it
        return group.kind == Kind::kBlock && !group.from_before && life.born == Born::kBackward &&
               ends_in_pass;
      },
      [&](RowId row) { added_.AddGradient(SizeOf(row), lives_.PassOf(row)); });
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
  ForEachRowOf(
      [&](const Group& group) {
        return HasVote(group) && !group.is_open() && stacks.contains(group.stack);
      },
      [&](RowId row) {
        const uint32_t group = row_groups_[row];
        const auto of = votes_of_sizes_.find({groups_[group].stack, SizeOf(row)});
        if (of != votes_of_sizes_.end())
          ++of->second[static_cast<size_t>(decisions_[group].category)];
      });
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

}  // namespace gmt::analysis
