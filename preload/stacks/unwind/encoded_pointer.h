// preload/stacks/unwind/encoded_pointer.h
//
// Pointers in the encodings of .eh_frame and .eh_frame_hdr (LSB 5.0, "DWARF Exception Header
// Encoding").

#ifndef GMT_PRELOAD_STACKS_UNWIND_ENCODED_POINTER_H_
#define GMT_PRELOAD_STACKS_UNWIND_ENCODED_POINTER_H_

#include <stdint.h>

#include "preload/stacks/unwind/byte_reader.h"

namespace gmt::preload {

inline constexpr uint8_t kPointerOmitted = 0xff;
inline constexpr uint8_t kPointerIndirect = 0x80;
inline constexpr uint8_t kPointerPcRelative = 0x10, kPointerDataRelative = 0x30,
                         kPointerAligned = 0x50;
inline constexpr uint8_t kPointerSigned4 = 0x0b;

// Returns the number in that format, without adding a base.
inline uint64_t ReadEncodedNumber(uint8_t encoding, ByteReader* reader) {
  switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
      return reader->Fixed<uint64_t>();
    case 0x01:
      return reader->Uleb();
    case 0x02:
      return reader->Fixed<uint16_t>();
    case 0x03:
      return reader->Fixed<uint32_t>();
    case 0x09:
      return static_cast<uint64_t>(reader->Sleb());
    case 0x0a:
      return static_cast<uint64_t>(int64_t{reader->Fixed<int16_t>()});
    case kPointerSigned4:
      return static_cast<uint64_t>(int64_t{reader->Fixed<int32_t>()});
    default:
      reader->Fail();
      return 0;
  }
}

// Returns the address that the pointer denotes. `data` is the base of data-relative pointers; 0:
// unknown. For an indirect pointer, returns the address of the pointer. 0 in the file is 0
// regardless of the base.
inline uint64_t ReadEncodedPointer(uint8_t encoding, uint64_t data, ByteReader* reader) {
  if (encoding == kPointerOmitted) return 0;
  if (encoding == kPointerAligned) {
    reader->Skip((0 - reader->at()) & 7);
    return reader->Fixed<uint64_t>();
  }
  const uint64_t place = reader->at();
  const uint64_t number = ReadEncodedNumber(encoding, reader);
  if (number == 0) return 0;
  switch (encoding & 0x70) {
    case 0x00:
      return number;
    case kPointerPcRelative:
      return place + number;
    case kPointerDataRelative:
      if (data != 0) return data + number;
      [[fallthrough]];
    default:
      reader->Fail();
      return 0;
  }
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_UNWIND_ENCODED_POINTER_H_
