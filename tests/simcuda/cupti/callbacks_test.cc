// The callback API of the simulated CUPTI.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/simcuda/on_device.h"

namespace sim {
namespace {

struct Seen {
  CUpti_CallbackDomain domain;
  CUpti_CallbackId id;
};
std::vector<Seen> seen;

void Remember(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void*) {
  seen.push_back({domain, id});
}

int Count(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  int count = 0;
  for (const Seen& one : seen) count += one.domain == domain && one.id == id;
  return count;
}

CUpti_SubscriberHandle Subscribe(CUpti_CallbackFunc function,
                                 std::initializer_list<CUpti_CallbackDomain> domains) {
  CUpti_SubscriberHandle handle = nullptr;
  EXPECT_EQ(cuptiSubscribe(&handle, function, nullptr), CUPTI_SUCCESS);
  for (CUpti_CallbackDomain domain : domains) {
    EXPECT_EQ(cuptiEnableDomain(1, handle, domain), CUPTI_SUCCESS);
  }
  return handle;
}

CUpti_SubscriberParams Named(const char* name, char* old_name, size_t room) {
  CUpti_SubscriberParams parameters{};
  parameters.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  parameters.subscriberName = name;
  parameters.oldSubscriberName = old_name;
  parameters.oldSubscriberSize = room;
  return parameters;
}

TEST(CuptiCallbacksTest, ContextHasTheDeviceForWhichItWasCreated) {
  OnDevice({{"SIMCUDA_DEVICES", "2"}}, [] {
    CUcontext context = nullptr;
    uint32_t device = 0;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuptiGetDeviceId(context, &device), CUPTI_SUCCESS);
    EXPECT_EQ(device, 1u);
    EXPECT_EQ(cuptiGetDeviceId(nullptr, &device), CUPTI_ERROR_INVALID_CONTEXT);
  });
}

TEST(CuptiCallbacksTest, SecondSubscriberIsRefusedWithTheNameOfTheFirst) {
  OnDevice({}, [] {
    char holder[64] = "";
    CUpti_SubscriberHandle first = nullptr, second = nullptr;
    CUpti_SubscriberParams one = Named("first tool", nullptr, 0);
    CUpti_SubscriberParams two = Named("second tool", holder, sizeof(holder));
    ASSERT_EQ(cuptiSubscribe_v2(&first, Remember, nullptr, &one), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiSubscribe_v2(&second, Remember, nullptr, &two),
              CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    EXPECT_STREQ(holder, "first tool");
    EXPECT_EQ(cuptiSubscribe(&second, Remember, nullptr),
              CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    EXPECT_EQ(second, nullptr);
    ASSERT_EQ(cuptiUnsubscribe(first), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiSubscribe_v2(&second, Remember, nullptr, &two), CUPTI_SUCCESS);
  });
}

TEST(CuptiCallbacksTest, AllowsSeveralSubscribersIfAllAgree) {
  OnDevice({{"SIMCUDA_CUPTI_MULTI", "1"}}, [] {
    CUpti_SubscriberHandle handle = nullptr;
    CUpti_SubscriberParams agrees = Named("agrees", nullptr, 0);
    agrees.allowMultipleSubscribers = 1;
    CUpti_SubscriberParams alone = Named("alone", nullptr, 0);
    EXPECT_EQ(cuptiSubscribe_v2(&handle, Remember, nullptr, &agrees), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiSubscribe_v2(&handle, Remember, nullptr, &agrees), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiSubscribe_v2(&handle, Remember, nullptr, &alone),
              CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  });
}

TEST(CuptiCallbacksTest, UnknownHandleIsInvalid) {
  OnDevice({}, [] {
    uint32_t enabled = 0;
    EXPECT_EQ(cuptiUnsubscribe(nullptr), CUPTI_ERROR_INVALID_PARAMETER);
    CUpti_SubscriberHandle handle = Subscribe(Remember, {});
    ASSERT_EQ(cuptiFinalize(), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiEnableDomain(1, handle, CUPTI_CB_DOMAIN_RESOURCE),
              CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT_EQ(cuptiGetCallbackState(&enabled, handle, CUPTI_CB_DOMAIN_RESOURCE, 1),
              CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT_EQ(cuptiSubscribe(&handle, Remember, nullptr), CUPTI_SUCCESS);  // again
  });
}

TEST(CuptiCallbacksTest, SubscribingEnablesNothing) {
  OnDevice({}, [] {
    CUpti_SubscriberHandle handle = Subscribe(Remember, {});
    CUstream stream = nullptr;
    uint32_t enabled = 1;
    ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    EXPECT_TRUE(seen.empty());
    EXPECT_EQ(cuptiGetCallbackState(&enabled, handle, CUPTI_CB_DOMAIN_RESOURCE,
                                    CUPTI_CBID_RESOURCE_STREAM_CREATED),
              CUPTI_SUCCESS);
    EXPECT_EQ(enabled, 0u);
    ASSERT_EQ(cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_RESOURCE,
                                  CUPTI_CBID_RESOURCE_STREAM_CREATED),
              CUPTI_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen[0].id, unsigned{CUPTI_CBID_RESOURCE_STREAM_CREATED});
  });
}

TEST(CuptiCallbacksTest, ReportsResourcesFromTheContextToTheGraph) {
  InFreshProcess({}, [] {
    Subscribe(Remember, {CUPTI_CB_DOMAIN_RESOURCE});
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    CUcontext context = nullptr;
    ASSERT_EQ(cuCtxCreate_v4(&context, nullptr, 0, 0), CUDA_SUCCESS);
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CUmodule module = nullptr;
    ASSERT_EQ(cuModuleLoadData(&module, ".version 8.0\n"), CUDA_SUCCESS);
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphExecDestroy(executable), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
    std::vector<uint32_t> ids;
    for (const Seen& one : seen) ids.push_back(one.id);
    std::vector<uint32_t> expected = {CUPTI_CBID_RESOURCE_CU_INIT_FINISHED,
                                      CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
                                      CUPTI_CBID_RESOURCE_STREAM_CREATED,
                                      CUPTI_CBID_RESOURCE_MODULE_LOADED,
                                      CUPTI_CBID_RESOURCE_GRAPH_CREATED,
                                      CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED,
                                      CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING,
                                      CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING,
                                      CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,
                                      CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING,
                                      CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING};
    EXPECT_EQ(ids, expected);
  });
}

TEST(CuptiCallbacksTest, ModuleHasTheSizeOfItsImage) {
  OnDevice({}, [] {
    static size_t size = 0;
    Subscribe(
        [](void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
          if (id != CUPTI_CBID_RESOURCE_MODULE_LOADED) return;
          auto resource = static_cast<const CUpti_ResourceData*>(data);
          auto module = static_cast<CUpti_ModuleResourceData*>(resource->resourceDescriptor);
          size = module->cubinSize;
        },
        {CUPTI_CB_DOMAIN_RESOURCE});
    const std::string text = ".version 8.0\n.target sm_80\n";
    CUmodule module = nullptr;
    ASSERT_EQ(cuModuleLoadData(&module, text.c_str()), CUDA_SUCCESS);
    EXPECT_EQ(size, text.size() + 1);
  });
}

// Callbacks run without any lock of the driver.
TEST(CuptiCallbacksTest, CallbackMayQueryTheCreatedStream) {
  OnDevice({}, [] {
    static uint32_t stream_id = 0, context_id = 0;
    static CUresult query = CUDA_ERROR_UNKNOWN;
    Subscribe(
        [](void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
          if (id != CUPTI_CBID_RESOURCE_STREAM_CREATED) return;
          auto resource = static_cast<const CUpti_ResourceData*>(data);
          query = cuStreamQuery(resource->resourceHandle.stream);
          cuptiGetStreamIdEx(resource->context, resource->resourceHandle.stream, 0, &stream_id);
          cuptiGetContextId(resource->context, &context_id);
        },
        {CUPTI_CB_DOMAIN_RESOURCE});
    CUstream first = nullptr, second = nullptr;
    ASSERT_EQ(cuStreamCreate(&first, 0), CUDA_SUCCESS);
    uint32_t id_of_first = stream_id;
    ASSERT_EQ(cuStreamCreate(&second, 0), CUDA_SUCCESS);
    EXPECT_EQ(query, CUDA_SUCCESS);
    EXPECT_NE(id_of_first, 0u);
    EXPECT_NE(stream_id, id_of_first);
    EXPECT_EQ(context_id, 1u);
  });
}

TEST(CuptiCallbacksTest, ReportsSynchronisationOfAStreamAndOfTheContext) {
  OnDevice({}, [] {
    Subscribe(Remember, {CUPTI_CB_DOMAIN_SYNCHRONIZE});
    CUstream stream = nullptr;
    CUevent event = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ASSERT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);  // there is no callback for it
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[0].id, unsigned{CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED});
    EXPECT_EQ(seen[1].id, unsigned{CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED});
  });
}

struct Api {
  CUpti_CallbackId id;
  CUpti_ApiCallbackSite site;
  uint32_t correlation;
  size_t size;
  uint64_t address;
};
std::vector<Api> calls;

template <typename Parameters>
size_t SizeOf(const CUpti_CallbackData& data) {
  return static_cast<const Parameters*>(data.functionParams)->size;
}

TEST(CuptiCallbacksTest, MemoryCallsHaveTheirArguments) {
  OnDevice({}, [] {
    Subscribe(
        [](void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
          auto& call = *static_cast<const CUpti_CallbackData*>(data);
          if (id == CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2) {
            auto arguments = static_cast<const cuMemAlloc_v2_params*>(call.functionParams);
            calls.push_back(
                {id, call.callbackSite, call.correlationId, arguments->bytesize, *arguments->dptr});
            EXPECT_STREQ(call.functionName, "cuMemAlloc_v2");
          } else if (id == CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2) {
            auto arguments = static_cast<const cuMemAllocPitch_v2_params*>(call.functionParams);
            calls.push_back({id, call.callbackSite, call.correlationId, arguments->ElementSizeBytes,
                             arguments->Height});
          }
        },
        {CUPTI_CB_DOMAIN_DRIVER_API});
    CUdeviceptr address = 0;
    size_t pitch = 0;
    ASSERT_EQ(cuMemAlloc(&address, 4096), CUDA_SUCCESS);
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[0].site, CUPTI_API_ENTER);
    EXPECT_EQ(calls[1].site, CUPTI_API_EXIT);
    EXPECT_EQ(calls[1].size, 4096u);
    EXPECT_EQ(calls[1].address, address);
    EXPECT_EQ(calls[0].correlation, calls[1].correlation);
    ASSERT_EQ(cuMemAllocPitch(&address, &pitch, 100, 7, 16), CUDA_SUCCESS);
    ASSERT_EQ(calls.size(), 4u);
    EXPECT_EQ(calls[3].size, 16u);
    EXPECT_EQ(calls[3].address, 7u);
    EXPECT_NE(calls[3].correlation, calls[0].correlation);
  });
}

TEST(CuptiCallbacksTest, RuntimeCallAndDriverCallsInsideItHaveTheirOwnIds) {
  OnDevice({}, [] {
    Subscribe(
        [](void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
          auto& call = *static_cast<const CUpti_CallbackData*>(data);
          bool runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
          if (runtime && id == CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020) {
            calls.push_back({id, call.callbackSite, call.correlationId,
                             SizeOf<cudaMalloc_v3020_params>(call), 0});
          }
          if (!runtime && id == CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2) {
            calls.push_back({id, call.callbackSite, call.correlationId, 0, 0});
          }
        },
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_DRIVER_API});
    void* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, 1000), cudaSuccess);
    ASSERT_EQ(calls.size(), 4u);  // enter, enter, exit, exit
    EXPECT_EQ(calls[0].id, unsigned{CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020});
    EXPECT_EQ(calls[1].id, unsigned{CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2});
    EXPECT_EQ(calls[3].site, CUPTI_API_EXIT);
    EXPECT_EQ(calls[3].size, 1000u);
    EXPECT_EQ(calls[3].correlation, calls[0].correlation);
    EXPECT_EQ(calls[2].correlation, calls[1].correlation);
    EXPECT_NE(calls[1].correlation, calls[0].correlation);
  });
}

