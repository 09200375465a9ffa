// preload/nvtx/message.h
//
// NvtxMessage: the text of a message, in whichever of NVTX's three forms it comes: bytes, wide
// characters, or a string that was registered before.
//
// Wide characters become UTF-8, in the object itself; what is longer than it is cut at a character.
// A text of bytes is not copied, and cut where a session's texts are.
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
  // Of a version or a size that is not known: no message.
  explicit NvtxMessage(const nvtxEventAttributes_t* attributes);

  // Set where the string was registered; `text` is then empty.
  NvtxName* registered() const { return registered_; }
  std::string_view text() const { return text_; }
  // ARGB; 0: none was chosen.
  uint32_t color() const { return color_; }

  NvtxMessage(const NvtxMessage&) = delete;  // text_ may lie inside
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
