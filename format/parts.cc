#include "format/parts.h"

#include <algorithm>
#include <cstdio>

#include "format/frame_stream.h"
#include "format/framing.h"
#include "format/growing_parts.h"

namespace gmt::format {

std::string PartPath(std::string_view path, uint32_t number) {
  const size_t slash = path.rfind('/');
  const size_t dot = path.rfind('.');
  const bool has_extension =
      dot != std::string_view::npos && (slash == std::string_view::npos || dot > slash + 1);
  const size_t stem = has_extension ? dot : path.size();
  char name[32];
  std::snprintf(name, sizeof name, ".part-%06u", number);
  return std::string(path.substr(0, stem)) + name + std::string(path.substr(stem));
}

std::optional<std::string> RecordingOfPart(std::string_view path) {
  constexpr std::string_view kPart = ".part-";
  const size_t part = path.rfind(kPart);
  if (part == std::string_view::npos) return std::nullopt;
  const std::string_view digits = path.substr(part + kPart.size());
  const size_t count = std::min(digits.find_first_not_of("0123456789"), digits.size());
  const std::string_view extension = digits.substr(count);
  if (count < 6) return std::nullopt;
  if (!extension.empty() && (extension[0] != '.' || extension.find('/') != std::string_view::npos))
    return std::nullopt;
  return std::string(path.substr(0, part)) + std::string(extension);
}

bool IsNextPart(const Header& before, const Header& header) {
  return header.part() > 0 && header.part() == before.part() + 1 &&
         header.start_monotonic_ns() == before.start_monotonic_ns() &&
         header.start_unix_ns() == before.start_unix_ns() && header.pid() == before.pid() &&
         header.boot_id() == before.boot_id();
}

Header FirstHeader(ByteSource* source) {
  Header header;
  FrameStream frames(source);
  for (int n = 0; n < 2; ++n) {  // the magic precedes it
    const auto record = frames.Next();
    if (!record.ok() || record->kind == FrameRecord::Kind::kEnd) break;
    if (record->kind != FrameRecord::Kind::kHeader) continue;
    if (!ParseBytes(record->body, &header)) header.Clear();
    break;
  }
  return header;
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenWithParts(absl::string_view path) {
  auto newest = OpenFile(path);
  if (!newest.ok()) return newest;
  return WithOlderParts(*std::move(newest), path);
}

std::unique_ptr<ByteSource> WithOlderParts(std::unique_ptr<ByteSource> newest,
                                           absl::string_view path) {
  std::string head;
  // Finding the header of something else would take a search through all of it.
  if (!newest->Read(0, kFileHeadBytes, &head).ok() || !LooksLikeRecording(head)) return newest;
  if (FirstHeader(newest.get()).part() == 0) return newest;
  auto parts = GrowingParts::Open(std::string(path));
  if (!parts.ok()) return newest;  // a pipe has no parts
  return *std::move(parts);
}

}  // namespace gmt::format
