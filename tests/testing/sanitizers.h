// Whether a test runs under the address sanitizer, which takes ten times longer and finds other
// bugs than large sizes and long searches do.
#ifndef SPILLWAY_TESTS_TESTING_SANITIZERS_H_
#define SPILLWAY_TESTS_TESTING_SANITIZERS_H_

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SPILLWAY_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SPILLWAY_ADDRESS_SANITIZER
#endif

namespace spillway::testing {

#ifdef SPILLWAY_ADDRESS_SANITIZER
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_SANITIZERS_H_
