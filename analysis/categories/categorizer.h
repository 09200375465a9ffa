// analysis/categories/categorizer.h
//
// Categorizer: how Categorize() comes to its answer. Rows that cannot be told apart - of one stack,
// born and freed in the same phases, of one size where a decision asks for it - are a group, and
// groups are decided, in this order:
//
//   0  what PyTorch itself said that they are for: parameters, gradients, saved for backward
//   1  the rules of stacks, each with the lives that it asks for
//   2  life alone, with sizes as a second witness: what outlives its backward pass is a gradient
//   3  what the recording does not see the end of goes with what the same code allocated before
//   4  what was held from before goes by what frees it, and by the number of gradients of its size: as many
//      are parameters, and an optimizer has the same number of tensors for most of them; where no step of
//      training was recorded, what stays are parameters
//
// Thread safety: one thread at a time. Cost: three walks over rows, one over steps; a look-up for each
// row, among as many groups as stacks live in different ways. Sizes are left out where they decide
// nothing: the groups of a recording whose sizes vary would be nearly as many as its rows.

#ifndef GMT_ANALYSIS_CATEGORIES_CATEGORIZER_H_
#define GMT_ANALYSIS_CATEGORIES_CATEGORIZER_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "analysis/categories/categories.h"
#include "analysis/categories/lives.h"
#include "analysis/categories/sizes.h"
#include "analysis/categories/stack_hints.h"

namespace gmt::analysis {

class Categorizer {
 public:
  Categorizer(const Examination& examination, const CategoryRules& rules);
  Categories Make() &&;

 private:
  enum class Kind : uint8_t { kBlock, kSegment, kDriver, kHost, kRegion };
  struct Group {
    uint64_t size = 0;  // 0 where AsksForSize() is false
    uint32_t stack = 0;
    Kind kind = Kind::kBlock;
    RowLife life{};
    bool from_before = false;
    bool in_private_pool = false;
    uint8_t roles = 0;   // bits of format::Role
    uint32_t saver = 0;  // string: class of the first node that saved it; 0: none is known

    // A number for each combination of what is no stack or size.
    uint32_t Traits() const;
    bool is_open() const { return life.life == Lifespan::kOpen; }
  };
  struct Decision {
    Category category = Category::kUnknown;
    Confidence confidence = Confidence::kLow;
    std::string reason;
    bool is_made = false;
  };
  // What rows of one stack and the same traits have, of any size.
  struct Shape {
    bool asks_for_size = false;
    uint32_t number = 0;  // of its group; where it asks for sizes, of the shape
  };
  using Votes = std::array<uint64_t, kCategories>;

  Lives FindLives();
  uint64_t SizeOf(RowId row) const;
  bool IsBornInCapture(RowId row) const;
  Group GroupOf(RowId row) const;
  bool AsksForSize(const Group& group);
  void MakeGroups();
  uint32_t AddGroup(const Group& group);
  void CountSizes();

  // Whether PyTorch's allocator takes each tensor's memory from the driver: it keeps no blocks.
  bool IsUncached() const;
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
  // By the size of the gradients that they go with; 0: with none.
  using HeldBySize = std::map<uint64_t, std::vector<RowId>>;
  bool IsHeldFromBefore(RowId row) const;
  bool IsFreedSoon(RowId row) const;
  HeldBySize HeldFromBefore() const;
  uint64_t TensorsOfState(const HeldBySize& held) const;
  void AssignRowsFromBefore();
  Decision OfRowFromBefore(RowId row);
  bool IsFreedByZeroGrad(RowId row);
  bool IsFreedByOptimizer(RowId row) const;
  void AssignRowsBySizeOfGradients();
  Categories::Assignment Assigned(const Decision& decision);
  bool Outlives(const Group& group) const;
  bool IsRecomputed(const Group& group) const;
  bool IsWorkspaceBySize(const Group& group) const;
  std::string PlaceOf(const Group& group) const;
  Decision KeptByTheProgram(const Group& group) const;
  static std::string LifeText(const Group& group);
  static std::string WhatTellsNothing(const Group& group);
  bool IsOptimizers(const Group& group) const;

  const Examination& examination_;
  const Trace& trace_;
  StackHints hints_;
  mutable StackPhases phases_;  // remembers what it was asked
  const PhaseSpans spans_;
  const Lives lives_;
  Sizes sizes_;
  const bool is_uncached_;
  bool calls_modules_ = false;
  absl::flat_hash_map<RowId, uint32_t> savers_;  // class of the first node that saved the row
  absl::flat_hash_map<uint32_t, bool> zero_grads_;  // by stack of a free
  absl::flat_hash_set<uint64_t> sizes_of_state_;    // that optimizers allocated and kept
  std::vector<Group> groups_;
  std::vector<uint64_t> group_rows_;
  std::vector<Decision> decisions_;   // by group
  std::vector<uint32_t> row_groups_;  // by row
  // By stack and size, of those that open groups have.
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, Votes> votes_of_sizes_;
  absl::flat_hash_map<uint32_t, Votes> votes_of_stacks_;
  std::map<std::string, uint16_t> reason_ids_;
  std::vector<std::string> reasons_;
  std::vector<Categories::Assignment> assignments_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CATEGORIES_CATEGORIZER_H_
