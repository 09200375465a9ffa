// A client of CUPTI's activity API, for tests: it provides buffers from its own memory and keeps
// what is returned.
#ifndef TESTS_SIMCUDA_CUPTI_CLIENT_H_
#define TESTS_SIMCUDA_CUPTI_CLIENT_H_

#include <cuda.h>
#include <cupti.h>

#include <cstddef>
#include <vector>

namespace sim {

struct CuptiClient {
  // Registers for the buffers and enables `kinds`.
  static void Start(std::initializer_list<CUpti_ActivityKind> kinds, size_t buffer_size = 64 << 10);

  // Calls FlushAll(flag), and returns all records of one kind received so far, copied to `Form`.
  template <typename Form>
  static std::vector<Form> Flushed(CUpti_ActivityKind kind, uint32_t flag = 0);
  template <typename Form>
  static std::vector<Form> Seen(CUpti_ActivityKind kind);

  static int requested();
  static int completed();
  static bool completed_elsewhere();  // on a thread other than the one that started it
  static void GiveNoMore();           // further requests are answered with null

  static void ForEach(CUpti_ActivityKind kind, void (*visit)(CUpti_Activity*, void*), void* data);
};

template <typename Form>
std::vector<Form> CuptiClient::Seen(CUpti_ActivityKind kind) {
  std::vector<Form> found;
  ForEach(
      kind,
      [](CUpti_Activity* record, void* data) {
        static_cast<std::vector<Form>*>(data)->push_back(*reinterpret_cast<Form*>(record));
      },
      &found);
  return found;
}

template <typename Form>
std::vector<Form> CuptiClient::Flushed(CUpti_ActivityKind kind, uint32_t flag) {
  cuptiActivityFlushAll(flag);
  return Seen<Form>(kind);
}

}  // namespace sim

#endif  // TESTS_SIMCUDA_CUPTI_CLIENT_H_
