// Finds the parameters that a hand-written optimizer replaces (categorizer.h), as
//
//   p.data = p.data - lr * p.grad
//
// does. The new tensor is born in the optimizer and outlives it, like its state. But when the old
// parameter is freed, the new one is the last tensor with its size that was allocated.

#include <algorithm>
#include <map>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "analysis/categories/categorizer.h"

namespace gmt::analysis {

void Categorizer::AssignReplacedParameters() {
  if (!lives_.has_training()) return;
  const Rows& rows = trace_.rows;
  const auto life = [&](RowId row) -> const RowLife& { return groups_[row_groups_[row]].life; };
  const auto is_block = [&](RowId row) {
    return groups_[row_groups_[row]].kind == Kind::kBlock && rows.Roles(row) == 0;
  };
  struct Change {
    Step step;
    RowId row;
    bool is_birth;
  };
  std::vector<Change> changes;
  absl::flat_hash_set<RowId> parameters;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (!is_block(row)) continue;
    const bool is_born = life(row).born == Born::kOptimizer && rows.birth[row] != 0;
    const bool is_freed = rows.death[row] != kNever && (is_born || life(row).dies_optimizer);
    if (is_born) changes.push_back({rows.birth[row], row, true});
    if (is_freed) changes.push_back({rows.death[row], row, false});
    if (is_freed && assignments_[row].category == Category::kParameters) parameters.insert(row);
  }
  if (parameters.empty()) return;
  absl::c_sort(changes, [](const Change& a, const Change& b) { return a.step < b.step; });
  const Decision replaces{Category::kParameters, Confidence::kMedium,
                          "born in the optimizer, in the place of a parameter that it frees", true};
  std::map<uint64_t, std::vector<RowId>> live;  // born in an optimizer and not matched, by size
  for (const Change& change : changes) {
    std::vector<RowId>& of_size = live[SizeOf(change.row)];
    if (change.is_birth) {
      of_size.push_back(change.row);
      continue;
    }
    std::erase(of_size, change.row);
    if (!parameters.contains(change.row) || of_size.empty()) continue;
    const RowId successor = of_size.back();
    of_size.pop_back();
    parameters.insert(successor);
    if (assignments_[successor].category == Category::kOptimizerState)
      assignments_[successor] = Assigned(replaces);
  }
}

}  // namespace gmt::analysis
