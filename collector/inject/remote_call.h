// collector/inject/remote_call.h
//
// RemoteCall: a call that a stopped thread receives and executes by itself.
//
// The call's data is placed below the thread's stack, its code in the unused bytes after a
// library's code, so that nothing has to be mapped or unmapped. The code blocks signals, makes the
// call, reports the result in the data and waits for us for a second. Then it restores the thread
// by itself. If we come within that second, we restore the registers that the thread had. The
// kernel then finishes the interrupted system call as if nothing had happened: it restarts it, or
// ends it because a signal has arrived meanwhile.
//
// Thread safety: one thread.

#ifndef GMT_COLLECTOR_INJECT_REMOTE_CALL_H_
#define GMT_COLLECTOR_INJECT_REMOTE_CALL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "collector/inject/loader_functions.h"
#include "collector/inject/registers.h"
#include "collector/inject/remote_memory.h"
#include "collector/inject/request.h"
#include "collector/inject/thread_search.h"

namespace gmt::inject {

class RemoteCall {
 public:
  RemoteCall(const Request& request, const RemoteMemory& memory, FoundThread found)
      : request_(request), memory_(memory), found_(std::move(found)) {}

  absl::StatusOr<Reply> Run(const LoaderFunctions& loader);

 private:
  absl::Status FindRoom();
  bool WriteData(const LoaderFunctions& loader);
  bool Begin();
  absl::Status AwaitReturn();
  void Restore();
  void RemoveCode();
  absl::StatusOr<Reply> Answer() const;
  absl::Status Gone() const;

  const Request& request_;
  const RemoteMemory& memory_;
  FoundThread found_;
  uint64_t data_at_ = 0, stack_ = 0, code_at_ = 0;
  std::vector<uint8_t> code_before_;
  std::unique_ptr<CallData> data_ = std::make_unique<CallData>();
};

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_REMOTE_CALL_H_
