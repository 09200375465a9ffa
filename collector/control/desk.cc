#include "collector/control/desk.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace gmt::control {

Desk::Desk() : wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Desk::~Desk() {
  if (wake_fd_ >= 0) close(wake_fd_);
}

// write() fails if the counter is full, but then the descriptor is readable already.
void Desk::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof one);
}

uint32_t Desk::Wishes(uint64_t now_ns) {
  if (wanted_.load(std::memory_order_relaxed) == 0) return 0;
  if (published_ns_ != 0 && now_ns - published_ns_ < kMinDistanceNs) return 0;
  published_ns_ = now_ns;
  return wanted_.exchange(0, std::memory_order_relaxed);
}

void Desk::Publish(Copy copy) {
  auto shared = std::make_shared<const Copy>(std::move(copy));
  {
    const std::lock_guard lock(mutex_);
    copy_.swap(shared);
  }
  Wake();
}

std::vector<Desk::Asked> Desk::TakeRequests() {
  const std::lock_guard lock(mutex_);
  waiting_.store(0, std::memory_order_relaxed);
  return std::exchange(requests_, {});
}

void Desk::Answer(uint64_t client, Reply reply) {
  {
    const std::lock_guard lock(mutex_);
    answers_.push_back({client, std::move(reply)});
  }
  Wake();
}

void Desk::AddNames(NameChunk chunk) {
  {
    const std::lock_guard lock(mutex_);
    names_.push_back(std::move(chunk));
  }
  Wake();
}

void Desk::Open() {
  const std::lock_guard lock(mutex_);
  closed_.clear();
}

void Desk::Close(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    closed_ = why;
    waiting_.store(0, std::memory_order_relaxed);
    for (Asked& asked : std::exchange(requests_, {})) {
      Reply reply;
      reply.set_id(asked.request.id());
      reply.set_error(why);
      answers_.push_back({asked.client, std::move(reply)});
    }
  }
  Wake();
}

std::string Desk::Ask(uint64_t client, Request request) {
  const std::lock_guard lock(mutex_);
  if (!closed_.empty()) return closed_;
  if (requests_.size() >= kMaxRequests) return kTooMany;
  requests_.push_back({client, std::move(request)});
  waiting_.store(static_cast<uint32_t>(requests_.size()), std::memory_order_relaxed);
  return "";
}

std::shared_ptr<const Copy> Desk::TakeCopy() {
  const std::lock_guard lock(mutex_);
  return std::exchange(copy_, nullptr);
}

std::vector<Desk::Answered> Desk::TakeAnswers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

std::vector<NameChunk> Desk::TakeNames() {
  const std::lock_guard lock(mutex_);
  return std::exchange(names_, {});
}

}  // namespace gmt::control
