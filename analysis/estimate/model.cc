#include "analysis/estimate/model.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gmt::analysis {
namespace {

using Names = std::initializer_list<const char*>;

// Larger numbers are mistakes, and keep every product below 2^63.
constexpr uint64_t kMaxLayers = 10'000, kMaxWidth = 200'000, kMaxTable = 100'000'000;

// Reads keys of a configuration under the names that families give them, and keeps the first error.
class ConfigReader {
 public:
  explicit ConfigReader(const nlohmann::json& config) : config_(config) {}

  uint64_t Number(Names names, std::optional<uint64_t> otherwise = std::nullopt,
                  uint64_t most = kMaxWidth) {
    const nlohmann::json* value = Find(names);
    if (value == nullptr && otherwise) return *otherwise;
    if (value == nullptr) {
      Fail(absl::StrCat("there is no \"", absl::StrJoin(names, "\" or \""), "\""));
    } else if (!value->is_number_unsigned() || value->get<uint64_t>() == 0 ||
               value->get<uint64_t>() > most) {
      Fail(absl::StrCat("\"", *names.begin(), "\" is not a number from 1 to ", most));
    } else {
      return value->get<uint64_t>();
    }
    return 1;
  }

  bool Flag(const char* name, bool otherwise) {
    const nlohmann::json* value = Find({name});
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) Fail(absl::StrCat("\"", name, "\" is not true or false"));
    return value->is_boolean() && value->get<bool>();
  }

  // Whether a probability is above 0.
  bool Dropout(const char* name, bool otherwise) {
    const nlohmann::json* value = Find({name});
    if (value == nullptr) return otherwise;
    if (!value->is_number()) Fail(absl::StrCat("\"", name, "\" is not a number"));
    return value->is_number() && value->get<double>() > 0;
  }

  std::string Text(Names names, const char* otherwise) {
    const nlohmann::json* value = Find(names);
    return value != nullptr && value->is_string() ? value->get<std::string>() : otherwise;
  }

  // The class in "architectures"; empty if there is none.
  std::string Architecture() {
    const nlohmann::json* value = Find({"architectures"});
    const bool given = value != nullptr && value->is_array() && !value->empty();
    return given && value->front().is_string() ? value->front().get<std::string>() : std::string();
  }

  void Fail(const std::string& error) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(error);
  }
  const absl::Status& status() const { return status_; }

 private:
  const nlohmann::json* Find(Names names) const {
    for (const char* name : names) {
      const auto found = config_.find(name);
      if (found != config_.end() && !found->is_null()) return &*found;
    }
    return nullptr;
  }

  const nlohmann::json& config_;
  absl::Status status_;
};

// Counts the parameters of one layer.
class LayerCount {
 public:
  LayerCount& Matrix(uint64_t inputs, uint64_t outputs, bool bias) {
    stack_.matrix_parameters += inputs * outputs;
    stack_.parameters += inputs * outputs + (bias ? outputs : 0);
    stack_.matrix_sides += inputs + outputs;
    ++stack_.matrices;
    return *this;
  }
  LayerCount& Vector(uint64_t size) {
    stack_.parameters += size;
    return *this;
  }
  LayerStack Times(uint64_t layers, uint64_t attentions = 1) {
    stack_.layers = layers;
    stack_.attentions = attentions;
    return stack_;
  }

 private:
  LayerStack stack_;
};

Activation ActivationNamed(const std::string& name) {
  if (name == "relu") return Activation::kRelu;
  if (name == "gelu_new" || name == "gelu_fast") return Activation::kPythonGelu;
  return Activation::kOneKernel;
}

bool HasHead(const std::string& architecture, bool otherwise) {
  if (architecture.empty()) return otherwise;
  for (const char* part : {"LMHead", "ForCausalLM", "ForMaskedLM", "ForConditionalGeneration"}) {
    if (absl::StrContains(architecture, part)) return true;
  }
  return false;
}

void AddStack(Model& model, const LayerStack& stack) {
  model.stacks.push_back(stack);
  model.parameters += stack.layers * stack.parameters;
}

