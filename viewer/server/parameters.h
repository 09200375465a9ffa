// viewer/server/parameters.h
//
// Parameters: what stands behind the '?' of a question, asked for by name and range. The first thing
// that is wrong is kept as a sentence, so that a question is read in a row and checked once:
//
//   Parameters parameters(request.query);
//   const uint32_t columns = parameters.Integer("columns", 1, kMaxColumns);
//   const double from = parameters.Number("from");
//   if (absl::Status status = parameters.Finish(); !status.ok()) return BadRequest(status);
//
// Invariants: what is returned lies in the range that was asked for, also where something is wrong.
// Finish() fails where a parameter was given that nobody asked for: a typing error must not become a
// default. Thread safety: one thread at a time.

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

  // Whole numbers of min..max.
  uint64_t Integer(const std::string& name, uint64_t min, uint64_t max);
  uint64_t IntegerOr(const std::string& name, uint64_t min, uint64_t max, uint64_t otherwise);
  std::optional<uint64_t> OptionalInteger(const std::string& name, uint64_t min, uint64_t max);
  // Any finite number.
  double Number(const std::string& name);
  // The index of the value in `values`.
  size_t Choice(const std::string& name, const std::vector<std::string>& values);
  size_t ChoiceOr(const std::string& name, const std::vector<std::string>& values,
                  size_t otherwise);
  // "true" or "false".
  bool FlagOr(const std::string& name, bool otherwise);
  // "" where it was not given.
  std::string Text(const std::string& name);
  // "1,2,3"; at most `max_count`, each at most `max`.
  std::vector<uint32_t> Integers(const std::string& name, uint32_t max, size_t max_count);

  // For what depends on several of them; the first sentence stays.
  void Refuse(const std::string& sentence);

  absl::Status Finish();

 private:
  // Null where it was not given.
  const std::string* Find(const std::string& name);
  const std::string* Require(const std::string& name);
  void Parse(absl::string_view pair);

  std::map<std::string, std::string> values_;
  std::set<std::string> asked_;
  absl::Status status_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_PARAMETERS_H_
