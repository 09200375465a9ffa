// interop/timeline/perfetto_file.h
//
// PerfettoFile: writes the packets of a Perfetto trace one by one.
//
// Thread safety: one thread at a time.

#ifndef GMT_INTEROP_TIMELINE_PERFETTO_FILE_H_
#define GMT_INTEROP_TIMELINE_PERFETTO_FILE_H_

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <algorithm>
#include <cstdint>
#include <ostream>

#include "proto/perfetto.pb.h"

namespace gmt::interop {

// Ids of clocks.
inline constexpr uint32_t kRealtime = 1, kMonotonic = 3, kMonotonicCoarse = 4, kBoottime = 6;

// The first packet of a sequence says that nothing is known yet; those that refer to earlier
// packets say so, and are ignored without the first one.
inline constexpr uint32_t kStateCleared = 1, kNeedsState = 2;

// A time of the clock kRealtime. Times before 1970, as an event log may have, do not exist.
inline uint64_t PerfettoTime(int64_t unix_ns) {
  return static_cast<uint64_t>(std::max<int64_t>(unix_ns, 0));
}

class PerfettoFile {
 public:
  explicit PerfettoFile(std::ostream& out) : file_(&out), coded_(&file_) {}

  // Writes a packet and clears it.
  void Emit(uint32_t sequence, perfetto::TracePacket* packet) {
    constexpr uint32_t kPacketTag = 1 << 3 | 2;  // field 1 of Trace, a message
    packet->set_trusted_packet_sequence_id(sequence);
    coded_.WriteTag(kPacketTag);
    coded_.WriteVarint32(static_cast<uint32_t>(packet->ByteSizeLong()));
    packet->SerializeWithCachedSizes(&coded_);
    packet->Clear();
  }

 private:
  google::protobuf::io::OstreamOutputStream file_;
  google::protobuf::io::CodedOutputStream coded_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TIMELINE_PERFETTO_FILE_H_