TEST(CuptiCallbacksTest, StreamOrderedRuntimeCallsHaveTheirArguments) {
  OnDevice({}, [] {
    Subscribe(
        [](void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
          auto& call = *static_cast<const CUpti_CallbackData*>(data);
          if (id != CUPTI_RUNTIME_TRACE_CBID_cudaMallocAsync_v11020) return;
          auto arguments = static_cast<const cudaMallocAsync_v11020_params*>(call.functionParams);
          calls.push_back({id, call.callbackSite, call.correlationId, arguments->size,
                           reinterpret_cast<uint64_t>(arguments->hStream)});
        },
        {CUPTI_CB_DOMAIN_RUNTIME_API});
    CUstream stream = nullptr;
    void* memory = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    ASSERT_EQ(cudaMallocAsync(&memory, 500, stream), cudaSuccess);
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[1].size, 500u);
    EXPECT_EQ(calls[1].address, reinterpret_cast<uint64_t>(stream));
  });
}

TEST(CuptiCallbacksTest, ExitHasTheResult) {
  OnDevice({{"SIMCUDA_FAIL", "cuMemAlloc_v2:1"}}, [] {
    static int driver = -1, runtime = -1;
    Subscribe(
        [](void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
          auto& call = *static_cast<const CUpti_CallbackData*>(data);
          if (call.callbackSite != CUPTI_API_EXIT) return;
          int result = *static_cast<int*>(call.functionReturnValue);
          if (domain == CUPTI_CB_DOMAIN_RUNTIME_API &&
              id == CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020) {
            runtime = result;
          } else if (id == CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2) {
            driver = result;
          }
        },
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_DRIVER_API});
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 1000), cudaErrorMemoryAllocation);
    EXPECT_EQ(driver, int{CUDA_ERROR_OUT_OF_MEMORY});
    EXPECT_EQ(runtime, int{cudaErrorMemoryAllocation});
    cudaGetLastError();
  });
}

