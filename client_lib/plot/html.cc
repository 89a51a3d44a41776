#include "client_lib/plot/html.h"

#include "absl/strings/str_cat.h"
#include "client_lib/plot/text.h"

namespace spillway::plot {
namespace {

constexpr char kHead[] =
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n";

constexpr char kLayout[] =
    "body{margin:0}\n"
    "svg{display:block;margin:0 auto;max-width:100%;height:auto}\n"
    ".swap{pointer-events:bounding-box}\n"
    "#tip{position:fixed;display:none;max-width:40em;padding:4px 8px;border-radius:4px;"
    "font:12px system-ui,'DejaVu Sans',sans-serif;overflow-wrap:anywhere;pointer-events:none;"
    "background:#1A1A1A;color:#FFFFFF;border:1px solid #878D96}\n";

// Tooltips are the pictures' own <title>s. In a memory panel the lines are read from their paths: M
// and H set x, M and V set y.
constexpr char kScript[] = R"js(
(function () {
  'use strict';
  var tip = document.getElementById('tip');
  document.querySelectorAll('svg title').forEach(function (title) {
    var owner = title.parentNode;
    owner.setAttribute(owner.nodeName === 'svg' ? 'aria-label' : 'data-tip', title.textContent);
    owner.removeChild(title);
  });
  function number(element, name) { return Number(element.getAttribute(name)); }
  function inUnits(value, units) {
    for (var i = 0; i < units.length; ++i) {
      if (value >= units[i][0] || i === units.length - 1) {
        return (value / units[i][0]).toPrecision(3) + ' ' + units[i][1];
      }
    }
  }
  var BYTES = [[Math.pow(2, 40), 'TiB'], [Math.pow(2, 30), 'GiB'], [Math.pow(2, 20), 'MiB'],
               [1024, 'KiB'], [1, 'bytes']];
  var TIMES = [[1e10, 's'], [1e6, 'ms'], [1e3, '\u00b5s'], [1, 'ns']];
  function lineAt(path, x) {
    var steps = path.getAttribute('d').match(/[MHV][^MHV]*/g) || [];
    var at = null, y = null;
    for (var i = 0; i < steps.length; ++i) {
      var values = steps[i].slice(1).trim().split(/\s+/).map(Number);
      if (steps[i][0] === 'V') { y = values[0]; continue; }
      if (at !== null && values[0] > x) return y;
      at = values[0];
      if (steps[i][0] === 'M') y = values[1];
    }
    return null;
  }
  function memoryAt(hit, event) {
    var box = hit.getBoundingClientRect();
    var share = (event.clientX - box.left) / box.width;
    var x = number(hit, 'x') + share * number(hit, 'width');
    var bottom = number(hit, 'y') + number(hit, 'height');
    var parts = [];
    for (var s = hit.previousElementSibling; s; s = s.previousElementSibling) {
      var name = s.getAttribute('class');
      if (name === 'hit') break;
      if (s.nodeName !== 'path' || (name !== 'before' && name !== 'after')) continue;
      var y = lineAt(s, x);
      if (y === null) continue;
      var bytes = (bottom - y) / number(hit, 'height') * number(hit, 'data-end-bytes');
      parts.push(name + ' ' + inUnits(bytes, BYTES));
    }
    if (parts.length === 1) parts[0] = parts[0].replace(/^\w+ /, '');
    return 'at ' + inUnits(share * number(hit, 'data-end-ns'), TIMES) + ': ' + parts.join(', ');
  }
  document.addEventListener('mousemove', function (event) {
    var on = event.target;
    var text = on.getAttribute && on.getAttribute('data-tip');
    if (!text && on.getAttribute && on.getAttribute('class') === 'hit') text = memoryAt(on, event);
    tip.style.display = text ? 'block' : 'none';
    if (!text) return;
    tip.textContent = text;
    var left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 4);
    var top = event.clientY + 18;
    if (top + tip.offsetHeight > window.innerHeight) top = event.clientY - tip.offsetHeight - 8;
    tip.style.left = Math.max(left, 0) + 'px';
    tip.style.top = Math.max(top, 0) + 'px';
  });
}());
)js";

const char* PageColours(Theme theme) {
  switch (theme) {
    case Theme::kLight:
      return "body{background:#FFFFFF}\n";
    case Theme::kDark:
      return "body{background:#15181D}\n";
    case Theme::kAuto:
      break;
  }
  return "body{background:#FFFFFF}\n"
         "@media (prefers-color-scheme:dark){body{background:#15181D}}\n";
}

}  // namespace

std::string HtmlPage(absl::string_view title, absl::string_view svg, Theme theme) {
  return absl::StrCat("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n", kHead, "<title>",
                      Escaped(title), "</title>\n<style>\n", kLayout, PageColours(theme),
                      "</style>\n</head>\n<body>\n", svg, "<div id=\"tip\"></div>\n<script>",
                      kScript, "</script>\n</body>\n</html>\n");
}

}  // namespace spillway::plot
