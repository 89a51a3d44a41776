# spdlog and fmt as headers alone: Debian has their libraries as shared ones.
get_filename_component(folder "${CMAKE_CURRENT_LIST_DIR}/../../../build-portable" ABSOLUTE)
add_library(spdlog::spdlog INTERFACE IMPORTED)
set_target_properties(spdlog::spdlog PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES ${folder}/prefix/include
  INTERFACE_COMPILE_DEFINITIONS "SPDLOG_FMT_EXTERNAL;FMT_HEADER_ONLY"
  INTERFACE_LINK_LIBRARIES Threads::Threads)
