// Another user of CUPTI in the same process, such as a profiler. What CUPTI delivers to it must not
// depend on whether gpumemtrace wants to use CUPTI, too.
//
// Usage: tool WHEN HOW [LIBRARY]
//   WHEN  before   subscribes before the recording begins
//         later    subscribes after that
//         hidden   like before, with calls that bypass all hooks
//   HOW   calls    counts calls of the runtime and unsubscribes
//         records  requests records of copies and disables them
//         ends     finalizes CUPTI in a callback at a call's end, as Kineto does with
//                  TEARDOWN_CUPTI=1
//         twice    `ends`, and then all of it again
//         beside   ten rounds without the end while four threads allocate, copy and synchronise
// Prints what it received as JSON: {"rounds": [{"subscribe": 0, "calls": N, "records": N}, ...]}
// The last call to the device is made 300 ms after the tool has ended.
#include <cuda_runtime.h>
#include <cupti.h>
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/programs/cupti/unhooked.h"

namespace {

constexpr int kCopies = 10;

std::atomic<int> failures{0};
void Check(const char* what, int result) {
  if (result == 0) return;
  std::fprintf(stderr, "%s: %d\n", what, result);
  ++failures;
}
#define CHECK(call) Check(#call, call)

const char* library_name = "libcupti.so.13";
bool hidden = false;

template <typename Function>
Function Find(const char* name) {
  if (hidden) return Unhooked<Function>(library_name, name);
  static void* library = dlopen(library_name, RTLD_LAZY);
  void* found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(2);
  }
  return reinterpret_cast<Function>(found);
}
#define CUPTI(name) Find<decltype(&name)>(#name)

struct Round {
  int subscribe = 0;
  std::atomic<int> calls{0}, records{0}, strange{0};
  bool end_from_callback = false;
  bool ended = false;
};
std::atomic<Round*> now{nullptr};
CUpti_SubscriberHandle subscriber;

void CUPTIAPI OnCall(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  if (call->callbackSite != CUPTI_API_EXIT) return;
  Round* round = now;
  ++round->calls;
  if (round->end_from_callback && !round->ended) {
    round->ended = true;
    CHECK(CUPTI(cuptiUnsubscribe)(subscriber));
    CHECK(CUPTI(cuptiFinalize)());
  }
}

constexpr size_t kBuffer = 1 << 20;
void CUPTIAPI OnRequest(uint8_t** buffer, size_t* size, size_t* records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBuffer));
  *size = kBuffer;
  *records = 0;
}
void CUPTIAPI OnComplete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &record) == CUPTI_SUCCESS)
    ++(record->kind == CUPTI_ACTIVITY_KIND_MEMCPY ? now.load()->records : now.load()->strange);
  std::free(buffer);
}

void Copy() {
  void* memory;
  char host[64] = {};
  CHECK(cudaMalloc(&memory, sizeof(host)));
  for (int i = 0; i < kCopies; ++i)
    CHECK(cudaMemcpy(memory, host, sizeof(host), cudaMemcpyHostToDevice));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(memory));
}

bool Subscribe() {
  now.load()->subscribe = CUPTI(cuptiSubscribe)(&subscriber, OnCall, nullptr);
  return now.load()->subscribe == CUPTI_SUCCESS;
}

void CountCalls() {
  if (!Subscribe()) return;
  CHECK(CUPTI(cuptiEnableDomain)(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
  Copy();
  CHECK(CUPTI(cuptiUnsubscribe)(subscriber));
}

void CountRecords() {
  CHECK(CUPTI(cuptiActivityRegisterCallbacks)(OnRequest, OnComplete));
  CHECK(CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_MEMCPY));
  Copy();
  CHECK(CUPTI(cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_MEMCPY));
  CHECK(CUPTI(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
}

void EndAll() {
  if (!Subscribe()) return;
  CHECK(CUPTI(cuptiActivityRegisterCallbacks)(OnRequest, OnComplete));
  CHECK(CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_MEMCPY));
  Copy();
  CHECK(CUPTI(cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_MEMCPY));
  CHECK(CUPTI(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  now.load()->end_from_callback = true;
  CHECK(CUPTI(cuptiEnableDomain)(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
  CHECK(cudaDeviceSynchronize());
}

void UseOnce() {
  if (!Subscribe()) return;
  CHECK(CUPTI(cuptiActivityRegisterCallbacks)(OnRequest, OnComplete));
  CHECK(CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_MEMCPY));
  CHECK(CUPTI(cuptiEnableDomain)(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
  Copy();
  CHECK(CUPTI(cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_MEMCPY));
  CHECK(CUPTI(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  CHECK(CUPTI(cuptiUnsubscribe)(subscriber));
}

// Runs four threads that use the device while the object exists.
class Others {
 public:
  explicit Others(bool wanted) {
    for (int i = 0; wanted && i < 4; ++i) {
      threads_.emplace_back([this] {
        while (!done_) {
          Copy();
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      });
    }
  }
  ~Others() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::vector<std::thread> threads_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string when = argv[1], how = argv[2];
  if (argc > 3) library_name = argv[3];
  hidden = when == "hidden";
  int devices;
  CHECK(cudaGetDeviceCount(&devices));  // the runtime loads the driver, which records nothing
  void* first;
  if (when == "later") CHECK(cudaMalloc(&first, 1 << 20));
  std::vector<Round> rounds(how == "twice" ? 2 : how == "beside" ? 10 : 1);
  now = &rounds[0];
  const Others others(how == "beside");
  for (Round& round : rounds) {
    now = &round;
    if (how == "beside") UseOnce();
    if (how == "calls") CountCalls();
    if (how == "records") CountRecords();
    if (how == "ends" || how == "twice") EndAll();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    Copy();
  }
  std::printf("{\"rounds\": [");
  for (const Round& round : rounds) {
    std::printf("%s{\"subscribe\": %d, \"calls\": %d, \"records\": %d, \"strange\": %d}",
                &round == rounds.data() ? "" : ", ", round.subscribe, round.calls.load(),
                round.records.load(), round.strange.load());
  }
  std::printf("]}\n");
  return failures == 0 ? 0 : 1;
}
