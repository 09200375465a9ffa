// analysis/categories/categorizer.h
//
// Categorizer: the implementation of Categorize(). Rows form a group if they are indistinguishable:
// the same stack, born and freed in the same phases, and the same size if the decision depends on
// it. Groups are decided in this order:
//
//   0  by the roles that PyTorch reported: parameters, gradients, saved for backward
//   1  by rules for stacks, each with the lives that it requires
//   2  by life alone, confirmed by sizes: what outlives its backward pass is a gradient
//   3  memory not freed before the recording ends: like what the same code allocated earlier
//   4  memory held from before: by what frees it, and by the number of gradients of its size. As
//      many are parameters, and an optimizer has the same number of tensors for most of them. If a
//      backward pass only adds to existing gradients, these are held from before as well. If no
//      training step was recorded, what stays are parameters, or the whole state of training if
//      each size occurs four times; otherwise, what has the sizes of layers without gradients are
//      frozen weights.
//   5  what a hand-written optimizer puts in the place of a parameter: like that
//
// Thread safety: one thread at a time. Cost: a few walks over rows, one over steps; a look-up for
// each row among the groups. Sizes are ignored if no decision depends on them; otherwise a
// recording whose sizes vary would have nearly as many groups as rows.

#ifndef GMT_ANALYSIS_CATEGORIES_CATEGORIZER_H_
#define GMT_ANALYSIS_CATEGORIES_CATEGORIZER_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "analysis/categories/categories.h"
#include "analysis/categories/lives.h"
#include "analysis/categories/sizes.h"
#include "analysis/categories/stack_hints.h"
#include "analysis/trace/column.h"

namespace gmt::analysis {

class Categorizer {
 public:
  Categorizer(const Examination& examination, const CategoryRules& rules);
  Categories Make() &&;

 private:
  enum class Kind : uint8_t { kBlock, kSegment, kDriver, kHost, kRegion };
  struct Group {
    uint64_t size = 0;  // 0 if AsksForSize() is false
    uint32_t stack = 0;
    Kind kind = Kind::kBlock;
    RowLife life{};
    bool from_before = false;
    bool in_private_pool = false;
    uint8_t roles = 0;   // bits of format::Role
    uint32_t saver = 0;  // string id: class of the first node that saved it; 0 if unknown

    // A number for each combination of the fields other than stack and size.
    uint32_t Traits() const;
    bool is_open() const { return life.life == Lifespan::kOpen; }
  };
  struct Decision {
    Category category = Category::kUnknown;
    Confidence confidence = Confidence::kLow;
    std::string reason;
    bool is_made = false;
  };
  // Shared by rows of the same stack and traits, whatever their size.
  struct Shape {
    bool asks_for_size = false;
    uint32_t number = 0;  // its group's, or the shape's if sizes matter
  };
  using Votes = std::array<uint64_t, kCategories>;

  uint64_t SizeOf(RowId row) const;
  bool IsBornInCapture(RowId row) const;
  Group GroupOf(RowId row) const;
  std::optional<std::pair<uint64_t, uint64_t>> ShapeKeyOf(RowId row) const;
  // Calls visit(row) for the rows of the groups for which `is_wanted(group)`, in order; returns
  // whether there are any.
  template <typename IsWanted, typename Visit>
  bool ForEachRowOf(IsWanted is_wanted, Visit visit) const {
    std::vector<uint8_t> wanted(groups_.size());
    bool any = false;
    for (size_t i = 0; i < groups_.size(); ++i) {
      wanted[i] = is_wanted(groups_[i]) ? 1 : 0;
      any |= wanted[i] != 0;
    }
    for (RowId row = 0; any && row < row_groups_.size(); ++row) {
      if (wanted[row_groups_[row]] != 0) visit(row);
    }
    return any;
  }
  bool AsksForSize(const Group& group);
  void MakeGroups();
  uint32_t AddGroup(const Group& group);
  void CountSizes();
  void CountAddedGradients();

