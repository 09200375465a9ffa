// analysis/categories/alive_texts.h
//
// AliveTexts: why each row was alive over its whole life, as texts that many rows share:
//
//   a parameter
//   saved for backward by SoftmaxBackward0 (model.py:31), AddmmBackward0 (model.py:33) and 2 other
//   nodes; then only the program held it
//
// Thread safety: const methods from any thread. Cost: one walk over the role changes of a trace.

#ifndef GMT_ANALYSIS_CATEGORIES_ALIVE_TEXTS_H_
#define GMT_ANALYSIS_CATEGORIES_ALIVE_TEXTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/categories/categories.h"
#include "analysis/examination/alive.h"
#include "analysis/examination/examination.h"

namespace gmt::analysis {

class AliveTexts {
 public:
  // REQUIRES: both outlive this object.
  AliveTexts(const Examination& examination, const Categories& categories);

  const std::string& Of(RowId row) const { return texts_[CodeOf(row)]; }
  // Returns the first of the reasons that a row's text names.
  AliveReason ReasonOf(RowId row) const { return reasons_[CodeOf(row)]; }
  // Returns the same as text, such as "a parameter", or "".
  std::string_view RoleOf(RowId row) const { return TextOf(ReasonOf(row)); }
  // Equal codes mean equal texts; 0 is "", nothing is known.
  uint32_t CodeOf(RowId row) const;
  const std::vector<std::string>& texts() const { return texts_; }  // by code

 private:
  uint32_t Code(std::string text);

  const Trace& trace_;
  const Categories& categories_;
  bool has_roles_ = false;
  std::vector<std::string> texts_;
  std::vector<AliveReason> reasons_;  // by code
  absl::flat_hash_map<std::string, uint32_t> codes_;
  absl::flat_hash_map<RowId, uint32_t> with_role_;
  uint32_t by_reason_[kAliveReasons] = {};
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CATEGORIES_ALIVE_TEXTS_H_
