#include "viewer/questions/recording.h"

#include "absl/strings/str_cat.h"
#include "viewer/index/names.h"
#include "viewer/questions/scope_rows.h"

namespace gmt::viewer {

std::string Recording::DtypeOf(analysis::RowId row) const {
  const std::string tensor = TensorText(frames.definitions(), rows(), row);
  return tensor.substr(0, tensor.find(' '));
}

absl::Status Recording::Check(uint32_t lane, uint32_t event) const {
  if (lane >= lanes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no lane ", lane, "; the recording has ", lanes.size()));
  }
  if (event > trace().last_step()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no event ", event, "; the recording has ", trace().last_step()));
  }
  return absl::OkStatus();
}

absl::Status CheckScope(const Recording& recording, const Scope& scope) {
  absl::Status status = recording.Check(scope.lane, scope.to);
  if (!status.ok()) return status;
  return recording.Check(scope.lane, scope.from);
}

}  // namespace gmt::viewer
