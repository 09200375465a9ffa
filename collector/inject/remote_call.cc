#include "collector/inject/remote_call.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collector/inject/memory_map.h"
#include "collector/inject/remote_image.h"

namespace gmt::inject {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kStopForCallPatience(500);
constexpr uint64_t kWaitForUsNs = 1'000'000'000;

// All signals except those that report an error of the thread itself.
uint64_t MaskDuringCall() {
  uint64_t mask = ~uint64_t{0};
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
    mask &= ~(uint64_t{1} << (signal - 1));
  return mask;
}

// Returns the code tails of all mapped images, libc's first.
std::vector<CodeTail> CodeTails(const RemoteMemory& memory, const MemoryMap& map) {
  std::vector<CodeTail> tails;
  const auto add = [&](bool libc) {
    std::set<uint64_t> seen;
    for (const Mapping& m : map) {
      if (m.inode == 0 || m.offset != 0 || IsLibc(m) != libc || !seen.insert(m.start).second)
        continue;
      const auto image = RemoteImage::At(memory, m.start);
      if (image.has_value())
        tails.insert(tails.end(), image->code_tails().begin(), image->code_tails().end());
    }
  };
  add(true);
  add(false);
  return tails;
}

}  // namespace

// Finds the tail of a code page and saves its contents. Skips a tail that contains our code
// already: that of an injector that was killed or is still at work.
absl::Status RemoteCall::FindRoom() {
  const size_t size = CallCodeSize();
  const std::vector<uint8_t> code = MakeCallCode(found_.registers);
  constexpr size_t kSignatureBytes = 32;
  for (const CodeTail& tail : CodeTails(memory_, found_.map)) {
    const Mapping* page = FindMapping(found_.map, tail.address);
    if (tail.size < size || page == nullptr || !page->executable || page->shared ||
        page->inode == 0 || tail.address + size > page->end) {
      continue;
    }
    code_before_.resize(size);
    if (!memory_.Read(tail.address, code_before_.data(), size)) continue;
    if (std::equal(code.begin(), code.begin() + kSignatureBytes, code_before_.begin())) continue;
    code_at_ = tail.address;
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("process ", request_.pid, ": no library has ", size,
                   " bytes to spare in its last page of code, which the call needs"));
}

//   stack of the call ... 0 | CallData | vector registers | red zone | thread's sp    (upwards)
bool RemoteCall::WriteData(const LoaderFunctions& loader) {
  constexpr uint64_t kVectorAlignment = 64;
  const auto& vector = found_.registers.vector;
  const uint64_t top = found_.registers.sp() - RedZone();
  const uint64_t vector_at = (top - vector.size()) & ~(kVectorAlignment - 1);
  data_at_ = (vector_at - sizeof(CallData)) & ~(kVectorAlignment - 1);
  stack_ = data_at_ - kVectorAlignment;

  CallData& d = *data_;
  d = {};
  d.state = static_cast<uint64_t>(CallState::kRunning);
  d.dlopen = loader.dlopen;
  d.dlsym = loader.dlsym;
  d.dlerror = loader.dlerror;
  d.dlopen_mode = loader.mode;
  d.errno_location = loader.errno_location;
  d.mask = MaskDuringCall();
  d.wait_ns = kWaitForUsNs;
  d.vector = vector_at;
  d.library = data_at_ + offsetof(CallData, library_text);
  d.function = data_at_ + offsetof(CallData, function_text);
  d.options = data_at_ + offsetof(CallData, options_text);
  d.text = data_at_ + offsetof(CallData, text_buffer);
  d.capacity = sizeof(d.text_buffer);
  SaveInto(found_.registers, &d);
  request_.library.copy(d.library_text, sizeof(d.library_text) - 1);
  request_.function.copy(d.function_text, sizeof(d.function_text) - 1);
  request_.options.copy(d.options_text, sizeof(d.options_text) - 1);
  return memory_.Write(vector_at, vector.data(), vector.size()) &&
         memory_.Write(data_at_, &d, sizeof(d));
}

