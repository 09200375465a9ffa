// answers/diff/limit.h
//
// A memory limit as given on the command line: "10GiB", "512 MB", "1048576", or "80%" of the
// device.

#ifndef GMT_ANSWERS_DIFF_LIMIT_H_
#define GMT_ANSWERS_DIFF_LIMIT_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gmt::answers {

struct Limit {
  std::optional<uint64_t> bytes;
  double percent = 0;  // used if `bytes` is not set
};

// Returns INVALID_ARGUMENT for any other text.
absl::StatusOr<Limit> ParseLimit(absl::string_view text);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_DIFF_LIMIT_H_
