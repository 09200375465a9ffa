// format/read_ahead.h
//
// ReadAhead: runs a ChunkStream on a thread of its own, a few chunks ahead of who takes what it
// delivers. Reading and analysing a large recording then take as long as the slower of the two.
//
// Thread safety: Next() and Recycle() from one thread, which need not be the one that made it. The
// stream belongs to the thread of ReadAhead until that is destroyed.

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

  // As ChunkStream::Next(): what the next frame brings. Not to be called behind an error or the end.
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
