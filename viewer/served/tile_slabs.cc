#include "viewer/served/tile_slabs.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "viewer/slab/slab.h"

namespace gmt::viewer {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity, so an end that never comes is null.
Json FiniteOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json SpacesJson(const std::vector<AddressSpace>& spaces) {
  Json json = Json::array();
  for (const AddressSpace& space : spaces) {
    Json lives = Json::array();
    for (const auto& [from, to] : space.lives) {
      lives.push_back(Json::array({FiniteOrNull(from), FiniteOrNull(to)}));
    }
    json.push_back({{"place", space.place},
                    {"size", space.size},
                    {"address", absl::StrCat("0x", absl::Hex(space.address))},
                    {"label", space.label},
                    {"lives", std::move(lives)}});
  }
  return json;
}

}  // namespace

std::string CurveSlab(const CurveTile& tile) {
  slab::Writer writer("curve");
  writer.AddArray("event", tile.event);
  writer.AddArray("peak", tile.peak);
  writer.AddArray("ns", tile.ns);
  for (const CurveSeries& series : tile.series) {
    const std::string name(NameOf(series.series));
    writer.AddArray(name + ".min", series.min);
    writer.AddArray(name + ".max", series.max);
    writer.AddArray(name + ".mid", series.mid);
  }
  for (const SampledSeries& series : tile.samples) {
    const std::string name(NameOf(series.series));
    writer.AddArray(name + ".value", series.value);
    writer.AddArray(name + ".ns", series.ns);
  }
  writer.AddArray("categories", tile.categories);
  return std::move(writer).Finish();
}

std::string PassingSlab(const PassingCurve& curve) {
  slab::Writer writer("passing");
  writer.AddArray("live", curve.live);
  return std::move(writer).Finish();
}

std::string PredictedSlab(const PredictedCurve& curve) {
  slab::Writer writer("predicted");
  writer.AddField("peak_bytes", curve.peak_bytes);
  writer.AddField("retries", curve.retries);
  writer.AddField("failure", curve.failure ? Json(*curve.failure) : Json(nullptr));
  writer.AddArray("reserved", curve.reserved);
  return std::move(writer).Finish();
}

std::string BlockSlab(const BlockTile& tile) {
  slab::Writer writer("blocks");
  writer.AddField("hidden", tile.hidden);
  writer.AddField("spaces", SpacesJson(tile.spaces));
  writer.AddArray("row", tile.row);
  writer.AddArray("start", tile.start);
  writer.AddArray("end", tile.end);
  writer.AddArray("size", tile.size);
  writer.AddArray("place", tile.place);
  writer.AddArray("first", tile.first);
  writer.AddArray("last", tile.last);
  writer.AddArray("stack", tile.stack);
  writer.AddArray("forward_stack", tile.forward_stack);
  writer.AddArray("key", tile.key);
  writer.AddArray("category", tile.category);
  writer.AddArray("stream", tile.stream);
  writer.AddArray("thread", tile.thread);
  writer.AddArray("role", tile.role);
  writer.AddArray("dtype", tile.dtype);
  writer.AddArray("flags", tile.flags);
  // Written even if there are no runs.
  std::vector<uint32_t> run_begin = tile.run_begin;
  run_begin.resize(tile.row.size() + 1, static_cast<uint32_t>(tile.run_column.size()));
  writer.AddArray("run_begin", run_begin);
  writer.AddArray("run_column", tile.run_column);
  writer.AddArray("run_bytes", tile.run_bytes);
  return std::move(writer).Finish();
}

std::string FlameSlab(const FlameTree& tree) {
  slab::Writer writer("flame");
  writer.AddField("names", tree.names);
  writer.AddField("total", tree.total);
  writer.AddArray("parent", tree.parent);
  writer.AddArray("bytes", tree.bytes);
  writer.AddArray("blocks", tree.blocks);
  writer.AddArray("before", tree.before);
  writer.AddArray("category", tree.category);
  writer.AddArray("category_bytes", tree.category_bytes);
  writer.AddArray("name", tree.name);
  return std::move(writer).Finish();
}

}  // namespace gmt::viewer
