// format/framing.h
//
// The bytes around the messages of a recording, shared by writer, reader and repair. docs/format.md
// has a diagram.
//
//   file segment   magic(13) header chunk* [index footer(19)]
//   header         12 LENGTH body                          7D CRC32C(4)
//   chunk          1A LENGTH 09 "GMTCHUNK" rest of body    7D CRC32C(4)
//   index          72 LENGTH 09 "GMTINDEX" rest of body    7D CRC32C(4)
//   footer         79 index_offset(8) 81 01 "GMTRACE1"
//
// LENGTH is a varint that counts body and checksum. The checksum covers everything before its own
// tag 7D.
//
// Thread safety: pure functions.

#ifndef GMT_FORMAT_FRAMING_H_
#define GMT_FORMAT_FRAMING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gmt::format {

inline constexpr std::string_view kFileMagic("\x0A\x0B\xFA\x7C\x08GMTRACE1", 13);
inline constexpr std::string_view kChunkSync = "GMTCHUNK";
inline constexpr std::string_view kIndexSync = "GMTINDEX";
inline constexpr std::string_view kEndMagic = "GMTRACE1";
inline constexpr size_t kFooterBytes = 19;
inline constexpr size_t kCrcBytes = 5;        // tag and value
inline constexpr size_t kMaxPrefixBytes = 6;  // tag and LENGTH

// The version of this reader, and the oldest that can read what writers here write. Readers of
// version 1 do not know Events.t_width, Events.present_change and Acquisitions.address_from.
inline constexpr uint32_t kReaderVersion = 2;

// Limits for readers and writers.
inline constexpr uint64_t kMaxBodyBytes = 64u << 20;  // of Body, before compression
inline constexpr uint64_t kMaxFrameBytes = kMaxBodyBytes + (1u << 20);  // LENGTH

enum class FrameTag : uint8_t {
  kHeader = 0x12,
  kChunk = 0x1A,
  kIndex = 0x72,
};

// Returns whether a file that begins like this may be a recording, even one with a damaged
// beginning.
bool LooksLikeRecording(std::string_view head);

// Returns the sync word as the value of a fixed64 field.
uint64_t SyncWord(std::string_view text);

// Returns tag, LENGTH, body and checksum.
std::string Frame(FrameTag tag, std::string_view body);
std::string Footer(uint64_t index_offset);

// The first bytes of a frame, decoded.
struct FramePrefix {
  FrameTag tag = FrameTag::kChunk;
  uint64_t prefix_bytes = 0;  // tag and LENGTH
  uint64_t length = 0;        // number of bytes after them
  uint64_t total() const { return prefix_bytes + length; }
};
// Returns nothing if `bytes` is too short or not a frame. Does not check `length`.
std::optional<FramePrefix> ParseFramePrefix(std::string_view bytes);

// Parses a protobuf message from the body of a frame. Returns false if it is damaged.
template <typename Message>
bool ParseBytes(std::string_view bytes, Message* message) {
  return message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// Returns the body of a complete frame, or nothing if its checksum or sync word is wrong.
std::optional<std::string_view> CheckedBody(const FramePrefix& prefix, std::string_view frame);

// Returns the index offset of a complete footer, or nothing if a constant byte is wrong.
std::optional<uint64_t> ParseFooter(std::string_view bytes);

}  // namespace gmt::format

#endif  // GMT_FORMAT_FRAMING_H_
