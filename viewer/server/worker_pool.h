// viewer/server/worker_pool.h
//
// WorkerPool: a few threads that run queued work, oldest first. The destructor drops work that has
// not started and waits for work that has.
//
// Thread safety: Add() and AddFirst() from any thread.

#ifndef GMT_VIEWER_SERVER_WORKER_POOL_H_
#define GMT_VIEWER_SERVER_WORKER_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gmt::viewer {

class WorkerPool {
 public:
  explicit WorkerPool(size_t threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Add(std::function<void()> work);
  // The same for work that begins before all queued work.
  void AddFirst(std::function<void()> work);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_WORKER_POOL_H_
