#include "client_lib/format/binary_places.h"

#include "absl/strings/str_cat.h"
#include "client_lib/format/message_fields.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"

namespace spillway::format {
namespace {

using core::WireReader;

size_t OffsetIn(absl::string_view bytes, absl::string_view part) {
  return part.data() - bytes.data();
}

// Returns the length of the current field, which is length-delimited.
LengthPrefix LengthOf(absl::string_view bytes, const WireReader& reader) {
  const absl::string_view whole = reader.whole();
  size_t tag = 0;
  while (static_cast<unsigned char>(whole[tag]) >= 0x80) ++tag;
  ++tag;
  LengthPrefix length;
  length.varint = {OffsetIn(bytes, whole) + tag,
                   OffsetIn(bytes, whole) + whole.size() - reader.bytes().size()};
  length.value = reader.bytes().size();
  return length;
}

absl::Status Malformed(absl::string_view what, absl::string_view why, size_t position) {
  return core::InvalidError(
      v1::ERROR_REASON_MALFORMED_GRAPH,
      absl::StrCat(what, " ", why, " at byte ", position, "; save it again with TensorFlow"),
      {{"position", absl::StrCat(position)}});
}

void ReadTags(absl::string_view meta_info, std::vector<std::string>* tags) {
  for (WireReader reader(meta_info); reader.Next();) {
    if (tags->size() == kMaxTags) return;
    if (reader.IsBytes(meta_graph_def::kTags)) tags->emplace_back(reader.bytes());
  }
}

// `meta_graph` is a part of `bytes`.
absl::StatusOr<GraphPlace> FindGraph(absl::string_view bytes, absl::string_view meta_graph,
                                     absl::string_view what) {
  GraphPlace place;
  WireReader reader(meta_graph);
  size_t end = OffsetIn(bytes, meta_graph);
  while (reader.Next()) {
    end = OffsetIn(bytes, reader.whole()) + reader.whole().size();
    if (reader.IsBytes(meta_graph_def::kMetaInfo)) ReadTags(reader.bytes(), &place.tags);
    if (!reader.IsBytes(meta_graph_def::kGraph)) continue;
    if (place.present) {
      return Malformed(what, "has a second field graph_def", OffsetIn(bytes, reader.whole()));
    }
    place.present = true;
    place.content = {end - reader.bytes().size(), end};
    place.lengths = {LengthOf(bytes, reader)};
  }
  if (!reader.ok()) return Malformed(what, "is cut off or damaged", end);
  return place;
}

// `value` in `width` bytes, at least as many as it needs.
std::string Varint(uint64_t value, size_t width) {
  std::string varint;
  core::AppendVarint(value, &varint);
  while (varint.size() < width) {
    varint.back() = static_cast<char>(varint.back() | 0x80);
    varint.push_back('\0');
  }
  return varint;
}

// Encodes the length `value` like `old`: in the minimum number of bytes, or in as many as `old`
// has. By the same rules, encoding the old value restores `old`.
absl::StatusOr<std::string> LengthLike(absl::string_view bytes, const LengthPrefix& old,
                                       size_t value) {
  const size_t width = old.varint.size();
  const bool padded = width > Varint(old.value, 0).size();
  const std::string varint = Varint(value, padded ? width : 0);
  const bool fits = !padded || (varint.size() == width && varint.back() == '\0');
  if (!fits || bytes.substr(old.varint.begin, width) != Varint(old.value, width)) {
    return Malformed("the length of a message", "is written in a way that strip could not restore",
                     old.varint.begin);
  }
  return varint;
}

}  // namespace

absl::StatusOr<std::vector<GraphPlace>> FindBinaryGraphs(absl::string_view bytes,
                                                         GraphFormat format) {
  std::vector<GraphPlace> places;
  if (format == GraphFormat::kGraphDef) {
    places.emplace_back();
    places[0].present = true;
    places[0].content = {0, bytes.size()};
    return places;
  }
  if (format == GraphFormat::kMetaGraph) {
    absl::StatusOr<GraphPlace> place = FindGraph(bytes, bytes, "the MetaGraphDef");
    if (!place.ok()) return place.status();
    places.push_back(*std::move(place));
    return places;
  }
  WireReader reader(bytes);
  size_t end = 0;
  while (reader.Next()) {
    end = OffsetIn(bytes, reader.whole()) + reader.whole().size();
    if (!reader.IsBytes(saved_model::kMetaGraphs)) continue;
    if (places.size() == kMaxMetaGraphs) return TooManyMetaGraphs();
    absl::StatusOr<GraphPlace> place =
        FindGraph(bytes, reader.bytes(), absl::StrCat("MetaGraph ", places.size()));
    if (!place.ok()) return place.status();
    place->lengths.insert(place->lengths.begin(), LengthOf(bytes, reader));
    places.push_back(*std::move(place));
  }
  if (!reader.ok()) return Malformed("the SavedModel", "is cut off or damaged", end);
  return places;
}

absl::Status AppendWithGraph(absl::string_view bytes, const GraphPlace& place,
                             absl::string_view graph, size_t* done, std::string* out) {
  // Innermost first, because an outer length counts the bytes of the inner ones.
  std::vector<std::string> lengths(place.lengths.size());
  int64_t growth = static_cast<int64_t>(graph.size()) - static_cast<int64_t>(place.content.size());
  for (size_t i = place.lengths.size(); i-- > 0;) {
    absl::StatusOr<std::string> varint =
        LengthLike(bytes, place.lengths[i], place.lengths[i].value + growth);
    if (!varint.ok()) return varint.status();
    growth +=
        static_cast<int64_t>(varint->size()) - static_cast<int64_t>(place.lengths[i].varint.size());
    lengths[i] = *std::move(varint);
  }
  const auto copy_to = [&](size_t end) {
    out->append(bytes.data() + *done, end - *done);
    *done = end;
  };
  for (size_t i = 0; i < lengths.size(); ++i) {
    copy_to(place.lengths[i].varint.begin);
    out->append(lengths[i]);
    *done = place.lengths[i].varint.end;
  }
  copy_to(place.content.begin);
  out->append(graph.data(), graph.size());
  *done = place.content.end;
  return absl::OkStatus();
}

}  // namespace spillway::format
