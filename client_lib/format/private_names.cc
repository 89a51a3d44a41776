#include "client_lib/format/private_names.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::format {
namespace {

// The allowed and default values of string attributes in TensorFlow 2.15's op registry, without
// those of its test ops, and the values that it writes into function attributes.
constexpr absl::string_view kPublicWords[] = {"\t",
                                              "\n",
                                              "%s",
                                              ",",
                                              "ABL",
                                              "ADD",
                                              "ASCENDING",
                                              "AUTO",
                                              "AVG",
                                              "Add",
                                              "All",
                                              "Any",
                                              "BYTE",
                                              "CEIL",
                                              "CHANNELS_FIRST",
                                              "CHANNELS_LAST",
                                              "CONSTANT",
                                              "COS",
                                              "CrossReplica",
                                              "CrossReplicaAndPartition",
                                              "DESCENDING",
                                              "DIV",
                                              "Div",
                                              "EQ",
                                              "EXP",
                                              "EXPLICIT",
                                              "FLOOR",
                                              "GE",
                                              "GT",
                                              "HALF_AWAY_FROM_ZERO",
                                              "HALF_TO_EVEN",
                                              "HALF_UP",
                                              "HWIO",
                                              "IMAG",
                                              "Id",
                                              "Identity",
                                              "LE",
                                              "LEFT_LEFT",
                                              "LEFT_RIGHT",
                                              "LOG",
                                              "LT",
                                              "MAX",
                                              "MEAN",
                                              "MIN",
                                              "MIN_COMBINED",
                                              "MIN_FIRST",
                                              "MUL",
                                              "Max",
                                              "Mean",
                                              "Min",
                                              "Mul",
                                              "NCDHW",
                                              "NCHW",
                                              "NCHW_VECT_C",
                                              "NDHWC",
                                              "NE",
                                              "NEG",
                                              "NHWC",
                                              "OIHW",
                                              "OIHW_VECT_I",
                                              "POW",
                                              "REAL",
                                              "REFLECT",
                                              "REM",
                                              "RIGHT_LEFT",
                                              "RIGHT_RIGHT",
                                              "SAME",
                                              "SCALED",
                                              "SIGN",
                                              "STEP_MARK_AT_ENTRY",
                                              "SUB",
                                              "SUM",
                                              "SYMMETRIC",
                                              "TPU",
                                              "UTF-16-BE",
                                              "UTF-32-BE",
                                              "UTF-8",
                                              "UTF8_CHAR",
                                              "VALID",
                                              "auto",
                                              "auto_select",
                                              "bidirectional",
                                              "bilinear",
                                              "binary",
                                              "cm",
                                              "default",
                                              "equality",
                                              "grayscale",
                                              "gru",
                                              "hinge_loss",
                                              "ignore",
                                              "in",
                                              "inequality",
                                              "kEagerRuntime",
                                              "lanczos3",
                                              "linear_input",
                                              "local://",
                                              "logistic_loss",
                                              "lstm",
                                              "max",
                                              "min",
                                              "nearest",
                                              "poisson_loss",
                                              "prod",
                                              "replace",
                                              "rgb",
                                              "rnn_relu",
                                              "rnn_tanh",
                                              "skip_input",
                                              "smooth_hinge_loss",
                                              "squared_loss",
                                              "stderr",
                                              "strict",
                                              "sum",
                                              "unidirectional",
                                              "uniform"};

// Attributes that TensorFlow and Spillway themselves add to nodes and functions of any type.
constexpr absl::string_view kPublicInternalAttributes[] = {"_XlaCompile",
                                                           "_XlaMustCompile",
                                                           "_XlaScope",
                                                           "_class",
                                                           "_collective_manager_ids",
                                                           "_construction_context",
                                                           "_gradient_op_type",
                                                           "_grappler_do_not_remove",
                                                           "_implements",
                                                           "_input_shapes",
                                                           "_lower_using_switch_merge",
                                                           "_noinline",
                                                           "_output_shapes",
                                                           "_spillway_undo",
                                                           "_user_specified_name"};

// Attributes that user-defined ops share with TensorFlow's: types, counts and shapes, which
// determine sizes.
constexpr absl::string_view kPublicCommonAttributes[] = {
    "DstT", "N", "SrcT", "T", "Tin", "Tout", "data_format", "dtype", "padding", "shape", "strides"};

// Attributes of TensorFlow's own ops, whatever op has them: a name common to many graphs reveals
// nothing about this one.
constexpr absl::string_view kPublicOpAttributes[] = {
#define SPILLWAY_ATTRIBUTE(name) name,
#include "client_lib/format/attribute_names.inc"
#undef SPILLWAY_ATTRIBUTE
};

constexpr absl::string_view kPublicJobs[] = {"chief",  "evaluator", "localhost",
                                             "master", "ps",        "worker"};
constexpr absl::string_view kPublicDeviceTypes[] = {"CPU",     "GPU",     "TPU",      "TPU_SYSTEM",
                                                    "XLA_CPU", "XLA_GPU", "COMPOSITE"};

// The scope and the prefixes of swap nodes, so that kSwapNodeMark still matches.
constexpr char kSwapScope[] = "lms";
constexpr absl::string_view kSwapPrefixes[] = {"swapout_", "swapin_", "swap"};

}  // namespace

