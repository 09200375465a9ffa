// Makes calls of NVTX through its own headers.  Usage: nvtx_calls SCENARIO [COUNT]
//
//   every       every call that is recorded, after a GPU call
//   early       names, strings, domains and ranges before the first GPU call
//   idle        the same without any GPU call
//   levels      prints the results of pushes and pops
//   names       COUNT marks, each with a new name
//   deep        COUNT nested ranges
//   threads     a range in each of four threads, begun before the recording
//   ended       COUNT threads one after the other, each leaving a range open
//   fork        a child process that continues inside its parent's ranges
//   chain       calls that another tool, chained behind the profiler, must see, too
//   storm       eight threads that make ranges of all kinds: some before the first GPU call, and
//               COUNT of each after it
//   cost        prints nanoseconds of a push with its pop and of a mark, as a mean of COUNT, before
//               and after the first GPU call
//   library     a call by a library with its own copy of NVTX (path in NVTX_CALLS_LIBRARY)

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <nvtx3/nvToolsExtMem.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

void* UseGpu(size_t size) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, size) != cudaSuccess) std::abort();
  return memory;
}

nvtxEventAttributes_t Attributes() {
  nvtxEventAttributes_t a = {};
  a.version = NVTX_VERSION;
  a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  return a;
}
nvtxEventAttributes_t Attributes(const char* text, uint32_t color = 0) {
  nvtxEventAttributes_t a = Attributes();
  if (color != 0) {
    a.colorType = NVTX_COLOR_ARGB;
    a.color = color;
  }
  a.messageType = NVTX_MESSAGE_TYPE_ASCII;
  a.message.ascii = text;
  return a;
}
nvtxEventAttributes_t Attributes(const wchar_t* text) {
  nvtxEventAttributes_t a = Attributes();
  a.messageType = NVTX_MESSAGE_TYPE_UNICODE;
  a.message.unicode = text;
  return a;
}
nvtxEventAttributes_t Attributes(nvtxStringHandle_t text) {
  nvtxEventAttributes_t a = Attributes();
  a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  a.message.registered = text;
  return a;
}

void NameResource(nvtxDomainHandle_t domain, int32_t type, uint64_t number, const char* name) {
  nvtxResourceAttributes_t a = {};
  a.version = NVTX_VERSION;
  a.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
  a.identifierType = type;
  a.identifier.ullValue = number;
  a.messageType = NVTX_MESSAGE_TYPE_ASCII;
  a.message.ascii = name;
  const nvtxResourceHandle_t handle = nvtxDomainResourceCreate(domain, &a);
  if (handle == nullptr) std::abort();
  nvtxDomainResourceDestroy(handle);
}

void MarkInEveryWay() {
  const nvtxEventAttributes_t colored = Attributes("mark ex", 0xff112233),
                              wide = Attributes(L"mark w\u00e4\u20ac\U0001F600");
  nvtxMarkEx(&colored);
  nvtxMarkEx(&wide);
  nvtxMarkA("mark a");
  nvtxMarkW(L"mark w");
  const nvtxEventAttributes_t nameless = Attributes();
  nvtxMarkEx(&nameless);
}

void RangeInEveryWay() {
  const nvtxEventAttributes_t ex = Attributes("start ex", 0x80ff0000);
  const nvtxRangeId_t a = nvtxRangeStartA("start a"), w = nvtxRangeStartW(L"start w"),
                      e = nvtxRangeStartEx(&ex);
  nvtxRangeEnd(a);  // these ranges overlap
  nvtxRangeEnd(w);
  nvtxRangeEnd(e);
  nvtxRangeEnd(e);  // ended twice by mistake
  const nvtxEventAttributes_t push = Attributes("push ex");
  nvtxRangePushA("push a");
  nvtxRangePushW(L"push w");
  nvtxRangePushEx(&push);
  for (int i = 0; i < 4; ++i) nvtxRangePop();  // one too many
}

void UseDomains() {
  const nvtxDomainHandle_t a = nvtxDomainCreateA("domain a"), w = nvtxDomainCreateW(L"domain w");
  const nvtxStringHandle_t string_a = nvtxDomainRegisterStringA(a, "registered a"),
                           string_w = nvtxDomainRegisterStringW(w, L"registered w");
  const nvtxEventAttributes_t ascii = Attributes("in domain a", 0xff445566),
                              by_a = Attributes(string_a), by_w = Attributes(string_w);
  nvtxDomainMarkEx(a, &ascii);
  nvtxDomainMarkEx(w, &by_w);
  const nvtxRangeId_t range = nvtxDomainRangeStartEx(a, &by_a);
  nvtxDomainRangePushEx(a, &by_a);
  nvtxDomainRangePushEx(w, &by_w);
  nvtxDomainRangePop(a);  // not the domain that was pushed last
  nvtxDomainRangePop(w);
  nvtxDomainRangeEnd(a, range);
  nvtxDomainNameCategoryA(a, 1, "category");
  nvtxDomainDestroy(w);
}

