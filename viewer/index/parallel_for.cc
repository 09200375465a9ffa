#include "viewer/index/parallel_for.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

namespace gmt::viewer {
namespace {

class Crew {
 public:
  Crew(const std::vector<std::function<void()>>& tasks, const std::function<void(size_t)>& done)
      : tasks_(tasks), done_(done) {}

  void Work() {
    std::unique_lock lock(mutex_);
    while (next_ < tasks_.size() && failure_ == nullptr) {
      const std::function<void()>& task = tasks_[next_++];
      lock.unlock();
      std::exception_ptr failure;
      try {
        task();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (failure != nullptr) {
        failure_ = failure;
      } else {
        done_(++ended_);
      }
    }
  }
  void Rethrow() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  const std::vector<std::function<void()>>& tasks_;
  const std::function<void(size_t)>& done_;
  std::mutex mutex_;
  size_t next_ = 0, ended_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

void ParallelFor(const std::vector<std::function<void()>>& tasks,
                 const std::function<void(size_t)>& done) {
  Crew crew(tasks, done);
  const size_t threads =
      std::min<size_t>(std::max(1u, std::thread::hardware_concurrency()), tasks.size());
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) {
    try {
      others.emplace_back([&crew] { crew.Work(); });
    } catch (const std::system_error&) {
      break;  // no more threads can be created; the existing ones do the work
    }
  }
  crew.Work();
  for (std::thread& other : others) other.join();
  crew.Rethrow();
}

}  // namespace gmt::viewer
