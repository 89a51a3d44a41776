#include "rewrite_core/base/wire_reader.h"

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace spillway::core {

bool WireReader::NextOther() {
  using google::protobuf::internal::WireFormatLite;
  const int left = static_cast<int>(end_ - next_);
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(next_), left);
  const uint32_t tag = stream.ReadTag();
  field_ = tag >> 3;
  type_ = tag & 7;
  switch (type_) {
    case WireFormatLite::WIRETYPE_VARINT:
      ok_ = tag != 0 && stream.ReadVarint64(&number_);
      break;
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
      uint32_t size = 0;
      ok_ = stream.ReadVarint32(&size);
      const int begin = stream.CurrentPosition();
      ok_ =
          ok_ && size <= static_cast<uint32_t>(left - begin) && stream.Skip(static_cast<int>(size));
      if (ok_) bytes_ = absl::string_view(next_ + begin, size);
      break;
    }
    case WireFormatLite::WIRETYPE_FIXED32: {
      uint32_t value = 0;
      ok_ = stream.ReadLittleEndian32(&value);
      number_ = value;
      break;
    }
    default:
      ok_ = WireFormatLite::SkipField(&stream, tag);
  }
  if (ok_) next_ += stream.CurrentPosition();
  return ok_;
}

}  // namespace spillway::core
