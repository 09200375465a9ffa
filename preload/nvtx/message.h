// preload/nvtx/message.h
//
// NvtxMessage: the text of a message in any of NVTX's three forms: bytes, wide characters, or a
// previously registered string.
//
// Wide characters are converted to UTF-8 inside the object; longer texts are cut at a character
// boundary. A text of bytes is not copied, and is cut like other texts of a session.
//
// Thread safety: a message belongs to the thread that reads it.

#ifndef GMT_PRELOAD_NVTX_MESSAGE_H_
#define GMT_PRELOAD_NVTX_MESSAGE_H_

#include <stddef.h>
#include <stdint.h>

#include <string_view>

#include "preload/nvtx/names.h"
#include "preload/nvtx/nvtx_headers.h"

namespace gmt::preload {

class NvtxMessage {
 public:
  explicit NvtxMessage(const char* text);
  explicit NvtxMessage(const wchar_t* text);
  // `type`: nvtxMessageType_t.
  NvtxMessage(int32_t type, nvtxMessageValue_t value);
  // Unknown versions and sizes of attributes yield no message.
  explicit NvtxMessage(const nvtxEventAttributes_t* attributes);

  // Set if the string was registered; `text` is then empty.
  NvtxName* registered() const { return registered_; }
  std::string_view text() const { return text_; }
  // ARGB; 0: none was set.
  uint32_t color() const { return color_; }

  NvtxMessage(const NvtxMessage&) = delete;  // text_ may point inside
  NvtxMessage& operator=(const NvtxMessage&) = delete;

 private:
  void Read(int32_t type, nvtxMessageValue_t value);
  void Encode(const wchar_t* text);

  NvtxName* registered_ = nullptr;
  uint32_t color_ = 0;
  std::string_view text_;
  char encoded_[256];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_MESSAGE_H_
