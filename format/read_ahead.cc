#include "format/read_ahead.h"

#include <iterator>
#include <utility>

namespace gmt::format {

ReadAhead::ReadAhead(ChunkStream* stream) : stream_(stream), thread_([this] { Run(); }) {}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool ReadAhead::IsLast(const Frame& frame) {
  const bool ended =
      !frame.deliveries.empty() && std::holds_alternative<RecordingEnds>(frame.deliveries.back());
  return ended || !frame.status.ok();
}

void ReadAhead::Run() {
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || frames_.size() < kFramesAhead; });
      if (stop_) return;
      if (!spare_.empty()) {
        stream_->Recycle(std::move(spare_.back()));
        spare_.pop_back();
      }
    }
    Frame frame;
    frame.status = stream_->Next(&frame.deliveries);
    last = IsLast(frame);
    const std::lock_guard lock(mutex_);
    frames_.push_back(std::move(frame));
    changed_.notify_all();
  }
}

absl::Status ReadAhead::Next(std::vector<Delivery>* deliveries) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !frames_.empty(); });
  Frame frame = std::move(frames_.front());
  frames_.pop_front();
  changed_.notify_all();
  deliveries->insert(deliveries->end(), std::make_move_iterator(frame.deliveries.begin()),
                     std::make_move_iterator(frame.deliveries.end()));
  return frame.status;
}

void ReadAhead::Recycle(EventBatch batch) {
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(batch));
}

}  // namespace gmt::format
