// What the parts of the graph interface share: nodes, and what a launch of a graph does to memory.
#ifndef TESTS_SIMCUDA_DRIVER_GRAPH_H_
#define TESTS_SIMCUDA_DRIVER_GRAPH_H_

#include "tests/simcuda/simulator.h"

namespace sim {

// Brings and frees the memory of the graph's memory nodes, in their order; stops at the first
// failure.
CUresult RunMemoryNodes(Simulator& simulator, CUgraphExec executable);

CUgraphNode AddNode(CUgraph graph, CUgraphNodeType type);

// A node of any type but those that allocate and free. `name` is the function that was called.
CUresult AddNodeWithoutMemory(const char* name, CUgraphNode* node, CUgraph graph,
                              CUgraphNodeParams& parameters);

// What one launch of the graph does, child graphs included, goes behind what the executable does.
void AppendNodes(const CUgraph_st& graph, CUgraphExec_st& executable);

}  // namespace sim

#endif  // TESTS_SIMCUDA_DRIVER_GRAPH_H_
