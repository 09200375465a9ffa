#include "viewer/questions/source_text.h"

#include <utility>

namespace gmt::viewer {
namespace {

std::string NoteOf(analysis::SourceLines::State state) {
  switch (state) {
    case analysis::SourceLines::kThere:
      return "the file has no such line";
    case analysis::SourceLines::kNewer:
      return "the file was changed after the recording began: its lines may have moved";
    case analysis::SourceLines::kMissing:
      return "the file is not on this machine, or cannot be read";
  }
  return "";
}

}  // namespace

bool SourceTexts::IsNamed(const std::string& path) {
  if (!std::exchange(knows_named_, true)) {
    for (uint32_t id = 0; id <= definitions_.frame_count(); ++id) {
      named_.insert(definitions_.string(definitions_.frame(id).file));
      for (const format::Symbol& symbol : definitions_.symbols(id)) {
        named_.insert(definitions_.string(symbol.file));
      }
    }
    named_.erase("");
  }
  return named_.contains(path);
}

absl::StatusOr<SourceText> SourceTexts::Around(const std::string& path, uint32_t line) {
  if (!IsNamed(path)) {
    return absl::NotFoundError("no stack of the recording names that file");
  }
  SourceText text;
  text.path = path;
  for (auto& numbered : sources_.Around(path, line, kLinesAround, kMaxColumns)) {
    if (text.lines.empty()) text.first = numbered.number;
    text.lines.push_back(std::move(numbered.text));
  }
  if (text.lines.empty()) text.note = NoteOf(sources_.StateOf(path));
  return text;
}

}  // namespace gmt::viewer
