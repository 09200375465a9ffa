#include "collector/control/framing.h"

namespace gmt::control {

std::string Framed(std::string_view message) {
  std::string frame;
  frame.reserve(kLengthBytes + message.size());
  for (size_t i = 0; i < kLengthBytes; ++i)
    frame.push_back(static_cast<char>(message.size() >> (8 * i) & 0xff));
  frame.append(message);
  return frame;
}

void FrameReader::Feed(std::string_view bytes) {
  if (broken_) return;
  bytes_.erase(0, at_);
  at_ = 0;
  bytes_.append(bytes);
}

bool FrameReader::Next(std::string* message) {
  if (broken_ || waiting_bytes() < kLengthBytes) return false;
  size_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i)
    length |= static_cast<size_t>(static_cast<unsigned char>(bytes_[at_ + i])) << (8 * i);
  if (length > max_bytes_) {
    broken_ = true;
    bytes_ = {};
    at_ = 0;
    return false;
  }
  if (waiting_bytes() - kLengthBytes < length) return false;
  message->assign(bytes_, at_ + kLengthBytes, length);
  at_ += kLengthBytes + length;
  return true;
}

}  // namespace gmt::control
