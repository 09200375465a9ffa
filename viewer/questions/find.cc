#include "viewer/questions/find.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "viewer/questions/scope_rows.h"

namespace gmt::viewer {
namespace {

using analysis::RowId;

bool IsOfARange(const Scope& scope) { return scope.of == Scope::kBorn || scope.of == Scope::kKept; }

uint64_t CountRows(Recording& recording, const Scope& scope, RowFilter& filter) {
  std::optional<FoundTotal>& last = recording.found_total;
  if (last && last->scope == scope) return last->total;
  last = FoundTotal{scope, 0};
  ForEachRow(recording, scope, filter, [&](RowId, int) { return ++last->total, true; });
  return last->total;
}

}  // namespace

absl::StatusOr<Found> FindBlocks(Recording& recording, const Scope& scope, uint32_t after,
                                 uint32_t limit) {
  const analysis::Rows& rows = recording.rows();
  if (limit > kMaxFound) {
    return absl::InvalidArgumentError(absl::StrCat("at most ", kMaxFound, " blocks a page"));
  }
  if (after != kNoRow && after >= rows.count()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no block ", after));
  }
  if (absl::Status status = CheckScope(recording, scope); !status.ok()) return status;
  absl::StatusOr<RowFilter> filter = RowFilter::Make(recording, scope.filter);
  if (!filter.ok()) return filter.status();

  Found found;
  found.total = CountRows(recording, scope, *filter);
  const auto place = [&](RowId row) { return std::make_tuple(rows.birth[row], row); };
  // Unless the scope is kGrowth, rows come in order of birth: nothing needs sorting, and a full
  // page ends the search.
  const bool is_ordered = scope.of != Scope::kGrowth;
  Scope rest = scope;
  if (IsOfARange(scope) && after != kNoRow) rest.from = std::max(rest.from, rows.birth[after]);
  std::vector<RowId> page;
  ForEachRow(recording, rest, *filter, [&](RowId row, int) {
    if (after != kNoRow && place(row) <= place(after)) return true;
    if (page.size() < limit || !is_ordered) page.push_back(row);
    return !is_ordered || page.size() < limit;
  });
  if (!is_ordered) {
    std::sort(page.begin(), page.end(), [&](RowId a, RowId b) { return place(a) < place(b); });
    if (page.size() > limit) page.resize(limit);
  }
  for (const RowId row : page) {
    found.row.push_back(row);
    found.birth.push_back(rows.birth[row]);
    found.death.push_back(rows.death[row]);
    found.size.push_back(rows.size[row]);
  }
  return found;
}

}  // namespace gmt::viewer