TEST(CuptiCallbacksTest, CallbackMayEndCupti) {
  OnDevice({}, [] {
    Subscribe(
        [](void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
          auto& call = *static_cast<const CUpti_CallbackData*>(data);
          seen.push_back({CUPTI_CB_DOMAIN_DRIVER_API, id});
          if (call.callbackSite == CUPTI_API_EXIT) cuptiFinalize();
        },
        {CUPTI_CB_DOMAIN_DRIVER_API});
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    EXPECT_EQ(Count(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuStreamCreate), 2);
  });
}

TEST(CuptiCallbacksTest, CallsFailIfCuptiIsOff) {
  OnDevice({{"SIMCUDA_CUPTI", "off"}}, [] {
    CUpti_SubscriberHandle handle = nullptr;
    uint32_t version = 0;
    EXPECT_EQ(cuptiSubscribe(&handle, Remember, nullptr), CUPTI_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuptiGetVersion(&version), CUPTI_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_ERROR_NOT_INITIALIZED);
  });
}

TEST(CuptiCallbacksTest, RefusingCuptiAnswersAsWithoutADriver) {
  OnDevice({{"SIMCUDA_CUPTI", "refuse"}}, [] {
    CUpti_SubscriberHandle handle = nullptr;
    uint32_t version = 0;
    uint64_t now = 0;
    EXPECT_EQ(cuptiSubscribe(&handle, Remember, nullptr), CUPTI_ERROR_UNKNOWN);
    EXPECT_EQ(handle, nullptr);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_ERROR_UNKNOWN);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_ERROR_UNKNOWN);
    EXPECT_EQ(cuptiGetVersion(&version), CUPTI_SUCCESS);
    EXPECT_EQ(version, 130001u);
    EXPECT_EQ(cuptiGetTimestamp(&now), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiFinalize(), CUPTI_SUCCESS);
  });
}

