// Shared by the parts of the graph interface: nodes, and the effect of a graph launch on memory.
#ifndef TESTS_SIMCUDA_DRIVER_GRAPH_H_
#define TESTS_SIMCUDA_DRIVER_GRAPH_H_

#include "tests/simcuda/simulator.h"

namespace sim {

// Allocates and frees the memory of the graph's memory nodes, in order; stops at the first failure.
CUresult RunMemoryNodes(Simulator& simulator, CUgraphExec executable);

CUgraphNode AddNode(CUgraph graph, CUgraphNodeType type);

// Adds a node of any type except allocation and free. `name` is the function that was called.
CUresult AddNodeWithoutMemory(const char* name, CUgraphNode* node, CUgraph graph,
                              CUgraphNodeParams& parameters);

// Appends the effects of one launch of the graph, including child graphs, to the executable.
void AppendNodes(const CUgraph_st& graph, CUgraphExec_st& executable);

}  // namespace sim

#endif  // TESTS_SIMCUDA_DRIVER_GRAPH_H_
