#include "client_lib/cli/rewrite/saved_plans.h"

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/type_resolver.h"
#include "google/protobuf/util/type_resolver_util.h"
#include "nlohmann/json.hpp"
#include "rewrite_core/base/error.h"
#include "spillway/v1/plan.pb.h"

namespace spillway::cli {
namespace {

absl::Status NoPlan(absl::string_view why) {
  return core::InvalidError(
      v1::ERROR_REASON_BAD_PLAN,
      absl::StrCat("this is no plan (", why,
                   "); give a file that spillway rewrite --save-plan has written"));
}

// Extracts the bytes of the message without parsing it: the core does that.
absl::StatusOr<std::string> PlanFromJson(absl::string_view json) {
  constexpr char kTypeUrlPrefix[] = "type.googleapis.com";
  static google::protobuf::util::TypeResolver* const resolver =
      google::protobuf::util::NewTypeResolverForDescriptorPool(
          kTypeUrlPrefix, v1::Plan::descriptor()->file()->pool());
  std::string bytes;
  const auto status = google::protobuf::util::JsonToBinaryString(
      resolver, absl::StrCat(kTypeUrlPrefix, "/", v1::Plan::descriptor()->full_name()),
      {json.data(), json.size()}, &bytes);
  if (status.ok()) return bytes;
  // The text after the first line shows the context.
  const absl::string_view message(status.message().data(), status.message().size());
  return NoPlan(absl::string_view(core::Quoted(message.substr(0, message.find('\n')))));
}

}  // namespace

absl::StatusOr<SavedPlans> SavedPlans::FromJson(absl::string_view json) {
  absl::StatusOr<std::string> single = PlanFromJson(json);
  if (single.ok()) return SavedPlans(*std::move(single));
  // Parsed only if it may be one of these, since parsing takes more memory.
  if (!absl::StrContains(json, "\"meta_graphs\"")) return single.status();
  const nlohmann::json file = nlohmann::json::parse(json.begin(), json.end(), /*cb=*/nullptr,
                                                    /*allow_exceptions=*/false);
  const auto graphs = file.is_object() ? file.find("meta_graphs") : file.end();
  if (graphs == file.end() || !graphs->is_array()) return single.status();
  std::map<size_t, std::string> plans;
  for (const nlohmann::json& entry : *graphs) {
    const auto index = entry.is_object() ? entry.find("index") : entry.end();
    if (index == entry.end() || !index->is_number_unsigned()) {
      return NoPlan("an entry of its meta_graphs has no index");
    }
    const auto plan = entry.find("plan");
    if (plan == entry.end()) continue;  // This graph was kept unchanged.
    absl::StatusOr<std::string> bytes =
        PlanFromJson(plan->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    if (!bytes.ok()) return bytes.status();
    if (!plans.emplace(index->get<size_t>(), *std::move(bytes)).second) {
      return NoPlan(absl::StrCat("its meta_graphs have two of index ", index->get<size_t>()));
    }
  }
  return SavedPlans(std::move(plans));
}

const std::string* SavedPlans::Of(size_t index) const {
  if (is_single_) return &single_;
  const auto found = of_meta_graphs_.find(index);
  return found == of_meta_graphs_.end() ? nullptr : &found->second;
}

}  // namespace spillway::cli