// The table of tokens, and the matrix of the logits. A tied one is the same tensor.
void AddVocabulary(Model& model, uint64_t width, bool head, bool tied) {
  model.embedding_parameters = model.vocabulary * width;
  model.parameters += model.embedding_parameters;
  if (!head) return;
  model.head_parameters = model.vocabulary * width;
  if (!tied) model.parameters += model.head_parameters;
}

void ReadWidths(ConfigReader& config, Model& model, bool learned_positions = false) {
  model.hidden = config.Number({"hidden_size", "n_embd", "d_model"});
  model.heads = config.Number({"num_attention_heads", "n_head", "num_heads"});
  model.kv_heads = config.Number({"num_key_value_heads"}, model.heads);
  model.vocabulary = config.Number({"vocab_size"}, std::nullopt, kMaxTable);
  const std::optional<uint64_t> unlimited = learned_positions ? std::nullopt : std::optional(0);
  model.longest = config.Number({"max_position_embeddings", "n_positions"}, unlimited, kMaxTable);
  const bool divides = model.hidden % model.heads == 0;
  model.head_size = config.Number({"head_dim", "d_kv"}, divides ? model.hidden / model.heads : 0);
  if (model.head_size == 0) config.Fail("the hidden size is no multiple of the number of heads");
  if (model.heads * model.head_size > kMaxWidth) config.Fail("the heads are absurdly wide");
  if (model.kv_heads > model.heads) config.Fail("there are more heads for keys than for queries");
}

uint64_t LayersOf(ConfigReader& config) {
  return config.Number({"num_hidden_layers", "n_layer", "num_layers"}, std::nullopt, kMaxLayers);
}

void AddLlama(ConfigReader& config, Model& model) {
  const std::string& family = model.family;
  ReadWidths(config, model);
  model.inner = config.Number({"intermediate_size"});
  const bool windowed = family == "mistral" || config.Flag("use_sliding_window", false);
  model.window = windowed ? config.Number({"sliding_window"}, 0, kMaxTable) : 0;
  model.norm = family == "gemma" ? Norm::kRmsInFp32 : Norm::kRms;
  model.activation = ActivationNamed(config.Text({"hidden_act", "hidden_activation"}, "silu"));
  model.gated = model.rotary = model.softmax_in_fp32 = model.casts_logits = true;
  model.separate_qkv = model.separate_gate = family != "phi3";
  model.norms_qk = family == "qwen3";
  model.attention_dropout = config.Dropout("attention_dropout", false);
  const bool bias = config.Flag("attention_bias", false);
  const bool mlp_bias = config.Flag("mlp_bias", false);
  const uint64_t queries = model.heads * model.head_size, keys = model.kv_heads * model.head_size;
  LayerCount layer;
  layer.Matrix(model.hidden, queries, bias || family == "qwen2");
  for (int i = 0; i < 2; ++i) layer.Matrix(model.hidden, keys, bias || family == "qwen2");
  layer.Matrix(queries, model.hidden, bias);
  for (int i = 0; i < 2; ++i) layer.Matrix(model.hidden, model.inner, mlp_bias);
  layer.Matrix(model.inner, model.hidden, mlp_bias).Vector(2 * model.hidden);
  if (model.norms_qk) layer.Vector(2 * model.head_size);
  AddStack(model, layer.Times(LayersOf(config)));
  model.parameters += model.hidden;
  AddVocabulary(model, model.hidden, HasHead(config.Architecture(), true),
                config.Flag("tie_word_embeddings", family == "gemma"));
}

// Attention and an MLP of two matrices, each with a norm: the layer of GPT-2, OPT and BERT.
LayerStack ClassicLayers(const Model& model, uint64_t layers, bool bias, bool attention_bias) {
  LayerCount layer;
  if (model.separate_qkv) {
    for (int i = 0; i < 3; ++i) layer.Matrix(model.hidden, model.hidden, attention_bias);
  } else {
    layer.Matrix(model.hidden, 3 * model.hidden, attention_bias);
  }
  layer.Matrix(model.hidden, model.hidden, attention_bias);
  layer.Matrix(model.hidden, model.inner, bias).Matrix(model.inner, model.hidden, bias);
  return layer.Vector(4 * model.hidden).Times(layers);
}

