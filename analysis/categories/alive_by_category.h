// analysis/categories/alive_by_category.h
//
// AliveByCategory: why memory is alive (analysis/examination/alive.h); memory without a role gets
// its reason from its category.
//
// Thread safety: const methods from any thread.

#ifndef GMT_ANALYSIS_CATEGORIES_ALIVE_BY_CATEGORY_H_
#define GMT_ANALYSIS_CATEGORIES_ALIVE_BY_CATEGORY_H_

#include <cstdint>

#include "analysis/categories/categories.h"
#include "analysis/examination/alive.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

// Why `row` is alive if PyTorch gave it no role. `has_roles`: PyTorch reported roles for other
// memory.
AliveBecause WithoutRole(const Trace& trace, const Categories& categories, bool has_roles,
                         RowId row);

class AliveByCategory {
 public:
  // The state after `step` steps. REQUIRES: `trace` and `categories` outlive this object.
  AliveByCategory(const Trace& trace, const Categories& categories, Step step,
                  RolesAt::When when = RolesAt::When::kNow)
      : trace_(trace), categories_(categories), roles_(trace, step, when) {}

  void AddTo(AliveSums& sums, RowId row, uint64_t bytes) const {
    sums.Add(roles_.Of(row), WithoutRole(trace_, categories_, roles_.is_known(), row), bytes);
  }

  const RolesAt& roles() const { return roles_; }

 private:
  const Trace& trace_;
  const Categories& categories_;
  const RolesAt roles_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CATEGORIES_ALIVE_BY_CATEGORY_H_
