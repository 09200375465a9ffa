// CUDA_INJECTION64_PATH: the library that the driver loads when it is initialised.
#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tests/simcuda/on_device.h"

namespace sim {
namespace {

// Returns what the injected library recorded; null if it was not loaded.
template <typename Value>
Value* Noted(const char* name) {
  void* library = dlopen(SIMCUDA_INJECTED, RTLD_NOW | RTLD_NOLOAD);
  return library == nullptr ? nullptr : static_cast<Value*>(dlsym(library, name));
}

TEST(InjectionTest, LibraryIsInitialisedOnceAndMayUseCudaAndCupti) {
  InFreshProcess({{"CUDA_INJECTION64_PATH", SIMCUDA_INJECTED}}, [] {
    int version = 0;
    ASSERT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
    EXPECT_EQ(Noted<int>("simcuda_injected_calls"), nullptr);  // only cuInit loads it
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_NE(Noted<int>("simcuda_injected_calls"), nullptr);
    EXPECT_EQ(*Noted<int>("simcuda_injected_calls"), 1);
    EXPECT_EQ(*Noted<CUresult>("simcuda_injected_devices"), CUDA_SUCCESS);
    EXPECT_EQ(*Noted<CUptiResult>("simcuda_injected_subscribed"), CUPTI_SUCCESS);
    CUpti_SubscriberHandle late = nullptr;
    EXPECT_EQ(cuptiSubscribe(&late, nullptr, nullptr),
              CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  });
}

TEST(InjectionTest, MissingLibraryIsIgnored) {
  InFreshProcess({{"CUDA_INJECTION64_PATH", "/none/injected.so"}},
                 [] { EXPECT_EQ(cuInit(0), CUDA_SUCCESS); });
}

TEST(InjectionTest, NothingIsLoadedWithoutTheVariable) {
  OnDevice({}, [] { EXPECT_EQ(Noted<int>("simcuda_injected_calls"), nullptr); });
}

}  // namespace
}  // namespace sim