void AddGpt2(ConfigReader& config, Model& model) {
  ReadWidths(config, model, true);
  model.inner = config.Number({"n_inner"}, 4 * model.hidden);
  model.activation = ActivationNamed(config.Text({"activation_function"}, "gelu_new"));
  model.casts_logits = true;
  model.dropout = config.Dropout("resid_pdrop", true);
  model.attention_dropout = config.Dropout("attn_pdrop", true);
  AddStack(model, ClassicLayers(model, LayersOf(config), true, true));
  model.parameters += model.longest * model.hidden + 2 * model.hidden;
  AddVocabulary(model, model.hidden, HasHead(config.Architecture(), true),
                config.Flag("tie_word_embeddings", true));
}

void AddGptNeox(ConfigReader& config, Model& model) {
  ReadWidths(config, model);
  model.inner = config.Number({"intermediate_size"});
  model.activation = ActivationNamed(config.Text({"hidden_act"}, "gelu"));
  model.rotary = model.softmax_in_fp32 = model.casts_logits = true;
  model.shared_norm_input = config.Flag("use_parallel_residual", true);
  model.dropout = config.Dropout("hidden_dropout", false);
  model.attention_dropout = config.Dropout("attention_dropout", false);
  AddStack(model,
           ClassicLayers(model, LayersOf(config), true, config.Flag("attention_bias", true)));
  model.parameters += 2 * model.hidden;
  AddVocabulary(model, model.hidden, HasHead(config.Architecture(), true),
                config.Flag("tie_word_embeddings", false));
}

void AddOpt(ConfigReader& config, Model& model) {
  ReadWidths(config, model, true);
  model.inner = config.Number({"ffn_dim"});
  model.activation = ActivationNamed(config.Text({"activation_function"}, "relu"));
  model.separate_qkv = model.softmax_in_fp32 = model.casts_logits = true;
  model.dropout = config.Dropout("dropout", true);
  model.attention_dropout = config.Dropout("attention_dropout", false);
  const bool bias = config.Flag("enable_bias", true);
  AddStack(model, ClassicLayers(model, LayersOf(config), bias, bias));
  const uint64_t width = config.Number({"word_embed_proj_dim"}, model.hidden);
  if (width != model.hidden) model.parameters += 2 * width * model.hidden;
  model.parameters += (model.longest + 2) * model.hidden;
  if (config.Flag("do_layer_norm_before", true) && !config.Flag("_remove_final_layer_norm", false))
    model.parameters += 2 * model.hidden;
  AddVocabulary(model, width, HasHead(config.Architecture(), true),
                config.Flag("tie_word_embeddings", true));
}

void AddBert(ConfigReader& config, Model& model) {
  ReadWidths(config, model, true);
  model.inner = config.Number({"intermediate_size"});
  model.activation = ActivationNamed(config.Text({"hidden_act"}, "gelu"));
  model.separate_qkv = true;
  model.dropout = config.Dropout("hidden_dropout_prob", true);
  model.attention_dropout = config.Dropout("attention_probs_dropout_prob", true);
  AddStack(model, ClassicLayers(model, LayersOf(config), true, true));
  const uint64_t types = config.Number({"type_vocab_size"}, 2);
  model.parameters += (model.longest + types + 2) * model.hidden;
  const uint64_t square = model.hidden * model.hidden + model.hidden;
  const std::string architecture = config.Architecture();
  model.head_transform = HasHead(architecture, false);
  // The head for masked words, or the pooler of the model alone.
  model.parameters += square;
  if (model.head_transform) model.parameters += 2 * model.hidden + model.vocabulary;
  AddVocabulary(model, model.hidden, model.head_transform,
                config.Flag("tie_word_embeddings", true));
}

