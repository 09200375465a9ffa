// collector/inject/remote_call.h
//
// RemoteCall: a call that a stopped thread is given, and that it carries out by itself.
//
// The call's data lie below the thread's stack, its code in the bytes between the end of a library's code
// and the end of that page: nothing has to be mapped for it, or unmapped afterwards. The code blocks
// signals, calls, says so in the data and waits for us for a second; then it restores the thread
// itself. Where we come in that second, we put back the registers that the thread had, so that the
// kernel finishes the system call that it was stopped in as if it had never been disturbed: restarted,
// or ended by a signal that has come meanwhile.
//
// Thread safety: one thread.

#ifndef GMT_COLLECTOR_INJECT_REMOTE_CALL_H_
#define GMT_COLLECTOR_INJECT_REMOTE_CALL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "collector/inject/inject.h"
#include "collector/inject/loader_functions.h"
#include "collector/inject/registers.h"
#include "collector/inject/remote_memory.h"
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
