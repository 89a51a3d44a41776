# libspillway.so with all in it: the client, the core, gRPC, protobuf and what these need. It shows the
# functions of spillway.h and nothing else, so it lives beside TensorFlow's own copies of these in one
# process, and needs no Debian package. SPILLWAY_SELF_CONTAINED builds it, where static libraries are
# position-independent: Debian's are not, those of deploy/portable are.
if(NOT SPILLWAY_SELF_CONTAINED)
  return()
endif()

add_library(spillway_self_contained SHARED ${part_objects} c_api/spillway.cc c_api/load_static.cc)
target_include_directories(spillway_self_contained PRIVATE
  ${CMAKE_CURRENT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/proto ${PROJECT_BINARY_DIR}/proto)
target_compile_definitions(spillway_self_contained PRIVATE SPILLWAY_VERSION="${PROJECT_VERSION}")
target_link_libraries(spillway_self_contained PRIVATE
  ${client_public_deps} ${client_private_deps} spillway_flags)
# Never unloaded: gRPC's threads may still run.
target_link_options(spillway_self_contained PRIVATE -Wl,--no-undefined -Wl,--gc-sections
  -Wl,-z,nodelete -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/libspillway.map)
set_target_properties(spillway_self_contained PROPERTIES
  OUTPUT_NAME spillway
  VERSION ${PROJECT_VERSION} SOVERSION ${SPILLWAY_SOVERSION}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/self-contained
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/libspillway.map)
