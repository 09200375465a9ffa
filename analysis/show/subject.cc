#include "analysis/show/subject.h"

#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gmt::analysis {
namespace {

enum class Form : uint8_t { kNumber, kAddress, kName };

struct Described {
  Subject::Kind kind;
  std::string_view name;
  Form form;
  const char* example;
};

constexpr std::array<Described, 19> kKinds = {{
    {Subject::kStack, "stack", Form::kNumber, "stack/7, or stack/7+9 of a backward pass"},
    {Subject::kThread, "thread", Form::kNumber, "thread/11 or thread/unknown"},
    {Subject::kStream, "stream", Form::kAddress, "stream/0x7f00 or stream/none"},
    {Subject::kSize, "size", Form::kNumber, "size/2097152"},
    {Subject::kHeap, "heap", Form::kName, "heap/pytorch"},
    {Subject::kLibrary, "library", Form::kName, "library/NCCL"},
    {Subject::kFunction, "function", Form::kName, "function/forward (model.py)"},
    {Subject::kFile, "file", Form::kName, "file/model.py"},
    {Subject::kCategory, "category", Form::kName, "category/activations"},
    {Subject::kLayer, "layer", Form::kName, "layer/Net.Block"},
    {Subject::kDevice, "device", Form::kNumber, "device/0 or device/host"},
    {Subject::kBefore, "before", Form::kName, "before/state"},
    {Subject::kLeak, "leak", Form::kNumber, "leak/1"},
    {Subject::kStep, "step", Form::kNumber, "step/12"},
    {Subject::kSnapshot, "snapshot", Form::kName, "snapshot/oom-1"},
    {Subject::kEvent, "event", Form::kNumber, "event/123"},
    {Subject::kBlock, "block", Form::kAddress, "block/0x7f0000000000"},
    {Subject::kRange, "range", Form::kName, "range/epoch"},
    {Subject::kMark, "mark", Form::kName, "mark/step"},
}};

bool ParseHex(absl::string_view text, uint64_t* number) {
  return absl::ConsumePrefix(&text, "0x") && absl::SimpleHexAtoi(text, number);
}

bool ParseAddress(absl::string_view text, uint64_t* number) {
  return ParseHex(text, number) || absl::SimpleAtoi(text, number);
}

// Parses "7+9" for stacks.
bool ParseStack(absl::string_view text, Subject* subject) {
  const size_t plus = text.find('+');
  if (plus != absl::string_view::npos &&
      (!absl::SimpleAtoi(text.substr(plus + 1), &subject->forward) || subject->forward == 0)) {
    return false;
  }
  return absl::SimpleAtoi(text.substr(0, plus), &subject->number);
}

// Whether the text is the word used instead of an unknown number.
bool IsUnknown(Subject::Kind kind, absl::string_view text) {
  return (kind == Subject::kThread && text == "unknown") ||
         (kind == Subject::kStream && text == "none") ||
         (kind == Subject::kDevice && text == "host");
}

bool ParseValue(const Described& kind, absl::string_view text, Subject* subject) {
  if (IsUnknown(kind.kind, text)) {
    subject->unknown = true;
    return true;
  }
  switch (kind.form) {
    case Form::kName:
      return true;
    case Form::kAddress:
      return ParseAddress(text, &subject->number);
    case Form::kNumber:
      return kind.kind == Subject::kStack ? ParseStack(text, subject)
                                          : absl::SimpleAtoi(text, &subject->number);
  }
  return false;
}

}  // namespace

std::string_view NameOf(Subject::Kind kind) {
  return kind == Subject::kNamed ? "name" : kKinds[kind].name;
}

std::string Subject::id() const {
  if (kind == kNamed) return name;
  return absl::StrCat(absl::string_view(NameOf(kind).data(), NameOf(kind).size()), "/", name);
}

absl::StatusOr<Subject> ParseSubject(absl::string_view text) {
  Subject subject;
  if (ParseHex(text, &subject.number)) {
    subject.kind = Subject::kBlock;
    subject.name = std::string(text);
    return subject;
  }
  const size_t slash = text.find('/');
  for (const Described& kind : kKinds) {
    if (slash == absl::string_view::npos ||
        text.substr(0, slash) != absl::string_view(kind.name.data(), kind.name.size())) {
      continue;
    }
    subject.kind = kind.kind;
    subject.name = std::string(text.substr(slash + 1));
    if (ParseValue(kind, subject.name, &subject)) return subject;
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no id; write ", kind.example));
  }
  subject.kind = Subject::kNamed;
  subject.name = std::string(text);
  return subject;
}

}  // namespace gmt::analysis
