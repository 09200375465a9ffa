// Stream capture and graphs: a graph is the list of captured launches and of memory nodes
// (driver_graph_memory.cc); launching it counts as that many launches.
#include "tests/simcuda/driver/graph.h"

#include <cstdio>

namespace {

using sim::Call;
using sim::CallGroup;
using sim::Notice;
using sim::NoticeKind;
using sim::Post;
using sim::Simulator;

thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUgraph CaptureOf(const Simulator& simulator, CUstream stream) {
  return simulator.streams.contains(stream) ? stream->capture : nullptr;
}

CUresult Instantiate(const char* name, CUgraphExec* executable, CUgraph graph,
                     unsigned long long flags) {
  return Call(name, CallGroup::kOther, [&](Simulator& simulator) {
    if (graph == nullptr || executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<CUgraphExec_st>();
    made->number = simulator.next_graph_number++;
    made->auto_free = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    sim::AppendNodes(*graph, *made);
    *executable = made.release();
    simulator.LogStreams(name, {.handle = sim::Bits(*executable)});
    Post({.kind = NoticeKind::kGraphExecCreated,
          .graph = graph,
          .executable = *executable,
          .graph_id = (*executable)->number});
    return CUDA_SUCCESS;
  });
}

CUresult Launch(const char* name, CUgraphExec executable, CUstream stream) {
  return Call(name, CallGroup::kLaunch, [&](Simulator& simulator) {
    if (executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // In sequence, whatever streams they were captured on.
    uint64_t done = sim::Now();
    for (Notice work : executable->work) {
      work.graph_id = executable->number;
      done = simulator.Launch(stream, work);
    }
    simulator.LogStreams(
        name, {.handle = sim::Bits(executable), .stream = sim::Bits(stream), .done_ns = done});
    return sim::RunMemoryNodes(simulator, executable);
  });
}

// Captures into `graph`, or into a new graph if it is null.
CUresult BeginCapture(const char* name, CUstream stream, CUgraph graph) {
  return Call(name, CallGroup::kOther, [&](Simulator& simulator) {
    if (!simulator.streams.contains(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (graph == nullptr) {
      graph = new CUgraph_st{.number = simulator.next_graph_number++};
      Post({.kind = NoticeKind::kGraphCreated, .graph = graph, .graph_id = graph->number});
    }
    simulator.LogStreams(name, {.handle = sim::Bits(graph), .stream = sim::Bits(stream)});
    stream->capture = graph;
    graph->id = simulator.next_capture_id++;
    graph->origin = stream;
    graph->streams.push_back(stream);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, capture_mode);
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  return BeginCapture(__func__, stream, nullptr);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode*,
                                     const CUgraphEdgeData*, size_t, CUstreamCaptureMode) {
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return BeginCapture(__func__, stream, graph);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    CUgraph capture = CaptureOf(simulator, stream);
    if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    for (CUstream member : capture->streams) {
      if (simulator.streams.contains(member)) member->capture = nullptr;
    }
    for (CUevent event : simulator.events) {
      if (event->capture == capture) event->capture = nullptr;
    }
    capture->streams.clear();
    *graph = capture;
    simulator.LogStreams("cuStreamEndCapture",
                         {.handle = sim::Bits(capture), .stream = sim::Bits(stream)});
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    *status = CaptureOf(simulator, stream) != nullptr ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                                      : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** edges, size_t* count) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    CUgraph capture = CaptureOf(simulator, stream);
    *status = capture != nullptr ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    if (capture == nullptr) return CUDA_SUCCESS;
    if (id != nullptr) *id = capture->id;
    if (graph != nullptr) *graph = capture;
    if (dependencies != nullptr) *dependencies = nullptr;
    if (edges != nullptr) *edges = nullptr;
    if (count != nullptr) *count = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *graph = new CUgraph_st{.number = simulator.next_graph_number++};
    Post({.kind = NoticeKind::kGraphCreated, .graph = *graph, .graph_id = (*graph)->number});
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, CUgraphNode*, char*, size_t) {
  return Instantiate(__func__, executable, graph, 0);
}

CUresult cuGraphInstantiate_v2(CUgraphExec* executable, CUgraph graph, CUgraphNode*, char*,
                               size_t) {
  return Instantiate(__func__, executable, graph, 0);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph,
                                     unsigned long long flags) {
  return Instantiate(__func__, executable, graph, flags);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* executable, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  return Instantiate(__func__, executable, graph, parameters != nullptr ? parameters->flags : 0);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph,
                              CUgraphExecUpdateResultInfo* result) {
  return Call(__func__, CallGroup::kOther, [&](Simulator&) {
    if (executable == nullptr || graph == nullptr || result == nullptr)
      return CUDA_ERROR_INVALID_VALUE;
    CUgraphExec_st updated;
    sim::AppendNodes(*graph, updated);
    // Only what nodes do can be changed, and memory nodes not at all.
    *result = {};
    if (updated.work.size() != executable->work.size() || !updated.steps.empty() ||
        !executable->steps.empty()) {
      result->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
      return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    executable->work = std::move(updated.work);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphNode* node,
                           CUgraphExecUpdateResult* result) {
  if (node == nullptr || result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info = {};
  const CUresult updated = cuGraphExecUpdate_v2(executable, graph, &info);
  *node = info.errorNode;
  *result = info.result;
  return updated;
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  return Launch(__func__, executable, stream);
}

// Both take the lock, because memory nodes release their addresses.
CUresult cuGraphExecDestroy(CUgraphExec executable) {
  if (CUresult ready = Simulator::Ready(); ready != CUDA_SUCCESS) return ready;
  sim::ApiCall call(__func__);
  if (executable != nullptr) {
    sim::DeliverNow({.kind = NoticeKind::kGraphExecDestroyStarting,
                     .executable = executable,
                     .graph_id = executable->number});
  }
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    simulator.LogStreams("cuGraphExecDestroy", {.handle = sim::Bits(executable)});
    delete executable;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroy(CUgraph graph) {
  if (CUresult ready = Simulator::Ready(); ready != CUDA_SUCCESS) return ready;
  sim::ApiCall call(__func__);
  if (graph != nullptr) {
    sim::DeliverNow(
        {.kind = NoticeKind::kGraphDestroyStarting, .graph = graph, .graph_id = graph->number});
  }
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    simulator.LogStreams("cuGraphDestroy", {.handle = sim::Bits(graph)});
    delete graph;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return Call(__func__, CallGroup::kOther, [&](Simulator&) {
    if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    size_t room = nodes == nullptr ? 0 : *count;
    for (size_t i = 0; i < room && i < graph->nodes.size(); ++i) nodes[i] = graph->nodes[i].get();
    if (nodes == nullptr || *count > graph->nodes.size()) *count = graph->nodes.size();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  *type = node->type;
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode, CUgraphNode*, CUgraphEdgeData*, size_t* count) {
  *count = 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned int) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  std::fprintf(file, "digraph simulated { /* %zu nodes */ }\n", graph->nodes.size());
  std::fclose(file);
  return CUDA_SUCCESS;
}