  // Whether PyTorch's allocator takes each tensor's memory directly from the driver, without
  // blocks.
  bool IsUncached() const;
  // Whether PyTorch reported a role (format::kRole...) of any block.
  bool Reports(uint32_t role) const;
  bool IsTensor(RowId row) const;
  bool IsOfPyTorchsAllocator(uint32_t stack) const;
  void FindSavers();
  bool IsPassingLeaf(const Group& group) const;
  Decision ByRole(const Group& group, const Decision& by_rule) const;
  Decision ByRule(const Group& group);
  Decision ByRuleOf(const Group& group, const StackHints::Hint& hint) const;
  Decision OfDriver(const Group& group) const;
  Decision ByLife(const Group& group);
  Decision OfBackward(const Group& group) const;
  Decision OfForward(const Group& group) const;
  Decision OfLongForward(const Group& group) const;
  Decision WithoutTraining(const Group& group);
  Decision OfOpen(const Group& group) const;
  Decision ByVotes(const Group& group) const;
  static bool HasVote(const Group& group) { return group.kind == Kind::kBlock && group.stack != 0; }
  void Vote(const Group& group, const Decision& decision, uint64_t rows);
  void CountVotesOfSizes();
  void DecideGroups();
  void AssignRows();
  // By the size of the gradients that they belong to; 0 for none.
  using HeldBySize = std::map<uint64_t, std::vector<RowId>>;
  bool IsHeldFromBefore(const Group& group) const;
  bool IsFreedSoon(RowId row) const;
  HeldBySize HeldFromBefore() const;
  // The gradients from which blocks held from before are inferred.
  const Sizes& GradientsOfBefore() const { return adds_gradients_ ? added_ : sizes_; }
  uint64_t OtherTensorsPerParameter(const HeldBySize& held) const;
  void AssignRowsFromBefore();
  Decision OfRowFromBefore(RowId row);
  // What the recording itself shows of memory from before, if it has no training step.
  void LookAtUseWithoutTraining();
  Decision OfRowFreedAtTheEnd(RowId row) const;
  bool IsFreedByZeroGrad(RowId row);
  bool IsFreedByOptimizer(RowId row) const;
  void AssignRowsBySizeOfGradients();
  // Whether it lives for several steps, or to the end.
  static bool Stays(const Group& group) {
    return group.is_open() || group.life.life == Lifespan::kLong;
  }
  // Rows without a role that were held from before and stay, of these categories so far, by size.
  std::map<uint64_t, std::vector<RowId>> RowsThatStay(absl::Span<const Category> categories) const;
  void AssignFrozenWeights();
  void AssignTrainingState();
  // What a hand-written optimizer puts in a parameter's place (p.data = p.data - ...).
  void AssignReplacedParameters();
  Categories::Assignment Assigned(const Decision& decision);
  bool Outlives(const Group& group) const;
  bool IsRecomputed(const Group& group) const;
  bool IsWorkspaceBySize(const Group& group) const;
  std::string PlaceOf(const Group& group) const;
  Decision KeptByTheProgram(const Group& group) const;
  static std::string LifeText(const Group& group);
  static std::string WithoutEvidence(const Group& group);
  bool IsOptimizers(const Group& group) const;

  const Examination& examination_;
  const Trace& trace_;
  const RowKinds& kinds_;
  StackHints hints_;
  mutable StackPhases phases_;  // caches its answers
  const Cycles& cycles_;
  const PhaseSpans& spans_;
  Lives lives_;
  Sizes sizes_;
  Sizes added_;  // sizes of what a backward pass allocates and frees, such as added gradients
  const bool is_uncached_, reports_parameters_, reports_gradients_;
  bool calls_modules_ = false;
  bool adds_gradients_ = false;  // no backward pass leaves a gradient: it adds to existing ones
  absl::flat_hash_map<RowId, uint32_t> savers_;     // class of the first node that saved the row
  absl::flat_hash_map<uint32_t, bool> zero_grads_;  // by stack of a free
  absl::flat_hash_set<uint64_t> sizes_of_state_;    // that optimizers allocated and kept
  // For recordings without training: what is left at the end of each size, by category; whether
  // much from before is never freed; whether the program brings the parameters itself.
  absl::flat_hash_map<uint64_t, Votes> left_of_sizes_;
  bool keeps_from_before_ = false, brings_parameters_ = false;
  std::vector<Group> groups_;
  std::vector<uint64_t> group_rows_;
  std::vector<Decision> decisions_;  // by group
  SmallColumn row_groups_;           // by row
  std::vector<RowId> held_before_;   // for which IsHeldFromBefore()
  // By stack and size, for those that occur in open groups.
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, Votes> votes_of_sizes_;
  absl::flat_hash_map<uint32_t, Votes> votes_of_stacks_;
  std::map<std::string, uint16_t> reason_ids_;
  std::vector<std::string> reasons_;
  std::vector<Categories::Assignment> assignments_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CATEGORIES_CATEGORIZER_H_
