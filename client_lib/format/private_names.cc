#include "client_lib/format/private_names.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::format {
namespace {

// String attributes that are enumerations in TensorFlow 2.15, and their constants.
constexpr std::pair<absl::string_view, absl::string_view> kEnumerations[] = {
    {"_construction_context", "kEagerRuntime"},
    {"align", "LEFT_LEFT LEFT_RIGHT RIGHT_LEFT RIGHT_RIGHT"},
    {"communication_hint", "auto nccl ring"},
    {"data_format", "CHANNELS_FIRST CHANNELS_LAST NCDHW NCHW NCHW_VECT_C NDHWC NHWC"},
    {"direction", "ASCENDING DESCENDING bidirectional unidirectional"},
    {"dst_format", "NCHW NHWC"},
    {"errors", "ignore replace strict"},
    {"fill_mode", "CONSTANT NEAREST REFLECT WRAP"},
    {"filter_format", "HWIO OIHW OIHW_VECT_I"},
    {"final_op", "Div Id"},
    {"format", "grayscale rgb"},
    {"input_mode", "auto_select linear_input skip_input"},
    {"interpolation", "BILINEAR NEAREST"},
    {"loss_type", "hinge_loss logistic_loss poisson_loss smooth_hinge_loss squared_loss"},
    {"merge_op", "Add Max Min Mul"},
    {"method", "bilinear nearest"},
    {"mode",
     "CrossReplica CrossReplicaAndPartition MIN_COMBINED MIN_FIRST REFLECT SCALED SYMMETRIC"},
    {"output_encoding", "UTF-16-BE UTF-32-BE UTF-8"},
    {"padding", "EXPLICIT SAME VALID"},
    {"pooling_type", "AVG MAX"},
    {"reduce_op", "Add All Any Max Mean Min Mul"},
    {"reduce_type", "MEAN SUM"},
    {"reduction", "Add Max Min Mul max min prod sum"},
    {"reduction_type", "MEAN SUM"},
    {"rnn_mode", "gru lstm rnn_relu rnn_tanh"},
    {"round_mode", "HALF_AWAY_FROM_ZERO HALF_TO_EVEN HALF_UP"},
    {"split_type", "equality inequality"},
    {"src_format", "NCHW NHWC"},
    {"unit", "BYTE UTF8_CHAR"}};

// Attributes that TensorFlow and Spillway themselves add to nodes and functions of any type.
constexpr absl::string_view kInternalAttributes =
    "_XlaCompile _XlaMustCompile _XlaScope _class _collective_manager_ids "
    "_construction_context _gradient_op_type _grappler_do_not_remove _implements "
    "_input_shapes _lower_using_switch_merge _noinline _output_shapes _spillway_undo "
    "_user_specified_name";

// Attributes that user-defined ops share with TensorFlow's: types, counts and shapes, which
// determine sizes.
constexpr absl::string_view kCommonAttributes =
    "DstT N SrcT T Tin Tout data_format dtype padding shape strides";

// Attributes that TensorFlow's own ops share, or training graphs often have: such names reveal
// nothing about this graph, on any op.
constexpr absl::string_view kOpAttributes =
    "DstT Index N S SrcT T T1 T2 T3 TI TInput Targs Targuments Taxis Tbias Tcomplex "
    "Tcomponents Tcond Tdense Tdim Tfilter Tidx Tin Tindices Tinput Tinputs Tlabels "
    "Tmultiples Tnumsegments Tout Toutput Toutput_types Toutputs Tpaddings Tparams Tperm "
    "Treal Tresults Truncate Tseed Tsegmentids Tshape Tsplits Tsummand Tvalues U a_is_sparse "
    "adj_x adj_y adjoint adjoint_a adjoint_b align align_corners allow_missing_files "
    "allowed_devices alpha axis b_is_sparse bad_color batch_dims batch_size begin_mask "
    "binary_output block_size body branches capacity cell_clip channels clear_after_read "
    "communication_hint component_types compute_uv compute_v cond config config_proto "
    "container data_format dataset_factory dct_coefficient_count debug_name delete_old_dirs "
    "dense_shapes desired_channels desired_samples deterministic device_ordinal device_type "
    "dilations direction dropout dtype dtypes dynamic_size elem_type element_dtype "
    "element_shape ellipsis_mask else_branch encoding end_mask epsilon equation errors "
    "exclusive executor_type expand_animations explicit_paddings exponential_avg_factor f "
    "filter_format final_op first_n forget_bias format frame_name full_matrices group_key "
    "group_size half_pixel_centers identical_element_shapes incompatible_shape_error index "
    "index_type input_mode instance_key is_constant is_files is_training k keep_dims "
    "key_dtype ksize ksizes leakyrelu_alpha limit loss_type lower max_images memory_limit "
    "merge_op message metadata method mode multiply_linear_by_lr narrow_range new_axis_mask "
    "num num_args num_bits num_buckets num_devices num_elements num_params num_proj "
    "num_sampled num_shards num_split num_true out_idx out_type output_encoding output_shapes "
    "output_type output_types padding parallel_copy parallel_iterations pattern pooling_ratio "
    "pooling_type preserve_cardinality range_max rates recv_device reduce_op reduce_type "
    "reduction reduction_type replicate_on_split reshuffle_each_iteration "
    "resize_if_index_out_of_bounds reverse rnn_mode round_mode seed seed2 send_device "
    "send_device_incarnation separator shape shape_dtype shape_type shapes shard_id "
    "shared_name shrink_axis_mask sorted source sparse_gradient sparse_types split_type "
    "squeeze_dims stack_name stride strides subdiv_offsets summarize swap_memory "
    "tensor_array_name tensor_name then_branch timeout_ms timeout_seconds top_paths "
    "transpose_a transpose_b type unique unit update_slots use_cudnn_on_gpu "
    "use_inter_op_parallelism use_locking use_nesterov use_node_name_sharing use_peephole "
    "validate_indices validate_shape value value_dtype value_shape window_size";

constexpr absl::string_view kJobs = "chief evaluator localhost master ps worker";
constexpr absl::string_view kDeviceTypes = "CPU GPU TPU TPU_SYSTEM XLA_CPU XLA_GPU COMPOSITE";

// The scope and the prefixes of swap nodes, so that kSwapNodeMark still matches.
constexpr char kSwapScope[] = "lms";
constexpr absl::string_view kSwapPrefixes[] = {"swapout_", "swapin_", "swap"};

bool HasWord(absl::string_view words, absl::string_view word) {
  const std::vector<absl::string_view> all = absl::StrSplit(words, ' ');
  return absl::c_linear_search(all, word);
}

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

bool IsKnownConstant(absl::string_view attribute, absl::string_view value) {
  return absl::c_any_of(kEnumerations, [&](const auto& enumeration) {
    return enumeration.first == attribute && HasWord(enumeration.second, value);
  });
}

bool IsPublicAttribute(const core::OpInfo& op, absl::string_view name) {
  static const auto* const op_attributes =
      new absl::flat_hash_set<absl::string_view>(absl::StrSplit(kOpAttributes, ' '));
  if (absl::StartsWith(name, "_")) return HasWord(kInternalAttributes, name);
  if (!op.known) return HasWord(kCommonAttributes, name);
  // Signatures name types and counts of outputs: `N*T []Tout U=float`.
  const std::vector<absl::string_view> in_signature =
      absl::StrSplit(op.outputs, absl::ByAnyChar(" &*=[]"));
  return op_attributes->contains(name) || absl::c_linear_search(in_signature, name);
}

bool IsPublicJob(absl::string_view job) { return HasWord(kJobs, job); }

bool IsPublicDeviceType(absl::string_view type) { return HasWord(kDeviceTypes, type); }

}  // namespace spillway::format
