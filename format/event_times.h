// format/event_times.h
//
// The times of a chunk's events, as differences from the previous event. The nanoseconds of a
// difference are random in all but its leading bits, so a difference is divided: its width, which
// recurs in every step of a program and compresses well, and the bits below its leading one, which
// do not compress and are copied.
//
//   difference         1      2005   0    -3
//   binary             1   11111010101    0    -11
//   width              1        11   0     2 | 128
//   bits               -   1111010101     -      1
//
// Bits are numbered from the lowest of the first byte. The unused ones of the last byte are 0.
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_EVENT_TIMES_H_
#define GMT_FORMAT_EVENT_TIMES_H_

#include <cstdint>
#include <string>

namespace gmt::format {

class EventTimeWriter {
 public:
  // Appends to the columns, which must outlive the writer.
  EventTimeWriter(std::string* widths, std::string* bits) : widths_(widths), bits_(bits) {}

  void Add(int64_t difference);
  // Writes the last bits. Nothing can be added afterwards.
  void Finish();

 private:
  std::string* widths_;
  std::string* bits_;
  uint64_t pending_ = 0;
  int pending_bits_ = 0;  // below 64
};

class EventTimeReader {
 public:
  // `widths` must outlive the reader.
  EventTimeReader(const std::string& widths, const std::string& bits);

  // Returns the next difference. Returns false if the columns have none.
  bool Next(int64_t* difference);

 private:
  const char* width_;
  const char* const end_width_;
  const std::string bits_;  // padded, so that nine bytes can be read anywhere
  uint64_t bit_ = 0;
  const uint64_t end_bit_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_EVENT_TIMES_H_
