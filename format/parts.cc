#include "format/parts.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "format/frame_stream.h"

namespace gmt::format {
namespace {

// Several sources, one behind the other.
class JoinedSource : public ByteSource {
 public:
  explicit JoinedSource(std::vector<std::unique_ptr<ByteSource>> sources)
      : sources_(std::move(sources)) {
    for (const auto& source : sources_) size_ += source->size();
  }
  uint64_t size() const override { return size_; }

  absl::Status Read(uint64_t offset, uint64_t count, std::string* out) override {
    out->clear();
    std::string piece;
    for (const auto& source : sources_) {
      if (offset >= source->size()) {
        offset -= source->size();
        continue;
      }
      const uint64_t here = std::min(count - out->size(), source->size() - offset);
      absl::Status status = source->Read(offset, here, out->empty() ? out : &piece);
      if (!status.ok()) return status;
      if (!piece.empty()) out->append(std::exchange(piece, {}));
      offset = 0;
      if (out->size() >= count) break;
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<std::unique_ptr<ByteSource>> sources_;
  uint64_t size_ = 0;
};

// The header that a file begins with; empty where it does not.
Header FirstHeader(ByteSource* source) {
  Header header;
  FrameStream frames(source);
  for (int n = 0; n < 2; ++n) {  // the magic stands before it
    const auto record = frames.Next();
    if (!record.ok() || record->kind == FrameRecord::Kind::kEnd) break;
    if (record->kind != FrameRecord::Kind::kHeader) continue;
    if (!header.ParseFromArray(record->body.data(), static_cast<int>(record->body.size())))
      header.Clear();
    break;
  }
  return header;
}

}  // namespace

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

bool IsNextPart(const Header& before, const Header& header) {
  return header.part() > 0 && header.part() == before.part() + 1 &&
         header.start_monotonic_ns() == before.start_monotonic_ns() &&
         header.start_unix_ns() == before.start_unix_ns() && header.pid() == before.pid() &&
         header.boot_id() == before.boot_id();
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenWithParts(absl::string_view path) {
  auto newest = OpenFile(path);
  if (!newest.ok()) return newest;
  Header header = FirstHeader(newest->get());
  if (header.part() == 0) return newest;
  std::vector<std::unique_ptr<ByteSource>> sources;
  sources.push_back(*std::move(newest));
  while (header.part() > 0) {
    auto older = OpenFile(PartPath({path.data(), path.size()}, header.part() - 1));
    if (!older.ok()) break;
    Header before = FirstHeader(older->get());
    if (!IsNextPart(before, header)) break;
    sources.push_back(*std::move(older));
    header = std::move(before);
  }
  std::reverse(sources.begin(), sources.end());
  return std::unique_ptr<ByteSource>(new JoinedSource(std::move(sources)));
}

}  // namespace gmt::format
