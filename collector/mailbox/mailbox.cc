#include "collector/mailbox/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace gmt::control {

Mailbox::Mailbox() : wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Mailbox::~Mailbox() {
  if (wake_fd_ >= 0) close(wake_fd_);
}

// write() fails if the counter is full, but then the descriptor is readable already.
void Mailbox::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof one);
}

uint32_t Mailbox::TakeRequestedKinds(uint64_t now_ns) {
  if (requested_kinds_.load(std::memory_order_relaxed) == 0) return 0;
  if (published_ns_ != 0 && now_ns - published_ns_ < kMinDistanceNs) return 0;
  published_ns_ = now_ns;
  return requested_kinds_.exchange(0, std::memory_order_relaxed);
}

void Mailbox::Publish(Copy copy) {
  auto shared = std::make_shared<const Copy>(std::move(copy));
  {
    const std::lock_guard lock(mutex_);
    copy_.swap(shared);
  }
  Wake();
}

std::vector<Mailbox::QueuedRequest> Mailbox::TakeRequests() {
  const std::lock_guard lock(mutex_);
  waiting_.store(0, std::memory_order_relaxed);
  return std::exchange(requests_, {});
}

void Mailbox::Answer(uint64_t client, Reply reply) {
  {
    const std::lock_guard lock(mutex_);
    answers_.push_back({client, std::move(reply)});
  }
  Wake();
}

void Mailbox::AddNames(NameChunk chunk) {
  {
    const std::lock_guard lock(mutex_);
    names_.push_back(std::move(chunk));
  }
  Wake();
}

void Mailbox::Open() {
  const std::lock_guard lock(mutex_);
  closed_.clear();
}

void Mailbox::Close(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    closed_ = why;
    waiting_.store(0, std::memory_order_relaxed);
    for (QueuedRequest& asked : std::exchange(requests_, {})) {
      Reply reply;
      reply.set_id(asked.request.id());
      reply.set_error(why);
      answers_.push_back({asked.client, std::move(reply)});
    }
  }
  Wake();
}

std::string Mailbox::Ask(uint64_t client, Request request) {
  const std::lock_guard lock(mutex_);
  if (!closed_.empty()) return closed_;
  if (requests_.size() >= kMaxRequests) return kTooMany;
  requests_.push_back({client, std::move(request)});
  waiting_.store(static_cast<uint32_t>(requests_.size()), std::memory_order_relaxed);
  return "";
}

std::shared_ptr<const Copy> Mailbox::TakeCopy() {
  const std::lock_guard lock(mutex_);
  return std::exchange(copy_, nullptr);
}

std::vector<Mailbox::QueuedReply> Mailbox::TakeAnswers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

std::vector<NameChunk> Mailbox::TakeNames() {
  const std::lock_guard lock(mutex_);
  return std::exchange(names_, {});
}

}  // namespace gmt::control
