// viewer/server/parameters.h
//
// Parameters: the query string of a request, read by name and range. The first error is kept as a
// sentence, so that a query can be read in one go and checked once:
//
//   Parameters parameters(request.query);
//   const uint32_t columns = parameters.Integer("columns", 1, kMaxColumns);
//   const double from = parameters.Number("from");
//   if (absl::Status status = parameters.Finish(); !status.ok()) return BadRequest(status);
//
// Invariants: returned values lie in the requested range, even after an error. Finish() fails if a
// parameter was given that was never read, so that a typing error does not silently become a
// default.
// Thread safety: one thread at a time.

#ifndef GMT_VIEWER_SERVER_PARAMETERS_H_
#define GMT_VIEWER_SERVER_PARAMETERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gmt::viewer {

class Parameters {
 public:
  // `query`: "name=value&name=value", percent-encoded.
  explicit Parameters(absl::string_view query);

  // Integers between `min` and `max`, inclusive.
  uint64_t Integer(const std::string& name, uint64_t min, uint64_t max);
  uint64_t IntegerOr(const std::string& name, uint64_t min, uint64_t max, uint64_t otherwise);
  std::optional<uint64_t> OptionalInteger(const std::string& name, uint64_t min, uint64_t max);
  // Any finite number.
  double Number(const std::string& name);
  // Returns the index of the value in `values`.
  size_t Choice(const std::string& name, const std::vector<std::string>& values);
  size_t ChoiceOr(const std::string& name, const std::vector<std::string>& values,
                  size_t otherwise);
  // "true" or "false".
  bool FlagOr(const std::string& name, bool otherwise);
  // Returns "" if it was not given.
  std::string Text(const std::string& name);
  // "1,2,3"; at most `max_count`, each at most `max`.
  std::vector<uint32_t> Integers(const std::string& name, uint32_t max, size_t max_count);
  // A JSON array of strings; at most kMaxTexts. Returns none if it was not given.
  static constexpr size_t kMaxTexts = 16;
  std::vector<std::string> Texts(const std::string& name);

  // Reports an error that depends on several parameters; only the first error is kept.
  void Refuse(const std::string& sentence);

  absl::Status Finish();

 private:
  // Returns null if it was not given.
  const std::string* Find(const std::string& name);
  const std::string* Require(const std::string& name);
  void Parse(absl::string_view pair);

  std::map<std::string, std::string> values_;
  std::set<std::string> known_names_;
  absl::Status status_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_PARAMETERS_H_