void AddT5(ConfigReader& config, Model& model) {
  ReadWidths(config, model);
  model.inner = config.Number({"d_ff"});
  const std::string projection = config.Text({"feed_forward_proj"}, "relu");
  model.gated = model.separate_gate = absl::StartsWith(projection, "gated-");
  model.activation =
      model.gated ? Activation::kPythonGelu : ActivationNamed(projection);  // "gated-gelu": new
  model.norm = Norm::kRms;
  model.separate_qkv = model.softmax_in_fp32 = true;
  model.dropout = model.attention_dropout = model.inner_dropout =
      config.Dropout("dropout_rate", true);
  model.longest = 0;
  const uint64_t attention = model.heads * model.head_size;
  const auto layer_with = [&](uint64_t attentions) {
    LayerCount layer;
    for (uint64_t i = 0; i < attentions; ++i) {
      for (int j = 0; j < 3; ++j) layer.Matrix(model.hidden, attention, false);
      layer.Matrix(attention, model.hidden, false).Vector(model.hidden);
    }
    for (int i = 0; i < (model.gated ? 2 : 1); ++i) layer.Matrix(model.hidden, model.inner, false);
    return layer.Matrix(model.inner, model.hidden, false).Vector(model.hidden);
  };
  const uint64_t encoder = LayersOf(config);
  AddStack(model, layer_with(1).Times(encoder));
  AddStack(model,
           layer_with(2).Times(config.Number({"num_decoder_layers"}, encoder, kMaxLayers), 2));
  // Per stack, a table of relative positions and a last norm.
  const uint64_t buckets = config.Number({"relative_attention_num_buckets"}, 32);
  model.parameters += 2 * (buckets * model.heads + model.hidden);
  AddVocabulary(model, model.hidden, HasHead(config.Architecture(), true),
                config.Flag("tie_word_embeddings", true));
}

struct Family {
  const char* name;
  void (*add)(ConfigReader& config, Model& model);
};
constexpr std::array kFamilies = {
    Family{"llama", AddLlama}, Family{"mistral", AddLlama},    Family{"qwen2", AddLlama},
    Family{"qwen3", AddLlama}, Family{"gemma", AddLlama},      Family{"phi3", AddLlama},
    Family{"gpt2", AddGpt2},   Family{"gpt_neox", AddGptNeox}, Family{"opt", AddOpt},
    Family{"bert", AddBert},   Family{"roberta", AddBert},     Family{"t5", AddT5},
};

}  // namespace

uint64_t Model::Layers() const {
  uint64_t layers = 0;
  for (const LayerStack& stack : stacks) layers += stack.layers;
  return layers;
}

uint64_t Model::MatrixParameters() const {
  uint64_t count = head_parameters;
  for (const LayerStack& stack : stacks) count += stack.layers * stack.matrix_parameters;
  return count;
}

absl::StatusOr<Model> ModelOfConfig(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return absl::InvalidArgumentError("not a JSON object");
  ConfigReader config(json);
  Model model;
  model.family = config.Text({"model_type"}, "");
  if (model.family.empty()) return absl::InvalidArgumentError("there is no \"model_type\"");
  const auto* const family =
      std::find_if(kFamilies.begin(), kFamilies.end(),
                   [&](const Family& known) { return model.family == known.name; });
  if (family == kFamilies.end()) {
    const std::string known = absl::StrJoin(
        kFamilies, ", ",
        [](std::string* out, const Family& each) { absl::StrAppend(out, each.name); });
    return absl::InvalidArgumentError(absl::StrCat("the layers of model_type \"", model.family,
                                                   "\" are not known, only those of ", known,
                                                   ". Give --parameters instead"));
  }
  family->add(config, model);
  if (!config.status().ok()) return config.status();
  return model;
}

absl::StatusOr<Model> ModelOfShape(const GptShape& shape) {
  const nlohmann::json config = {{"model_type", "gpt2"},
                                 {"n_layer", shape.layers},
                                 {"n_embd", shape.hidden},
                                 {"n_head", shape.heads},
                                 {"vocab_size", shape.vocabulary},
                                 {"n_positions", shape.positions},
                                 {"activation_function", "gelu"},
                                 {"resid_pdrop", 0},
                                 {"attn_pdrop", 0},
                                 {"tie_word_embeddings", false}};
  absl::StatusOr<Model> model = ModelOfConfig(config.dump());
  if (!model.ok()) return model.status();
  model->family = "gpt";
  model->casts_logits = false;
  return model;
}

}  // namespace gmt::analysis
