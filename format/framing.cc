#include "format/framing.h"

#include <cstring>

#include "format/crc32c.h"

namespace gmt::format {
namespace {

constexpr char kSyncTag = 0x09;  // fixed64 field 1
constexpr char kCrcTag = 0x7D;   // fixed32 field 15
constexpr std::string_view kIndexOffsetTag = "\x79";
constexpr std::string_view kEndMagicTag = "\x81\x01";
constexpr size_t kMaxLengthBytes = kMaxPrefixBytes - 1;

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Little endian, like protobuf's fixed fields.
template <typename T>
void AppendFixed(T value, std::string* out) {
  for (size_t at = 0; at < sizeof value; ++at) out->push_back(static_cast<char>(value >> (8 * at)));
}

template <typename T>
T FixedAt(std::string_view bytes, size_t at) {
  T value = 0;
  for (size_t n = 0; n < sizeof value; ++n) {
    value |= static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes[at + n])) << (8 * n));
  }
  return value;
}

bool StartsWithSync(std::string_view body, std::string_view sync) {
  return body.size() > sync.size() && body[0] == kSyncTag && body.substr(1, sync.size()) == sync;
}

}  // namespace

bool LooksLikeRecording(std::string_view head) {
  return head.starts_with(kFileMagic) || kFileMagic.starts_with(head) ||
         head.find(kChunkSync) != std::string_view::npos;
}

uint64_t SyncWord(std::string_view text) { return FixedAt<uint64_t>(text, 0); }

std::string Frame(FrameTag tag, std::string_view body) {
  std::string frame;
  frame.reserve(kMaxPrefixBytes + body.size() + kCrcBytes);
  frame.push_back(static_cast<char>(tag));
  AppendVarint(body.size() + kCrcBytes, &frame);
  frame.append(body);
  const uint32_t crc = Crc32c(frame);
  frame.push_back(kCrcTag);
  AppendFixed(crc, &frame);
  return frame;
}

std::string Footer(uint64_t index_offset) {
  std::string footer(kIndexOffsetTag);
  AppendFixed(index_offset, &footer);
  footer.append(kEndMagicTag).append(kEndMagic);
  return footer;
}

std::optional<FramePrefix> ParseFramePrefix(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  FramePrefix prefix;
  prefix.tag = static_cast<FrameTag>(bytes[0]);
  if (prefix.tag != FrameTag::kHeader && prefix.tag != FrameTag::kChunk &&
      prefix.tag != FrameTag::kIndex) {
    return std::nullopt;
  }
  for (size_t at = 1; at < bytes.size() && at <= kMaxLengthBytes; ++at) {
    const auto byte = static_cast<unsigned char>(bytes[at]);
    prefix.length |= uint64_t{byte & 0x7Fu} << (7 * (at - 1));
    if (byte < 0x80) {
      prefix.prefix_bytes = at + 1;
      return prefix;
    }
  }
  return std::nullopt;
}

std::optional<std::string_view> CheckedBody(const FramePrefix& prefix, std::string_view frame) {
  if (frame.size() != prefix.total() || prefix.length < kCrcBytes) return std::nullopt;
  const size_t crc_at = frame.size() - kCrcBytes;
  if (frame[crc_at] != kCrcTag) return std::nullopt;
  if (FixedAt<uint32_t>(frame, crc_at + 1) != Crc32c(frame.substr(0, crc_at))) return std::nullopt;
  const std::string_view body = frame.substr(prefix.prefix_bytes, prefix.length - kCrcBytes);
  if (prefix.tag == FrameTag::kChunk && !StartsWithSync(body, kChunkSync)) return std::nullopt;
  if (prefix.tag == FrameTag::kIndex && !StartsWithSync(body, kIndexSync)) return std::nullopt;
  return body;
}

std::optional<uint64_t> ParseFooter(std::string_view bytes) {
  if (bytes.size() != kFooterBytes || bytes.substr(0, 1) != kIndexOffsetTag) return std::nullopt;
  if (bytes.substr(9, 2) != kEndMagicTag || bytes.substr(11) != kEndMagic) return std::nullopt;
  return FixedAt<uint64_t>(bytes, 1);
}

}  // namespace gmt::format
