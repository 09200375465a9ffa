// answers/show/show.h
//
// What the parts of `gpumemtrace show` share: each explains the subjects of some kinds, as text and as
// JSON, which say the same.
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
  size_t top = 0;  // rows of a list
  const Terminal& terminal;
  analysis::SourceLines& sources;
  bool utf8 = false;

  const analysis::Trace& trace() const { return examination.trace(); }
};

struct ShowAnswer {
  ShowPage page;
  nlohmann::ordered_json json;  // behind "schema" and "file": "id", "kind", "what", then its own
};

using ShowResult = absl::StatusOr<ShowAnswer>;

// NOT_FOUND, with what there is, where the recording has nothing of it.
ShowResult ShowMemory(const ShowInput& input, const analysis::Subject& subject);
ShowResult ShowStep(const ShowInput& input, const analysis::Subject& subject);
ShowResult ShowSnapshot(const ShowInput& input, const analysis::Subject& subject);
ShowResult ShowEvent(const ShowInput& input, const analysis::Subject& subject);
ShowResult ShowPlace(const ShowInput& input, const analysis::Subject& subject);
ShowResult ShowOccurrences(const ShowInput& input, const analysis::Subject& subject);

// ---- What several of them print

// "GPU 0" or "the host".
std::string PlaceName(int32_t device);
// "Net.forward (model.py:88) > at::linear" of a stack.
std::string StackName(const ShowInput& input, uint32_t stack, size_t width);
// The stack that a person would ask for next.
std::string StackId(uint32_t stack);
// "gpumemtrace show" of what there is instead.
absl::Status NoSuch(const ShowInput& input, const analysis::Subject& subject,
                    const std::string& why = "");
nlohmann::ordered_json DeviceJson(int32_t device);
// "+12.9 MiB     +1  pytorch  Net.forward (model.py:88)   stack/7".
std::string AmountLine(const ShowInput& input, const std::string& bytes, const std::string& count,
                       uint32_t heap, uint32_t stack, size_t width);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_SHOW_SHOW_H_
