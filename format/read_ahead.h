// format/read_ahead.h
//
// ReadAhead: runs a ChunkStream on its own thread, a few chunks ahead of the consumer. Reading and
// analysing a large recording then takes only as long as the slower of the two.
//
// Thread safety: Next() and Recycle() must be called from one thread, not necessarily the
// creator's. The stream belongs to the thread of ReadAhead until the ReadAhead is destroyed.

#ifndef GMT_FORMAT_READ_AHEAD_H_
#define GMT_FORMAT_READ_AHEAD_H_

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "format/chunk_stream.h"

namespace gmt::format {

class ReadAhead {
 public:
  explicit ReadAhead(ChunkStream* stream);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Like ChunkStream::Next(). Must not be called after an error or the end.
  absl::Status Next(std::vector<Delivery>* deliveries);
  void Recycle(EventBatch batch);

 private:
  struct Frame {
    std::vector<Delivery> deliveries;
    absl::Status status;
  };
  static constexpr size_t kFramesAhead = 2;

  void Run();
  static bool IsLast(const Frame& frame);

  ChunkStream* const stream_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Frame> frames_;
  std::vector<EventBatch> spare_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_READ_AHEAD_H_