TEST(CuptiCallbacksTest, NamesFunctionsAndResults) {
  const char* name = nullptr;
  ASSERT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API,
                                 CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, &name),
            CUPTI_SUCCESS);
  EXPECT_STREQ(name, "cudaMalloc_v3020");
  ASSERT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,
                                 &name),
            CUPTI_SUCCESS);
  EXPECT_STREQ(name, "cuMemAlloc_v2");
  EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, 1023, &name),
            CUPTI_ERROR_INVALID_PARAMETER);
  ASSERT_EQ(cuptiGetResultString(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, &name),
            CUPTI_SUCCESS);
  EXPECT_STREQ(name, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED");
}

// With two CUPTI libraries in one process, the driver still has only one tool.
TEST(CuptiCallbacksTest, OtherMajorVersionIsRefusedWhileThisOneIsSubscribed) {
  OnDevice({}, [] {
    void* other = dlopen(SIMCUDA_LIBRARIES "/libcupti.so.12", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(other, nullptr) << dlerror();
    auto subscribe = reinterpret_cast<decltype(&cuptiSubscribe)>(dlsym(other, "cuptiSubscribe"));
    auto version = reinterpret_cast<decltype(&cuptiGetVersion)>(dlsym(other, "cuptiGetVersion"));
    EXPECT_EQ(dlsym(other, "cuptiSubscribe_v2"), nullptr);  // introduced in CUDA 12.9
    uint32_t number = 0;
    ASSERT_EQ(version(&number), CUPTI_SUCCESS);
    EXPECT_EQ(number, 24u);
    CUpti_SubscriberHandle handle = nullptr, mine = Subscribe(Remember, {});
    EXPECT_EQ(subscribe(&handle, Remember, nullptr),
              CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    ASSERT_EQ(cuptiUnsubscribe(mine), CUPTI_SUCCESS);
    EXPECT_EQ(subscribe(&handle, Remember, nullptr), CUPTI_SUCCESS);
  });
}

}  // namespace
}  // namespace sim
