// The page at / of the metrics port, for people with a browser: an explanation, and where to look.
#ifndef SPILLWAY_SERVER_OBSERVE_LANDING_PAGE_H_
#define SPILLWAY_SERVER_OBSERVE_LANDING_PAGE_H_

struct CivetCallbacks;

namespace spillway::server {

// For prometheus::Exposer, which copies it: answers GET /, and leaves all other requests to it. The
// same threads and timeout serve the page. Thread-safe.
const CivetCallbacks& LandingPage();

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_OBSERVE_LANDING_PAGE_H_