// TensorFlow's own scopes for control flow. Strategies depend on them, as TFLMS does.
constexpr absl::string_view kControlFlowScopes[] = {"cond", "while"};

void PathMap::NoteScopes(absl::string_view path) {
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  for (size_t i = 0; i + 1 < parts.size(); ++i) is_scope_.emplace(parts[i]);
}

std::string PathMap::Map(absl::string_view path) {
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  std::string mapped;
  bool in_swap_scope = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) mapped += '/';
    const bool is_swap = i + 1 < parts.size() && parts[i] == kSwapScope &&
                         absl::StartsWith(parts[i + 1], kSwapPrefixes[2]);
    if (is_swap) {
      mapped += kSwapScope;
    } else if (in_swap_scope) {
      const auto prefix = absl::c_find_if(
          kSwapPrefixes, [&](absl::string_view p) { return absl::StartsWith(parts[i], p); });
      absl::StrAppend(&mapped, *prefix, MapPart(parts[i]));
    } else {
      mapped += MapPart(parts[i]);
    }
    in_swap_scope = is_swap;
  }
  return mapped;
}

std::string PathMap::MapPart(absl::string_view part) {
  if (!is_scope_.contains(part)) return leaves_.Map(part);
  return absl::c_linear_search(kControlFlowScopes, part) ? std::string(part) : scopes_.Map(part);
}

bool PathMap::HasAll(absl::string_view path) const {
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  return absl::c_all_of(parts, [this](absl::string_view part) {
    return part.empty() || scopes_.Has(part) || leaves_.Has(part) ||
           (is_scope_.contains(part) && absl::c_linear_search(kControlFlowScopes, part));
  });
}

bool IsPublicWord(absl::string_view word) { return absl::c_linear_search(kPublicWords, word); }

bool IsPublicAttributeOfKnownOp(absl::string_view name) {
  return absl::StartsWith(name, "_") ? absl::c_linear_search(kPublicInternalAttributes, name)
                                     : absl::c_binary_search(kPublicOpAttributes, name);
}

bool IsPublicAttribute(absl::string_view name) {
  return absl::StartsWith(name, "_") ? absl::c_linear_search(kPublicInternalAttributes, name)
                                     : absl::c_linear_search(kPublicCommonAttributes, name);
}

bool IsPublicJob(absl::string_view job) { return absl::c_linear_search(kPublicJobs, job); }

bool IsPublicDeviceType(absl::string_view type) {
  return absl::c_linear_search(kPublicDeviceTypes, type);
}

}  // namespace spillway::format
