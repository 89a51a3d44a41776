// Values of TensorFlow's enum DataType, for graphs made by tests.
#ifndef SPILLWAY_TESTS_TESTING_DATA_TYPES_H_
#define SPILLWAY_TESTS_TESTING_DATA_TYPES_H_

namespace spillway::testing {

inline constexpr int kFloat = 1;
inline constexpr int kInt32 = 3;
inline constexpr int kBool = 10;

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_DATA_TYPES_H_
