#include "collector/inject/memory_map.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "collector/inject/proc_file.h"

namespace gmt::inject {
namespace {

bool TakeNumber(std::string_view* text, int base, char behind, uint64_t* value) {
  const auto [end, error] =
      std::from_chars(text->data(), text->data() + text->size(), *value, base);
  if (error != std::errc() || end == text->data() + text->size() || *end != behind) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()) + 1);
  return true;
}

// "7f00-7f10 r-xp 00001000 08:01 123   /path"
bool ParseLine(std::string_view line, Mapping* m) {
  if (!TakeNumber(&line, 16, '-', &m->start) || !TakeNumber(&line, 16, ' ', &m->end)) return false;
  if (line.size() < 5) return false;
  m->readable = line[0] == 'r';
  m->writable = line[1] == 'w';
  m->executable = line[2] == 'x';
  m->shared = line[3] == 's';
  line.remove_prefix(5);
  uint64_t major, minor;
  if (!TakeNumber(&line, 16, ' ', &m->offset) || !TakeNumber(&line, 16, ':', &major) ||
      !TakeNumber(&line, 16, ' ', &minor)) {
    return false;
  }
  const size_t inode_end = line.find(' ');
  const std::string_view digits = line.substr(0, inode_end);
  std::from_chars(digits.data(), digits.data() + digits.size(), m->inode);
  const size_t path = line.find_first_not_of(' ', digits.size());
  if (path != std::string_view::npos) m->path = line.substr(path);
  return true;
}

}  // namespace

std::string_view Mapping::Name() const {
  std::string_view name = path;
  constexpr std::string_view kDeleted = " (deleted)";
  if (name.ends_with(kDeleted)) name.remove_suffix(kDeleted.size());
  return name.substr(name.rfind('/') + 1);
}

MemoryMap ParseMemoryMap(std::string_view text) {
  MemoryMap map;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    Mapping mapping;
    if (ParseLine(text.substr(0, end), &mapping)) map.push_back(std::move(mapping));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return map;
}

absl::StatusOr<MemoryMap> ReadMemoryMap(pid_t pid) {
  const std::string path = absl::StrCat("/proc/", pid, "/maps");
  absl::StatusOr<std::string> text = ReadProcFile(path);
  if (!text.ok()) return text.status();
  return ParseMemoryMap(*text);
}

const Mapping* FindMapping(const MemoryMap& map, uint64_t address) {
  const auto it = std::upper_bound(map.begin(), map.end(), address,
                                   [](uint64_t a, const Mapping& m) { return a < m.end; });
  return it != map.end() && it->Holds(address) ? &*it : nullptr;
}

bool IsLibc(const Mapping& mapping) {
  const std::string_view name = mapping.Name();
  // Before glibc 2.34, the file name contains the version.
  return name == "libc.so.6" || (name.starts_with("libc-2.") && name.ends_with(".so"));
}

bool IsLoader(const Mapping& mapping) {
  const std::string_view name = mapping.Name();
  return name.starts_with("ld-linux") || name.starts_with("ld64.so") ||
         (name.starts_with("ld-2.") && name.ends_with(".so"));
}

bool IsMusl(const Mapping& mapping) {
  const std::string_view name = mapping.Name();
  return name.starts_with("ld-musl") || name.starts_with("libc.musl");
}

bool IsAllocator(const Mapping& mapping) {
  const std::string_view name = mapping.Name();
  return name.starts_with("lib") && name.find("alloc") != std::string_view::npos &&
         name.find(".so") != std::string_view::npos && mapping.inode != 0;
}

}  // namespace gmt::inject
