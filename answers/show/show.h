// answers/show/show.h
//
// Shared declarations of `gpumemtrace show`. Each function explains the subjects of some kinds,
// with the same content as text and as JSON.
//
// Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_SHOW_SHOW_H_
#define GMT_ANSWERS_SHOW_SHOW_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "analysis/leaks/leaks.h"
#include "analysis/show/subject.h"
#include "answers/show/page.h"

namespace gmt::answers {

struct ShowInput {
  const analysis::Examination& examination;
  const analysis::Categories& categories;
  const analysis::LeakReport& leaks;
  const std::string& file;
  FramesShown shown = FramesShown::kFolded;
  size_t top = 0;  // rows per list
  const Terminal& terminal;
  analysis::SourceLines& sources;
  bool utf8 = false;

  const analysis::Trace& trace() const { return examination.trace(); }
};

struct ShowAnswer {
  ShowPage page;
  // After "schema" and "file": "id", "kind", "what", then its own keys.
  nlohmann::ordered_json json;
};

using ShowResult = absl::StatusOr<ShowAnswer>;

// Return NOT_FOUND with what exists instead if the recording does not have the subject.
ShowResult ShowMemory(const ShowInput& input, const analysis::Subject& subject);
ShowResult ShowStep(const ShowInput& input, const analysis::Subject& subject);
ShowResult ShowSnapshot(const ShowInput& input, const analysis::Subject& subject);
ShowResult ShowEvent(const ShowInput& input, const analysis::Subject& subject);
ShowResult ShowPlace(const ShowInput& input, const analysis::Subject& subject);
ShowResult ShowOccurrences(const ShowInput& input, const analysis::Subject& subject);

// ---- Shared helpers

// Returns "GPU 0" or "the host".
std::string PlaceName(int32_t device);
// Returns "Net.forward (model.py:88) > at::linear" for a stack.
std::string StackName(const ShowInput& input, uint32_t stack, size_t width);
// Returns the ID of a stack, to show next.
std::string StackId(uint32_t stack);
// Returns an error that lists what exists instead, or gives `why`.
absl::Status NoSuch(const ShowInput& input, const analysis::Subject& subject,
                    const std::string& why = "");
nlohmann::ordered_json DeviceJson(int32_t device);
// Returns "+12.9 MiB     +1  pytorch  Net.forward (model.py:88)   stack/7".
std::string AmountLine(const ShowInput& input, const std::string& bytes, const std::string& count,
                       uint32_t heap, uint32_t stack, size_t width);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_SHOW_SHOW_H_
