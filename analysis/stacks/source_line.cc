#include "analysis/stacks/source_line.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "analysis/text.h"

namespace gmt::analysis {
namespace {

constexpr int64_t kMaxFileBytes = 8 << 20;
constexpr size_t kTab = 4;
constexpr int64_t kSecond_ns = 1'000'000'000;

SourceLines::State StateOf(const struct stat& status, int64_t start_unix_ns) {
  if (!S_ISREG(status.st_mode) || status.st_size > kMaxFileBytes) return SourceLines::kMissing;
  const int64_t changed_ns =
      static_cast<int64_t>(status.st_mtim.tv_sec) * kSecond_ns + status.st_mtim.tv_nsec;
  const bool fits = start_unix_ns <= 0 || changed_ns <= start_unix_ns;
  return fits ? SourceLines::kThere : SourceLines::kNewer;
}

// Returns "" if the file cannot be used; `state` has the reason.
std::string ReadFile(const std::string& path, int64_t start_unix_ns, SourceLines::State& state) {
  struct stat status;
  const auto is_readable = [&] {
    state = StateOf(status, start_unix_ns);
    return state == SourceLines::kThere;
  };
  // Checked before opening, because opening a device may already have an effect, and again
  // afterwards, because the file may have been replaced.
  if (stat(path.c_str(), &status) != 0 || !is_readable()) return "";
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return "";
  std::string text;
  if (fstat(file, &status) == 0 && is_readable()) {
    text.resize(static_cast<size_t>(status.st_size));
    size_t size = 0;
    while (size < text.size()) {
      const ssize_t got = read(file, text.data() + size, text.size() - size);
      if (got <= 0) break;
      size += static_cast<size_t>(got);
    }
    text.resize(size);
  }
  close(file);
  return text;
}

// Removes control characters and expands tabs.
std::string Printable(std::string_view line) {
  std::string text;
  for (const char c : line) {
    if (c == '\t') {
      text.append(kTab - text.size() % kTab, ' ');
    } else if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) {
      text += c;
    }
  }
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

size_t IndentOf(const std::string& line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

}  // namespace

const SourceLines::File& SourceLines::FileAt(const std::string& path) {
  const auto [found, is_new] = files_.try_emplace(path);
  File& file = found->second;
  if (!is_new || path.empty() || path[0] != '/') return file;
  const std::string text = ReadFile(path, start_unix_ns_, file.state);
  if (text.empty() || text.find('\0') != std::string::npos) {  // not a source file
    if (file.state == kThere) file.state = kMissing;
    return file;
  }
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    file.lines.push_back(Printable({line.data(), line.size()}));
  }
  return file;
}

std::string SourceLines::Line(const std::string& file, uint32_t number, size_t columns) {
  const std::vector<std::string>& lines = LinesOf(file);
  if (number == 0 || number > lines.size()) return "";
  const std::string& line = lines[number - 1];
  return Shortened(line.substr(IndentOf(line)), columns);
}

std::vector<SourceLines::Numbered> SourceLines::Around(const std::string& file, uint32_t number,
                                                       uint32_t around, size_t columns) {
  const std::vector<std::string>& lines = LinesOf(file);
  std::vector<Numbered> found;
  if (number == 0 || number > lines.size()) return found;
  const auto last =
      static_cast<uint32_t>(std::min<uint64_t>(uint64_t{number} + around, lines.size()));
  size_t indent = SIZE_MAX;
  for (uint32_t i = number > around ? number - around : 1; i <= last; ++i) {
    const std::string& line = lines[i - 1];
    if (!line.empty()) indent = std::min(indent, IndentOf(line));
    found.push_back({i, line});
  }
  for (Numbered& line : found) {
    if (!line.text.empty()) line.text = Shortened(line.text.substr(indent), columns);
  }
  return found;
}

}  // namespace gmt::analysis
