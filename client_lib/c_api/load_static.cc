#include "client_lib/c_api/call_table.h"

namespace spillway::c_api {

const CallTable* LoadCallTable(spillway_status**) { return spillway_internal_call_table(); }

}  // namespace spillway::c_api