void NameThings() {
  const auto stream = reinterpret_cast<CUstream>(uintptr_t{0x5100}),
             other = reinterpret_cast<CUstream>(uintptr_t{0x5200});
  nvtxNameCudaStreamA(stream, "stream a");
  nvtxNameCudaStreamW(other, L"stream w");
  nvtxNameCuStreamA(stream, "stream cu");
  nvtxNameCuStreamW(other, L"stream cu w");
  nvtxNameCudaDeviceA(0, "device a");
  nvtxNameCudaDeviceW(0, L"device w");
  nvtxNameCuDeviceA(0, "device cu");
  nvtxNameCuDeviceW(0, L"device cu w");
  nvtxNameOsThreadA(static_cast<uint32_t>(syscall(SYS_gettid)), "thread a");
  nvtxNameOsThreadW(4711, L"thread w");
  nvtxNameCategoryA(1, "category");
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("resources");
  NameResource(domain, NVTX_RESOURCE_TYPE_CUDART_STREAM, 0x5300, "stream resource");
  NameResource(domain, NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX, pthread_self(), "thread resource");
  NameResource(domain, NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE, 4712, "native thread");
  NameResource(domain, NVTX_RESOURCE_TYPE_GENERIC_POINTER, 0x1234, "a mutex");
}

void BeEarly() {
  nvtxInitialize(nullptr);
  nvtxNameOsThreadA(static_cast<uint32_t>(syscall(SYS_gettid)), "early thread");
  nvtxNameCudaStreamA(reinterpret_cast<CUstream>(uintptr_t{0x5100}), "early stream");
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("early domain");
  const nvtxEventAttributes_t early = Attributes(nvtxDomainRegisterStringA(domain, "early string"));
  nvtxRangePushA("over before");
  nvtxRangePop();
  nvtxMarkA("not recorded");
  const nvtxRangeId_t lost = nvtxRangeStartA("started before");
  nvtxRangePushA("epoch");
  nvtxDomainRangePushEx(domain, &early);
  nvtxRangeEnd(lost);
}

void PrintLevels() {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("levels");
  const nvtxEventAttributes_t inside = Attributes("inside");
  // The elements of an initializer list are evaluated in order.
  const int levels[] = {nvtxRangePushA("0"),
                        nvtxRangePushA("1"),
                        nvtxDomainRangePushEx(domain, &inside),
                        nvtxRangePushA("2"),
                        nvtxRangePop(),
                        nvtxRangePop(),
                        nvtxRangePop(),
                        nvtxDomainRangePop(domain),
                        nvtxRangePop(),
                        nvtxDomainRangePop(domain)};
  for (const int level : levels) std::printf("%d ", level);
  std::printf("\n");
}

void UseThreads() {
  std::vector<std::thread> threads;
  static pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, 5);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      const std::string name = "thread " + std::to_string(i);
      nvtxRangePushA(name.c_str());
      pthread_barrier_wait(&barrier);  // all have begun
      pthread_barrier_wait(&barrier);  // the GPU has been called
      nvtxRangePop();
    });
  }
  pthread_barrier_wait(&barrier);
  UseGpu(1 << 20);
  pthread_barrier_wait(&barrier);
  for (std::thread& thread : threads) thread.join();
}

void Storm(int count) {
  std::vector<std::thread> threads;
  std::atomic<bool> called{false};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t, count, &called] {
      const nvtxDomainHandle_t domain = nvtxDomainCreateA(t % 2 == 0 ? "even" : "odd");
      int left = count;
      for (int i = 0; left > 0; ++i) {
        if (called) --left;
        const std::string name = "string " + std::to_string(i % 100);
        const nvtxEventAttributes_t by_string =
            Attributes(nvtxDomainRegisterStringA(domain, name.c_str()));
        nvtxRangePushA(name.c_str());
        nvtxDomainRangePushEx(domain, &by_string);
        const nvtxRangeId_t id = nvtxDomainRangeStartEx(domain, &by_string);
        nvtxDomainMarkEx(domain, &by_string);
        nvtxRangePop();
        nvtxDomainRangeEnd(domain, id);
        nvtxDomainRangePop(domain);
      }
    });
  }
  UseGpu(1 << 20);
  called = true;
  for (std::thread& thread : threads) thread.join();
}

