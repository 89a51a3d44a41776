# gRPC as build.sh builds it: the targets that Spillway links, where they were built. gRPC's own install
# wants all of its targets, which are three times as much. The lists are those of Debian's gRPCTargets.
get_filename_component(folder "${CMAKE_CURRENT_LIST_DIR}/../../../build-portable" ABSOLUTE)
set(sources ${folder}/src/grpc)
set(built ${folder}/build/grpc)

find_package(ZLIB REQUIRED)
find_package(c-ares CONFIG REQUIRED)
find_package(re2 CONFIG REQUIRED)

foreach(name address_sorting gpr upb grpc grpc++ grpc++_reflection)
  add_library(gRPC::${name} STATIC IMPORTED)
  set_target_properties(gRPC::${name} PROPERTIES
    IMPORTED_LOCATION "${built}/lib${name}.a"
    INTERFACE_INCLUDE_DIRECTORIES "${sources}/include"
    INTERFACE_LINK_LIBRARIES "dl;m;Threads::Threads;rt")
endforeach()
set_property(TARGET gRPC::gpr APPEND PROPERTY INTERFACE_LINK_LIBRARIES
  absl::base absl::core_headers absl::memory absl::random_random absl::status absl::cord
  absl::str_format absl::strings absl::synchronization absl::time absl::optional absl::variant)
set_property(TARGET gRPC::grpc APPEND PROPERTY INTERFACE_LINK_LIBRARIES
  ZLIB::ZLIB c-ares::cares re2::re2 gRPC::address_sorting gRPC::upb gRPC::gpr
  absl::cleanup absl::flat_hash_map absl::flat_hash_set absl::inlined_vector absl::any_invocable
  absl::bind_front absl::function_ref absl::hash absl::type_traits absl::statusor absl::span
  absl::utility OpenSSL::SSL OpenSSL::Crypto)
set_property(TARGET gRPC::grpc++ APPEND PROPERTY INTERFACE_LINK_LIBRARIES
  gRPC::grpc protobuf::libprotobuf)
set_property(TARGET gRPC::grpc++_reflection APPEND PROPERTY INTERFACE_LINK_LIBRARIES gRPC::grpc++)

# It writes text: this machine's will do.
find_program(SPILLWAY_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
add_executable(gRPC::grpc_cpp_plugin IMPORTED)
set_target_properties(gRPC::grpc_cpp_plugin PROPERTIES
  IMPORTED_LOCATION ${SPILLWAY_GRPC_CPP_PLUGIN})
