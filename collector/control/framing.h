// collector/control/framing.h
//
// Messages on a control socket (proto/control.proto): four bytes of length, little-endian, then the
// message.
//
//   FrameReader reader(kMaxRequestBytes);
//   reader.Feed(bytes);
//   while (reader.Next(&message)) ...
//   if (reader.broken()) ...                  the other side speaks something else
//
// A length beyond the limit is known from its four bytes: nothing is kept for it.
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
  // True and the next whole message; false where more bytes are needed, or none will help.
  bool Next(std::string* message);
  // A message is longer than allowed. Nothing more is read.
  bool broken() const { return broken_; }
  size_t waiting_bytes() const { return bytes_.size() - at_; }

 private:
  const size_t max_bytes_;
  std::string bytes_;
  size_t at_ = 0;  // of what was not given out yet
  bool broken_ = false;
};

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_CONTROL_FRAMING_H_