// Forks before the first GPU call: CUDA cannot be used in a child of a process that has used it.
int Fork() {
  nvtxRangePushA("outer");
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("of both");
  const nvtxEventAttributes_t both =
      Attributes(nvtxDomainRegisterStringA(domain, "string of both"));
  const pid_t child = fork();
  UseGpu(child == 0 ? 2 << 20 : 1 << 20);
  nvtxDomainMarkEx(domain, &both);
  nvtxRangePop();
  if (child == 0) return 0;
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}

void BeSeenByTwo() {
  UseGpu(1 << 20);
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("shared domain");
  const nvtxEventAttributes_t by_string =
      Attributes(nvtxDomainRegisterStringA(domain, "shared string"));
  nvtxMarkA("shared mark");
  nvtxDomainMarkEx(domain, &by_string);
  nvtxNameCategoryA(3, "not ours");
  std::printf("%d", nvtxRangePushA("shared push"));
  std::printf(" %d", nvtxRangePop());
  nvtxDomainRangePushEx(domain, &by_string);
  nvtxDomainRangePop(domain);
  const nvtxRangeId_t id = nvtxRangeStartA("shared range");
  std::printf(" %d\n", static_cast<int>(id));
  nvtxRangeEnd(id);
  nvtxRangeEnd(nvtxRangeStartW(L"ours alone"));
}

void UseLibrary() {
  UseGpu(1 << 20);
  nvtxMarkA("of the program");
  void* library = dlopen(std::getenv("NVTX_CALLS_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::abort();
  reinterpret_cast<void (*)()>(dlsym(library, "MarkFromLibrary"))();
}

template <typename Call>
void PrintCost(const char* what, int count, Call call) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) call();
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
  std::printf("%s %.1f\n", what, taken.count() / count);
}

void PrintCosts(const char* when, int count) {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("costs");
  const nvtxEventAttributes_t registered =
      Attributes(nvtxDomainRegisterStringA(domain, "registered"));
  std::printf("%s\n", when);
  PrintCost("  push and pop, text", count, [] {
    nvtxRangePushA("a range of the program");
    nvtxRangePop();
  });
  PrintCost("  push and pop, registered string in a domain", count, [&] {
    nvtxDomainRangePushEx(domain, &registered);
    nvtxDomainRangePop(domain);
  });
  PrintCost("  mark", count, [] { nvtxMarkA("a mark of the program"); });
}

void PushDeep(int count) {
  UseGpu(1 << 20);
  for (int i = 0; i < count; ++i) std::printf("%d ", nvtxRangePushA(std::to_string(i).c_str()));
  for (int i = 0; i < count; ++i) std::printf("%d ", nvtxRangePop());
  std::printf("%d\n", nvtxRangePop() < 0);
}

void LeaveOpen(int count) {
  UseGpu(1 << 20);
  for (int i = 0; i < count; ++i) std::thread([] { nvtxRangePushA("left open"); }).join();
  nvtxRangePushA("of a thread that lives");
  nvtxRangePop();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? std::atoi(argv[2]) : 0;
  if (scenario == "every") {
    UseGpu(1 << 20);
    MarkInEveryWay();
    RangeInEveryWay();
    UseDomains();
    NameThings();
  } else if (scenario == "early" || scenario == "idle") {
    BeEarly();
    if (scenario == "early") UseGpu(1 << 20);
    nvtxRangePop();
    std::printf("%d\n", nvtxRangePop());
  } else if (scenario == "levels") {
    PrintLevels();
    UseGpu(1 << 20);
    PrintLevels();
  } else if (scenario == "names") {
    UseGpu(1 << 20);
    for (int i = 0; i < count; ++i) nvtxMarkA(("name " + std::to_string(i)).c_str());
  } else if (scenario == "deep") {
    PushDeep(count);
  } else if (scenario == "threads") {
    UseThreads();
  } else if (scenario == "ended") {
    LeaveOpen(count);
  } else if (scenario == "fork") {
    return Fork();
  } else if (scenario == "chain") {
    BeSeenByTwo();
  } else if (scenario == "storm") {
    Storm(count);
  } else if (scenario == "cost") {
    PrintCosts("before the first GPU call", count);
    UseGpu(1 << 20);
    PrintCosts("after it", count);
  } else if (scenario == "library") {
    UseLibrary();
  } else {
    std::fprintf(stderr, "nvtx_calls: no such scenario: '%s'\n", scenario.c_str());
    return 2;
  }
  return 0;
}