// Until the registers are set, the thread can be released at any time.
bool RemoteCall::Begin() {
  request_.on_stage(Stage::kDataWritten);
  const std::vector<uint8_t> code = MakeCallCode(found_.registers);
  if (!memory_.Write(code_at_, code.data(), code.size())) return false;
  request_.on_stage(Stage::kCodeWritten);
  const Registers call = CallRegisters(found_.registers, code_at_, data_at_, stack_);
  if (!WriteGeneralRegisters(found_.thread->id(), call)) {
    memory_.Write(code_at_, code_before_.data(), code_before_.size());
    return false;
  }
  request_.on_stage(Stage::kRegistersSet);
  found_.thread->Release();
  request_.on_stage(Stage::kReleased);
  return true;
}

absl::Status RemoteCall::AwaitReturn() {
  const auto begin = steady_clock::now();
  const auto deadline = begin + request_.call;
  while (true) {
    uint64_t state = 0;
    if (!memory_.Read(data_at_, &state)) return Gone();
    if (state != static_cast<uint64_t>(CallState::kRunning)) return absl::OkStatus();
    const auto now = steady_clock::now();
    if (now > deadline) break;
    found_.DetachUnstopped();
    usleep(now - begin < milliseconds(20) ? 50 : 1000);
  }
  const pid_t thread = found_.thread->id();
  const std::string doing = DescribeThread(request_.pid, thread);
  if (doing == "gone") return Gone();
  return absl::DeadlineExceededError(absl::StrCat(
      "process ", request_.pid, ": its thread ", thread, " has not finished loading ",
      request_.library, " in ",
      std::chrono::duration_cast<std::chrono::seconds>(request_.call).count(), " s; it is ", doing,
      ". It is not traced any more and continues by itself afterwards. Try again then"));
}

// The thread waits for us for a second. After that it restores itself.
void RemoteCall::Restore() {
  const pid_t id = found_.thread->id();
  auto thread = TracedThread::Seize(id);
  if (!thread.ok() || !(*thread)->Stop(kStopForCallPatience)) return;
  request_.on_stage(Stage::kStoppedAgain);
  Registers now;
  if (!ReadRegisters(id, &now)) return;
  if (IsInWait(now.pc(), code_at_)) {
    WriteVectorRegisters(id, found_.registers);
    (*thread)->SetSignalMask(data_->old_mask);
    request_.on_stage(Stage::kStateRestored);
    WriteGeneralRegisters(id, found_.registers);
    request_.on_stage(Stage::kRestored);
    RemoveCode();
    return;
  }
  const bool is_leaving = now.pc() >= code_at_ && now.pc() < code_at_ + code_before_.size();
  if (!is_leaving) RemoveCode();
}

void RemoteCall::RemoveCode() {
  memory_.Write(code_at_, code_before_.data(), code_before_.size());
  request_.on_stage(Stage::kCodeRemoved);
}

absl::Status RemoteCall::Gone() const {
  return absl::NotFoundError(absl::StrCat("process ", request_.pid,
                                          " ended, or became another program, before ",
                                          request_.library, " was loaded"));
}

absl::StatusOr<Reply> RemoteCall::Answer() const {
  const std::string text(data_->text_buffer,
                         strnlen(data_->text_buffer, sizeof(data_->text_buffer)));
  switch (static_cast<CallOutcome>(data_->outcome)) {
    case CallOutcome::kCalled:
      return Reply{static_cast<int>(data_->result), text, found_.thread->id(), found_.tries};
    case CallOutcome::kNoFunction:
      return absl::FailedPreconditionError(
          absl::StrCat("process ", request_.pid, " has loaded ", request_.library,
                       ", which has no ", request_.function, ": it is of another release",
                       text.empty() ? "" : " (", text, text.empty() ? "" : ")"));
    case CallOutcome::kLoadFailed:
      break;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("process ", request_.pid, " could not load ", request_.library, ": ",
                   text.empty() ? "its loader gives no reason" : text,
                   ". Restarted with LD_PRELOAD=$(gpumemtrace preload-path) it can be recorded"));
}

absl::StatusOr<Reply> RemoteCall::Run(const LoaderFunctions& loader) {
  if (absl::Status status = FindRoom(); !status.ok()) return status;
  if (!WriteData(loader) || !Begin()) return Gone();
  if (absl::Status status = AwaitReturn(); !status.ok()) return status;
  if (!memory_.Read(data_at_, data_.get(), sizeof(*data_))) return Gone();
  request_.on_stage(Stage::kReturned);
  Restore();
  return Answer();
}

}  // namespace gmt::inject
