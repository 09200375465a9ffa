#include "tests/simcuda/cupti/client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace sim {
namespace {

struct Returned {
  uint8_t* data;
  size_t valid;
};

std::mutex mutex;
std::vector<Returned> returned;
std::atomic<size_t> size{0};
std::atomic<int> requests{0}, completions{0};
std::atomic<bool> elsewhere{false};
std::thread::id starter;

void Request(uint8_t** buffer, size_t* bytes, size_t* records) {
  ++requests;
  *bytes = size;
  *buffer = size == 0 ? nullptr : static_cast<uint8_t*>(std::calloc(1, size));
  *records = 0;
}

void Complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  if (std::this_thread::get_id() != starter) elsewhere = true;
  std::lock_guard<std::mutex> lock(mutex);
  returned.push_back({buffer, valid});
  ++completions;
}

}  // namespace

void CuptiClient::Start(std::initializer_list<CUpti_ActivityKind> kinds, size_t buffer_size) {
  size = buffer_size;
  starter = std::this_thread::get_id();
  ASSERT_EQ(cuptiActivityRegisterCallbacks(Request, Complete), CUPTI_SUCCESS);
  for (CUpti_ActivityKind kind : kinds) ASSERT_EQ(cuptiActivityEnable(kind), CUPTI_SUCCESS);
}

int CuptiClient::requested() { return requests; }
int CuptiClient::completed() { return completions; }
bool CuptiClient::completed_elsewhere() { return elsewhere; }
void CuptiClient::GiveNoMore() { size = 0; }

void CuptiClient::ForEach(CUpti_ActivityKind kind, void (*visit)(CUpti_Activity*, void*),
                          void* data) {
  std::lock_guard<std::mutex> lock(mutex);
  for (const Returned& buffer : returned) {
    CUpti_Activity* record = nullptr;
    CUptiResult result;
    while ((result = cuptiActivityGetNextRecord(buffer.data, buffer.valid, &record)) ==
           CUPTI_SUCCESS) {
      if (record->kind == kind) visit(record, data);
    }
    EXPECT_EQ(result, CUPTI_ERROR_MAX_LIMIT_REACHED);
  }
}

}  // namespace sim
