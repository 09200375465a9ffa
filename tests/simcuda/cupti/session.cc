#include "tests/simcuda/cupti/session.h"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <atomic>

#include "tests/simcuda/export_table.h"

namespace sim {
namespace {

std::atomic<bool> forked{false};

// Returns null if there is no driver, or a real one.
const ToolTable* FindDriver() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return nullptr;
  auto get_table = reinterpret_cast<decltype(&cuGetExportTable)>(dlsym(driver, "cuGetExportTable"));
  const void* table = nullptr;
  if (get_table == nullptr || get_table(&table, &kExportTableId) != CUDA_SUCCESS) return nullptr;
  pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
  return static_cast<const ExportTable*>(table)->tools;
}

const ToolTable* DriverOrNull() {
  static const ToolTable* const driver = FindDriver();
  return driver;
}

void OnNotice(const Notice& notice) {
  // The records of a call precede those caused by a callback at its exit.
  Record(notice);
  Callback(notice);
}

uint64_t Read(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + now.tv_nsec;
}

// CLOCK_REALTIME, as far ahead as the simulator's clock.
uint64_t RealTime() {
  if (!CuptiSettings().virtual_clock || DriverOrNull() == nullptr) return Read(CLOCK_REALTIME);
  return Read(CLOCK_REALTIME) + (Driver().now() - Read(CLOCK_MONOTONIC));
}

std::atomic<CUpti_TimestampCallbackFunc> clock_function{nullptr};
// Both clocks at one moment; together with another such pair they give the rate.
std::atomic<uint64_t> anchor_simulator{0}, anchor_client{0};

}  // namespace

const Settings& CuptiSettings() {
  static const Settings& settings = *new Settings(Settings::FromEnvironment());
  return settings;
}

CUptiResult Refusal(bool needs_driver) {
  if (CuptiSettings().cupti == CuptiMode::kOff || forked.load()) {
    return CUPTI_ERROR_NOT_INITIALIZED;
  }
  if (!needs_driver) return CUPTI_SUCCESS;
  bool refuses = CuptiSettings().cupti == CuptiMode::kRefuse || DriverOrNull() == nullptr;
  return refuses ? CUPTI_ERROR_UNKNOWN : CUPTI_SUCCESS;
}

const ToolTable& Driver() { return *DriverOrNull(); }

std::mutex& CuptiMutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

bool UpdateAttachment() {
  Driver().want_calls(AnyCallCallback() || AnyActivity());
  if (AnySubscriber() || AnyActivity()) return Driver().attach(OnNotice);
  Driver().detach(OnNotice);
  return true;
}

uint64_t Timestamp() {
  CUpti_TimestampCallbackFunc function = clock_function.load();
  return function != nullptr ? function() : RealTime();
}

void SetClock(CUpti_TimestampCallbackFunc function) {
  clock_function.store(function);
  if (function == nullptr) return;
  anchor_simulator.store(Driver().now());
  anchor_client.store(function());
}

ClockMoment::ClockMoment() : simulator_(Driver().now()), client_(sim::Timestamp()) {
  if (clock_function.load() != nullptr && simulator_ > anchor_simulator.load()) {
    rate_ = static_cast<double>(client_ - anchor_client.load()) /
            static_cast<double>(simulator_ - anchor_simulator.load());
  }
}

uint64_t ClockMoment::Timestamp(uint64_t simulator_ns) const {
  auto ago = static_cast<int64_t>(simulator_ - simulator_ns);
  if (rate_ != 1) ago = static_cast<int64_t>(static_cast<double>(ago) * rate_);
  return client_ - static_cast<uint64_t>(ago);
}

}  // namespace sim
