#include "cli/top/top_model.h"

#include <algorithm>

namespace gmt::cli {

TopHeapKey KeyOf(const control::HeapStatus& heap) {
  return {heap.has_device() ? static_cast<int32_t>(heap.device()) : -1, heap.heap()};
}

const TopProcess* TopModel::Find(uint64_t pid) const {
  const auto at =
      std::lower_bound(processes_.begin(), processes_.end(), pid,
                       [](const TopProcess& p, uint64_t wanted) { return p.pid < wanted; });
  return at != processes_.end() && at->pid == pid ? &*at : nullptr;
}

const TopProcess* TopModel::FindOrFirst(uint64_t pid) const {
  if (const TopProcess* process = Find(pid)) return process;
  return processes_.empty() ? nullptr : &processes_.front();
}

TopProcess& TopModel::Add(uint64_t pid, const std::string& command) {
  if (TopProcess* known = Find(pid)) return *known;
  TopProcess process;
  process.pid = pid;
  process.command = command;
  const auto at =
      std::upper_bound(processes_.begin(), processes_.end(), pid,
                       [](uint64_t wanted, const TopProcess& p) { return wanted < p.pid; });
  return *processes_.insert(at, std::move(process));
}

void TopModel::Take(uint64_t pid, const control::Top& top) {
  TopProcess* process = Find(pid);
  if (process == nullptr) return;
  process->last = top;
  process->trouble.clear();
  for (const control::HeapStatus& heap : top.status().heaps()) {
    std::deque<uint64_t>& samples = process->live[KeyOf(heap)];
    samples.push_back(heap.live_bytes());
    if (samples.size() > kSamples) samples.pop_front();
  }
}

void TopModel::Lose(uint64_t pid, const std::string& why) {
  if (TopProcess* process = Find(pid)) process->trouble = why;
}

}  // namespace gmt::cli
