// collector/control/framing.h
//
// Frames messages on a control socket (proto/control.proto): a four-byte little-endian length,
// followed by the message.
//
//   FrameReader reader(kMaxRequestBytes);
//   reader.Feed(bytes);
//   while (reader.Next(&message)) ...
//   if (reader.broken()) ...                  // the peer does not use this protocol
//
// A length above the limit is detected after its four bytes, so that nothing is buffered for it.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_CONTROL_FRAMING_H_
#define GMT_COLLECTOR_CONTROL_FRAMING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gmt::control {

inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kMaxRequestBytes = 64 << 10;
inline constexpr size_t kMaxReplyBytes = 16 << 20;
inline constexpr size_t kLengthBytes = 4;

std::string Framed(std::string_view message);

class FrameReader {
 public:
  explicit FrameReader(size_t max_bytes) : max_bytes_(max_bytes) {}

  void Feed(std::string_view bytes);
  // Returns true and the next complete message; false if more bytes are needed or broken().
  bool Next(std::string* message);
  // Whether a message was too long. Nothing more is read then.
  bool broken() const { return broken_; }
  size_t waiting_bytes() const { return bytes_.size() - at_; }

 private:
  const size_t max_bytes_;
  std::string bytes_;
  size_t at_ = 0;  // start of the bytes not yet returned
  bool broken_ = false;
};

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_CONTROL_FRAMING_H_
