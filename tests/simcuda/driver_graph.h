// What a launch of a graph does to memory.
#ifndef TESTS_SIMCUDA_DRIVER_GRAPH_H_
#define TESTS_SIMCUDA_DRIVER_GRAPH_H_

#include "tests/simcuda/simulator.h"

namespace sim {

// Brings and frees the memory of the graph's memory nodes, in their order; stops at the first
// failure.
CUresult RunMemoryNodes(Simulator& simulator, CUgraphExec executable);

}  // namespace sim

#endif  // TESTS_SIMCUDA_DRIVER_GRAPH_H_
