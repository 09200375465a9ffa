#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "analysis/show/selection.h"
#include "analysis/text.h"
#include "answers/show/show.h"

namespace gmt::answers {

using analysis::Subject;

std::string PlaceName(int32_t device) {
  return device == analysis::kHostDevice ? "the host" : fmt::format("GPU {}", device);
}

std::string StackName(const ShowInput& input, uint32_t stack, size_t width) {
  return StackLine(input.examination.stacks().Frames(stack), width);
}

std::string StackId(uint32_t stack) { return absl::StrCat("stack/", stack); }

absl::Status NoSuch(const ShowInput& input, const Subject& subject, const std::string& why) {
  if (!why.empty()) {
    return absl::NotFoundError(absl::StrCat(input.file, ": ", why));
  }
  const std::string there =
      WhatThereIs(input.examination, input.categories, input.leaks, subject.kind);
  const std::string kind(NameOf(subject.kind));
  return absl::NotFoundError(absl::StrCat(input.file, ": there is no ", subject.id(), "; ",
                                          there.empty()
                                              ? absl::StrCat("the recording has no ", kind)
                                              : absl::StrCat("it has ", there)));
}

nlohmann::ordered_json DeviceJson(int32_t device) {
  if (device == analysis::kHostDevice) return nullptr;
  return device;
}

std::string AmountLine(const ShowInput& input, const std::string& bytes, const std::string& count,
                       uint32_t heap, uint32_t stack, size_t width) {
  const std::string numbers =
      fmt::format("  {:>10} {:>8}  {:<7} ", bytes, count, input.trace().heaps[heap]);
  const std::string id = "   " + StackId(stack);
  const size_t taken = numbers.size() + id.size();
  const std::string name = StackName(input, stack, width > taken ? width - taken : 0);
  return numbers + Shortened(name, width > taken + 10 ? width - taken : 10) +
         (stack == 0 ? "" : id);
}

}  // namespace gmt::answers
