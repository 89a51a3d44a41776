# The libraries as they are installed: each holds all parts, so that a program links one of them.
#   libspillway_client.{so,a}   the C++ client
#   libspillway.{so,a}          the C API; the shared one loads libspillway_client.so by itself
# The number in a library's name changes when what it shows is no longer compatible.
set(SPILLWAY_SOVERSION 0)

add_library(spillway_c_api OBJECT c_api/calls.cc)
target_link_libraries(spillway_c_api PRIVATE spillway_client spillway_core spillway_plot spillway_text spillway_flags)
target_compile_definitions(spillway_c_api PRIVATE SPILLWAY_VERSION="${PROJECT_VERSION}")
set_target_properties(spillway_c_api PROPERTIES POSITION_INDEPENDENT_CODE ON)

get_property(parts GLOBAL PROPERTY SPILLWAY_LIBRARY_PARTS)
set(part_objects)
foreach(part ${parts} spillway_c_api)
  list(APPEND part_objects $<TARGET_OBJECTS:${part}>)
endforeach()

# What the headers of the client need, and what only its code needs.
set(client_public_deps
  protobuf::libprotobuf absl::status absl::statusor absl::strings absl::time)
set(client_private_deps
  gRPC::grpc++ OpenSSL::SSL OpenSSL::Crypto re2::re2 Threads::Threads absl::cleanup absl::cord
  absl::flat_hash_map absl::flat_hash_set absl::hash absl::optional absl::random_random absl::span absl::str_format
  absl::synchronization)

foreach(kind shared static)
  string(TOUPPER ${kind} KIND)
  add_library(spillway_client_${kind} ${KIND} ${part_objects})
  target_link_libraries(spillway_client_${kind} PUBLIC ${client_public_deps})
  add_library(spillway_${kind} ${KIND} c_api/spillway.cc c_api/load_${kind}.cc)
  target_link_libraries(spillway_${kind} PRIVATE $<BUILD_INTERFACE:spillway_flags>)
  target_compile_definitions(spillway_${kind} PRIVATE
    SPILLWAY_VERSION="${PROJECT_VERSION}" SPILLWAY_SOVERSION="${SPILLWAY_SOVERSION}")
  foreach(target spillway_client_${kind} spillway_${kind})
    target_include_directories(${target} PUBLIC
      $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/proto>
      $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/proto>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    string(REPLACE _${kind} "" name ${target})
    set_target_properties(${target} PROPERTIES
      OUTPUT_NAME ${name}
      VERSION ${PROJECT_VERSION} SOVERSION ${SPILLWAY_SOVERSION}
      POSITION_INDEPENDENT_CODE ON
      ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  endforeach()
endforeach()
target_link_libraries(spillway_client_static PUBLIC ${client_private_deps})
target_link_libraries(spillway_static PUBLIC spillway_client_static)
# Not in the exported targets: who links the shared library needs none of these.
foreach(dep ${client_private_deps})
  target_link_libraries(spillway_client_shared PRIVATE $<BUILD_INTERFACE:${dep}>)
endforeach()
target_link_libraries(spillway_shared PRIVATE ${CMAKE_DL_LIBS})
# A sanitizer's runtime may be in the program alone.
set(no_undefined)
if(NOT SPILLWAY_SANITIZE)
  set(no_undefined -Wl,--no-undefined)
endif()
target_link_options(spillway_client_shared PRIVATE -Wl,--as-needed
  -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/libspillway_client.map ${no_undefined})
target_link_options(spillway_shared PRIVATE
  -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/libspillway.map ${no_undefined})
set_target_properties(spillway_client_shared PROPERTIES
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/libspillway_client.map)
set_target_properties(spillway_shared PROPERTIES
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/libspillway.map)
# libspillway.so is built to be used with it, but does not link it.
add_dependencies(spillway_shared spillway_client_shared)

# The names of an installed package, for a project that has this one in its tree (add_subdirectory,
# FetchContent).
add_library(spillway::spillway ALIAS spillway_shared)
add_library(spillway::client ALIAS spillway_client_shared)
add_library(spillway::spillway_static ALIAS spillway_static)
add_library(spillway::client_static ALIAS spillway_client_static)

# ---- What `cmake --install` puts where. Components: programs, libraries, development, completions.
include(CMakePackageConfigHelpers)
set(cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/spillway)
set_target_properties(spillway_shared PROPERTIES EXPORT_NAME spillway)
set_target_properties(spillway_client_shared PROPERTIES EXPORT_NAME client)
set_target_properties(spillway_client_static PROPERTIES EXPORT_NAME client_static)
install(TARGETS spillway_shared EXPORT spillway-c
        LIBRARY COMPONENT libraries NAMELINK_COMPONENT development)
install(TARGETS spillway_client_shared EXPORT spillway-client
        LIBRARY COMPONENT libraries NAMELINK_COMPONENT development)
install(TARGETS spillway_static spillway_client_static EXPORT spillway-static
        ARCHIVE COMPONENT development)
foreach(component c client static)
  install(EXPORT spillway-${component} NAMESPACE spillway:: DESTINATION ${cmake_folder}
          COMPONENT development)
endforeach()
install(DIRECTORY include/spillway DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development)

configure_package_config_file(cmake/spillwayConfig.cmake.in spillwayConfig.cmake
                              INSTALL_DESTINATION ${cmake_folder})
# While the major version is 0, a minor one may change what the library shows.
write_basic_package_version_file(spillwayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/spillwayConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/spillwayConfigVersion.cmake
        DESTINATION ${cmake_folder} COMPONENT development)

# Relative to the file itself, so that the tree may be moved.
file(RELATIVE_PATH SPILLWAY_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" SPILLWAY_PC_PREFIX ${SPILLWAY_PC_PREFIX})
set(SPILLWAY_PC_ABSL ${client_private_deps})
list(FILTER SPILLWAY_PC_ABSL INCLUDE REGEX "^absl::")
list(TRANSFORM SPILLWAY_PC_ABSL REPLACE "^absl::" "absl_")
list(JOIN SPILLWAY_PC_ABSL " " SPILLWAY_PC_ABSL)
foreach(name spillway spillway-client)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
