#include "preload/nvtx/message.h"

#include <string.h>

#include "preload/nvtx/tables.h"
#include "session/layout.h"

namespace gmt::preload {
namespace {

constexpr uint32_t kReplacement = 0xfffd;

// Encodes one character in UTF-8 to out[4]. Returns the number of bytes.
uint32_t EncodeOne(uint32_t c, char* out) {
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = kReplacement;
  const auto tail = [c](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) {
    out[0] = static_cast<char>(c);
    return 1;
  }
  if (c < 0x800) {
    out[0] = static_cast<char>(0xc0 | c >> 6);
    out[1] = tail(0);
    return 2;
  }
  if (c < 0x10000) {
    out[0] = static_cast<char>(0xe0 | c >> 12);
    out[1] = tail(6);
    out[2] = tail(0);
    return 3;
  }
  out[0] = static_cast<char>(0xf0 | c >> 18);
  out[1] = tail(12);
  out[2] = tail(6);
  out[3] = tail(0);
  return 4;
}

std::string_view Bounded(const char* text) {
  return text == nullptr ? std::string_view()
                         : std::string_view(text, strnlen(text, session::kMaxTextLength));
}

}  // namespace

NvtxMessage::NvtxMessage(const char* text) : text_(Bounded(text)) {}
NvtxMessage::NvtxMessage(const wchar_t* text) { Encode(text); }
NvtxMessage::NvtxMessage(int32_t type, nvtxMessageValue_t value) { Read(type, value); }

NvtxMessage::NvtxMessage(const nvtxEventAttributes_t* attributes) {
  if (attributes == nullptr || attributes->size < sizeof(nvtxEventAttributes_v2)) return;
  if (attributes->colorType == NVTX_COLOR_ARGB) color_ = attributes->color;
  Read(attributes->messageType, attributes->message);
}

void NvtxMessage::Read(int32_t type, nvtxMessageValue_t value) {
  switch (type) {
    case NVTX_MESSAGE_TYPE_ASCII:
      text_ = Bounded(value.ascii);
      return;
    case NVTX_MESSAGE_TYPE_UNICODE:
      return Encode(value.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED:
      registered_ = NvtxTables::StringOf(value.registered);
      return;
    default:
      return;
  }
}

void NvtxMessage::Encode(const wchar_t* text) {
  size_t size = 0;
  while (text != nullptr && *text != 0 && size + 4 <= sizeof(encoded_))
    size += EncodeOne(static_cast<uint32_t>(*text++), encoded_ + size);
  text_ = {encoded_, size};
}

}  // namespace gmt::preload
