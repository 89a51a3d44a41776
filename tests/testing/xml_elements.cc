#include "tests/testing/xml_elements.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace spillway::testing {
namespace {

bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == ':'; }

class XmlReader {
 public:
  explicit XmlReader(absl::string_view text) : text_(text) {}

  std::vector<XmlElement> Read(std::string* problem) {
    if (absl::StartsWith(text_, "<?xml ")) {
      const size_t end = text_.find("?>");
      if (end == absl::string_view::npos) Fail("a declaration without end");
      at_ = end + 2;
    }
    while (at_ < text_.size() && problem_.empty()) {
      if (text_[at_] != '<') {
        ReadText();
      } else if (absl::StartsWith(text_.substr(at_), "</")) {
        ReadEnd();
      } else {
        ReadStart();
      }
    }
    if (problem_.empty() && !open_.empty()) Fail(absl::StrCat("no end of ", Top().name));
    if (problem_.empty() && elements_.empty()) Fail("no element");
    *problem = problem_;
    return elements_;
  }

 private:
  void Fail(absl::string_view what) {
    if (problem_.empty()) {
      problem_ = absl::StrCat(what, " at byte ", at_, ": ", text_.substr(at_, 60));
    }
  }
  XmlElement& Top() { return elements_[open_.back()]; }

  // One character of a text or an attribute.
  void ReadCharacter(std::string* to) {
    const char c = text_[at_];
    const bool is_space = c == '\t' || c == '\n' || c == '\r';
    if (static_cast<unsigned char>(c) < 0x20 && !is_space) return Fail("a control character");
    if (c != '&') {
      *to += c;
      ++at_;
      return;
    }
    const size_t end = text_.find(';', at_);
    if (end == absl::string_view::npos) return Fail("an entity without end");
    const absl::string_view entity = text_.substr(at_ + 1, end - at_ - 1);
    static const std::map<absl::string_view, char> kEntities = {
        {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}, {"#39", '\''}};
    const auto it = kEntities.find(entity);
    if (it == kEntities.end()) return Fail("an unknown entity");
    *to += it->second;
    at_ = end + 1;
  }

  void ReadText() {
    std::string text;
    while (at_ < text_.size() && text_[at_] != '<' && problem_.empty()) ReadCharacter(&text);
    if (!open_.empty()) {
      Top().text += text;
    } else if (!absl::StripAsciiWhitespace(text).empty()) {
      Fail("text outside the root");
    }
  }

  std::string ReadName() {
    const size_t begin = at_;
    while (at_ < text_.size() && IsNameCharacter(text_[at_])) ++at_;
    if (at_ == begin) Fail("no name");
    return std::string(text_.substr(begin, at_ - begin));
  }

  void SkipSpace() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
  }

  void ReadEnd() {
    at_ += 2;
    const std::string name = ReadName();
    if (open_.empty() || Top().name != name) return Fail(absl::StrCat("the end of ", name));
    if (at_ >= text_.size() || text_[at_] != '>') return Fail("an end without end");
    ++at_;
    open_.pop_back();
  }

  void ReadStart() {
    ++at_;
    XmlElement element;
    element.name = ReadName();
    element.parent = open_.empty() ? -1 : open_.back();
    if (element.parent < 0 && !elements_.empty()) return Fail("a second root");
    while (problem_.empty()) {
      SkipSpace();
      if (absl::StartsWith(text_.substr(at_), "/>")) {
        at_ += 2;
        elements_.push_back(element);
        return;
      }
      if (absl::StartsWith(text_.substr(at_), ">")) {
        ++at_;
        elements_.push_back(element);
        open_.push_back(static_cast<int>(elements_.size()) - 1);
        return;
      }
      const std::string name = ReadName();
      if (!absl::StartsWith(text_.substr(at_), "=\"")) return Fail("an attribute without value");
      at_ += 2;
      std::string value;
      while (problem_.empty() && at_ < text_.size() && text_[at_] != '"') {
        if (text_[at_] == '<') return Fail("a tag in an attribute");
        ReadCharacter(&value);
      }
      if (at_ >= text_.size()) return Fail("an attribute without end");
      ++at_;
      if (!element.attributes.emplace(name, value).second) return Fail("an attribute twice");
    }
  }

  const absl::string_view text_;
  size_t at_ = 0;
  std::string problem_;
  std::vector<XmlElement> elements_;
  std::vector<int> open_;
};

}  // namespace

std::vector<XmlElement> ParseXml(absl::string_view text, std::string* problem) {
  return XmlReader(text).Read(problem);
}

}  // namespace spillway::testing
